//! What is kept of runs and for them: it is said where a service starts, and old mirrors go without one as well.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Fixture, Service};
use cofferdam_test_marks::once;

#[once]
#[test]
fn a_service_says_at_its_start_what_it_keeps_and_where_to_change_that() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.state()).expect("a folder of the test");
    let settings = r#"{"retention":{"runs_days":7,"events_days":"forever"}}"#;
    fs::write(fixture.state().join("settings.json"), settings).expect("a new file");
    let service = Service::start(&fixture, &[]);
    let said = fs::read_to_string(fixture.path("serve.stderr")).expect("the service's log");
    let lines: Vec<&str> =
        said.lines().filter(|line| line.contains("`retention` in settings.json")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].contains("runs 7 days") && lines[0].contains("events forever"), "{}", lines[0]);
    service.stop();
}

/// The state folder of somebody who never starts a service fills up all the same.
#[once]
#[test]
fn a_run_of_the_command_line_removes_old_mirrors_once_a_day() {
    let fixture = Fixture::new();
    let url = format!("file://{}", fixture.repository().display());
    let fetch = || {
        let run = fixture.run(&["--repo", &url], "cat README.md");
        assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    };
    let mirrors = fixture.state().join("mirrors");
    let count = || {
        let names = fs::read_dir(&mirrors).expect("a folder of the state").flatten();
        names.filter(|entry| entry.path().extension().is_some_and(|end| end == "git")).count()
    };
    fetch();
    assert_eq!(count(), 1);
    make_old(&mirrors, "lock");
    make_old(&fixture.state().join("checkouts"), "used");
    assert_eq!(fixture.run(&[], "true").outcome(), "succeeded");
    assert_eq!(count(), 1, "it was looked after the first run, and is not again on the same day");
    make_old(&mirrors, "cleared");
    assert_eq!(fixture.run(&[], "true").outcome(), "succeeded");
    assert_eq!(count(), 0, "the next day it is gone");
    fetch();
    assert_eq!(count(), 1);
}

/// A service that is restarted every hour removes old files all the same, and not at its very first start.
#[once]
#[test]
fn a_service_that_is_restarted_removes_what_is_due() {
    let fixture = Fixture::new();
    let run = fixture.run(&[], r"head -c 3000000 /dev/zero | tr '\0' x | fold -w 1000");
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    let settings = r#"{"retention":{"artifacts_size":"1MiB"}}"#;
    fs::write(fixture.state().join("settings.json"), settings).expect("a new file");
    let transcript = fixture.state().join("runs").join(run.run_id()).join("1/transcript.log");
    let transcript = || transcript.exists();
    let mark = fixture.state().join("service/retention");
    let service = Service::start(&fixture, &[]);
    wait_until(Duration::from_secs(60), "the node has said what it keeps", || mark.exists());
    assert!(transcript(), "there is an hour to say otherwise");
    service.stop();
    make_old(&fixture.state().join("service"), "retention");
    let service = Service::start(&fixture, &[]);
    wait_until(Duration::from_secs(60), "what is too much is removed", || !transcript());
    service.stop();
}

/// Sets the files of this name or with this end, in a folder and in the folders in it, back by a year.
fn make_old(folder: &Path, name: &str) {
    let year_ago = SystemTime::now() - Duration::from_secs(365 * 24 * 60 * 60);
    for entry in fs::read_dir(folder).expect("a folder of the state").flatten() {
        let path = entry.path();
        if path.is_dir() && path.extension().is_none() {
            make_old(&path, name);
        } else if path.extension().or(path.file_name()).is_some_and(|end| end == name) {
            let file = File::options().write(true).open(&path).expect("a file of the state");
            file.set_modified(year_ago).expect("it is ours");
        }
    }
}
