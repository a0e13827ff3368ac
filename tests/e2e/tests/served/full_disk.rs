//! The disk of the state folder is full for a while.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cofferdam_api::{CreateRunRequest, ErrorCode};
use cofferdam_core::RunId;
use cofferdam_e2e::processes::{brokers_of, wait_until};
use cofferdam_e2e::{Fixture, Service, leftovers};
use cofferdam_test_marks::once;

const IN_TIME: Duration = Duration::from_secs(120);

/// A disk of 256 MiB, until it is dropped. A twentieth of it is more than the log of the record and a trial take.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(place: PathBuf) -> Self {
        fs::create_dir(&place).expect("a new folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256m,mode=0700", "tmpfs"])
            .arg(&place)
            .status();
        assert!(mounted.expect("mount is installed").success());
        Self(place)
    }

    /// Writes on until less than a twentieth of it is left, which is room enough to go on. To be called again and again: what
    /// a trial of the node has held meanwhile becomes free.
    fn fill_nearly(&self) -> PathBuf {
        let path = self.0.join("nearly");
        let mut file = fs::File::options().create(true).append(true).open(&path).expect("our own file");
        while !cofferdam_store::disk_space(&self.0).expect("it is mounted").is_low() {
            file.write_all(&vec![7; 1 << 18]).expect("there is room");
        }
        path
    }

    /// Writes until there is no space left; removing the file that it gives makes space again.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filling");
        let mut file = fs::File::create(&path).expect("a new file");
        // Smaller and smaller, so that not a page is left.
        for size in [1 << 20, 4096, 1] {
            while file.write_all(&vec![7; size]).is_ok() {}
        }
        path
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn quick() -> CreateRunRequest {
    CreateRunRequest { command: Some(vec!["true".to_owned()]), ..CreateRunRequest::default() }
}

#[once]
#[test]
fn a_full_disk_refuses_new_work_and_loses_nothing_that_was_accepted() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can mount a small disk");
        return;
    }
    let fixture = Fixture::without_repository();
    let disk = SmallDisk::mount(fixture.path("small"));
    // More than a node takes at once, so that some wait in the queue when the disk is full.
    let service = Service::launch(&fixture, disk.path(), "main", &["--capacity", "1"]);
    service.until_ready();
    let client = service.client();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let create = || runtime.block_on(client.create_run(&quick(), None));
    let is_told_by_health = || {
        disk.fill_nearly();
        let health = runtime.block_on(client.health()).expect("health is answered");
        health.reasons.iter().any(|reason| reason.contains("the disk of the state folder has"))
    };
    wait_until(IN_TIME, "health says that the disk is nearly full", is_told_by_health);
    let is_told_by_doctor = || {
        disk.fill_nearly();
        let mut doctor = fixture.command();
        doctor.args(["sandbox", "doctor", "--json"]).env("COFFERDAM_HOME", disk.path());
        let said = doctor.output().expect("the binary can be started").stdout;
        String::from_utf8(said).expect("JSON is text").contains(" % free (")
    };
    wait_until(IN_TIME, "doctor says that the disk is nearly full", is_told_by_doctor);
    let nearly = disk.fill_nearly();
    create().expect("work is still taken");
    fs::remove_file(nearly).expect("our own file");
    let mut accepted: Vec<RunId> = (0..8).map(|_| create().expect("there is space").id).collect();
    let filling = disk.fill();
    // What the log has space for already may still be accepted, and then it counts.
    let refused = loop {
        match create() {
            Ok(run) => accepted.push(run.id),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.code(), Some(ErrorCode::StoreUnavailable), "{refused}");
    runtime.block_on(client.health()).expect("health is answered in any case");
    fs::remove_file(filling).expect("our own file");
    wait_until(IN_TIME, "work is taken again", || create().is_ok());

    // A run that the full disk hit in its middle may have failed, and says so: what counts is that each has its end.
    for run in &accepted {
        let ended = || runtime.block_on(client.run(run)).is_ok_and(|run| run.state.is_final());
        wait_until(IN_TIME, "what was accepted ends", ended);
        let record = runtime.block_on(client.run(run)).expect("it is on record");
        assert!(record.outcome.is_some() && record.finished_at_ms.is_some(), "{record:?}");
    }
    service.stop();
    // A broker finishes what it has after its supervisor, which does not wait for it.
    wait_until(IN_TIME, "the broker ends by itself", || brokers_of(disk.path()).is_empty());
    let mut left = leftovers(disk.path());
    left.retain(|found| !found.contains(" - tmpfs "));
    assert_eq!(left, Vec::<String>::new());
}
