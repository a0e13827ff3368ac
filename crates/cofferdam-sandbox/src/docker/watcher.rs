//! The process that supervises a container of an engine. It owns nothing of the container: if it dies, the container goes on,
//! and whoever opens the sandbox next starts another.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use super::driver::EngineDriver;
use super::plan::ContainerPlan;
use crate::clock::now_ms;
use crate::folder::{Folder, Record};
use crate::linux::{ProcessRecord, watch_descriptor};
use crate::supervision::{Supervisor, Watch, WatchPlan};

/// Starts the watcher of a container. An attached one ends when the returned pipe is closed.
pub(super) fn start(folder: &Folder, binary: &Path, attached: bool) -> io::Result<Option<ChildStdin>> {
    let mut command = Command::new(binary);
    let errors = OpenOptions::new().create(true).append(true).open(folder.worker_errors())?;
    command.arg("watcher").arg(folder.path()).env_clear().stdout(Stdio::null()).stderr(errors);
    command.stdin(if attached { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn()?;
    let owner = child.stdin.take();
    // Whoever ends first, it is waited for, so that it does not stay as a zombie.
    std::thread::spawn(move || child.wait());
    Ok(owner)
}

/// Makes sure that somebody watches. Returns a new watcher's pipe, as [`start`] does: whoever is not the owner of an
/// attached container drops it, and so ends what has no owner any more.
pub(super) fn ensure(folder: &Folder, binary: &Path, attached: bool) -> io::Result<Option<ChildStdin>> {
    if folder.has(Record::Exit) || living(folder)?.is_some() {
        return Ok(None);
    }
    // One that was asked for just now has not said so yet; two of them do no harm, since they only watch.
    let owner = start(folder, binary, attached)?;
    for _ in 0..200 {
        if folder.has(Record::Exit) || living(folder)?.is_some() {
            return Ok(owner);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(io::Error::other("the watcher did not start"))
}

fn living(folder: &Folder) -> io::Result<Option<ProcessRecord>> {
    let record: Option<ProcessRecord> = folder.read(Record::Process)?;
    Ok(record.filter(|record| record.is_alive()))
}

/// Waits until the watcher is gone.
pub(super) async fn ended(folder: &Folder) -> io::Result<()> {
    let Some(watcher) = living(folder)?.map(ProcessRecord::hold).transpose()?.flatten() else {
        return Ok(());
    };
    let watcher = watch_descriptor(watcher.into())?;
    let _ready = watcher.readable().await?;
    Ok(())
}

/// Waits for the watcher of a container that is gone, and ends it if it does not notice.
pub(super) async fn end(folder: &Folder, within: Duration) -> io::Result<()> {
    if tokio::time::timeout(within, ended(folder)).await.is_ok() {
        return Ok(());
    }
    if let Some(record) = living(folder)? {
        record.kill()?;
    }
    ended(folder).await
}

/// The role: watches the container whose folder is named, and records its end.
#[must_use]
pub fn watcher_main(folder: &Path) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let watched = runtime.and_then(|runtime| runtime.block_on(watch(folder)));
    match watched {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cofferdam watcher: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn watch(folder: &Path) -> io::Result<()> {
    let folder = Folder::at(folder)?;
    let plan: ContainerPlan = folder.read(Record::Container)?.ok_or(io::ErrorKind::NotFound)?;
    // A terminal's signals are for the process in front of it, and it passes them on.
    let _ = rustix::process::setsid();
    std::env::set_current_dir("/")?;
    folder.write(Record::Process, &ProcessRecord::own()?)?;
    let watch = WatchPlan {
        timeout: Duration::from_millis(plan.deadline_ms.saturating_sub(now_ms())),
        grace: Duration::from_millis(plan.policy.grace_ms),
        watched: plan.watched.clone(),
        most_bytes: plan.most_bytes,
        memory_bytes: None,
    };
    let (watch, attached) = (Watch::start(watch, Instant::now())?, plan.attached);
    let driver = EngineDriver::new(folder.clone(), plan);
    Supervisor::new(folder, driver, watch, attached)?.run().await
}
