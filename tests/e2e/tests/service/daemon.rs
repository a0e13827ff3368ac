//! `cofferdam start`, `stop`, `restart`, `status` and `logs`.

use cofferdam_e2e::processes::{is_alive, wait_until};
use cofferdam_e2e::{Fixture, Service};
use cofferdam_test_marks::once;
use serde_json::Value;

use crate::service::stage::{IN_TIME, Stage};

fn status(fixture: &Fixture) -> Value {
    fixture.cofferdam(["status", "--json"]).json()
}

fn said(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

#[once]
#[test]
fn a_service_in_the_background_is_started_told_about_and_stopped() {
    let stage = Stage::new();
    let fixture = &stage.fixture;
    let stopped = fixture.cofferdam(["status"]);
    assert_eq!((stopped.code, said(&stopped.stdout)), (Some(1), "main: stopped\n".to_owned()));
    let started = fixture.cofferdam(["start"]);
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    assert!(said(&started.stdout).starts_with("main: running (pid "), "{}", said(&started.stdout));
    assert!(started.stderr.contains("curl -X POST http://127.0.0.1:"), "{}", started.stderr);
    let now = status(fixture);
    assert_eq!((&now["state"], &now["ready"]), (&"running".into(), &true.into()));
    let pid = u32::try_from(now["pid"].as_u64().expect("a process")).expect("a process id");
    assert!(is_alive(pid));

    let again = fixture.cofferdam(["start"]);
    assert_eq!(again.code, Some(3), "{}", again.stderr);
    assert!(again.stderr.contains(&format!("runs already (pid {pid})")), "{}", again.stderr);

    let run = stage.enqueue_held();
    stage.agent_works();
    let restarted = fixture.cofferdam(["restart"]);
    assert_eq!(restarted.code, Some(0), "{}", restarted.stderr);
    assert!(!restarted.stderr.contains("curl"), "a key is made once: {}", restarted.stderr);
    assert_ne!(status(fixture)["pid"], pid);
    assert!(!is_alive(pid));
    wait_until(IN_TIME, "the run is taken up again", || stage.was_adopted(&run));
    stage.release();
    stage.ends_as_one(&run);

    let logs = fixture.cofferdam(["logs", "--role", "work"]);
    assert!(said(&logs.stdout).contains("going on with a run that was under way"), "{}", said(&logs.stdout));
    let all = said(&fixture.cofferdam(["logs", "-n", "5"]).stdout);
    assert!(all.lines().any(|line| line.starts_with("serve      | ")), "{all}");
    let stopped = fixture.cofferdam(["stop"]);
    assert_eq!((stopped.code, said(&stopped.stdout)), (Some(0), "stopped `main`\n".to_owned()));
    let none = fixture.cofferdam(["stop"]);
    assert_eq!((none.code, said(&none.stdout)), (Some(0), "`main` does not run\n".to_owned()));
    assert_eq!(status(fixture)["state"], "stopped");
}

#[once]
#[test]
fn a_service_that_does_not_come_up_says_why() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.state()).expect("a new folder");
    std::fs::write(fixture.state().join("settings.json"), r#"{"service": {"capacity": 0}}"#)
        .expect("a new file");
    let started = fixture.cofferdam(["start"]);
    assert_eq!(started.code, Some(1), "{}", started.stderr);
    assert!(started.stderr.contains("service.capacity: `0` is not a whole number"), "{}", started.stderr);
    assert!(started.stderr.contains("the service did not come up"), "{}", started.stderr);
}

#[once]
#[test]
fn one_name_is_one_node() {
    let fixture = Fixture::new();
    let service = Service::start(&fixture, &[]);
    let second = fixture.cofferdam(["serve"]);
    assert_eq!(second.code, Some(3), "{}", second.stderr);
    assert!(second.stderr.contains("the service `main` runs already"), "{}", second.stderr);
    let _ = service.child("dispatcher");
    let worker = fixture.cofferdam(["work"]);
    assert_eq!(worker.code, Some(3), "{}", worker.stderr);
    assert!(
        worker.stderr.contains("there is a node named `main` in this state folder already"),
        "{}",
        worker.stderr
    );
    assert!(worker.stderr.contains("--name second"), "{}", worker.stderr);
    service.stop();
}

#[once]
#[test]
fn flags_that_make_no_sense_say_what_to_type() {
    let fixture = Fixture::new();
    for (arguments, expected) in [
        (["work", "--roles", "boss"], "is not a role"),
        (["work", "--capacity", "0"], "is not a whole number between 1 and 10000"),
        (["serve", "--name", "a/b"], "is not the name of a node"),
        (["work", "--drain", "1d"], "is not a whole number between 0 and 86400"),
        (["serve", "--listen", "localhost"], "invalid socket address"),
    ] {
        let refused = fixture.cofferdam(arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{arguments:?}: {}", refused.stderr);
    }
}
