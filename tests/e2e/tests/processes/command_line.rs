//! `cofferdam ps`, on this machine and by a service.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Finished, Fixture, Service};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use super::http::get;
use crate::service::stage::IN_TIME;

/// `cofferdam ps FLAGS`, which succeeds.
fn ps(fixture: &Fixture, flags: &[&str], place: &[&str]) -> Finished {
    let said = fixture.cofferdam(["ps"].iter().chain(flags).chain(place));
    assert_eq!(said.code, Some(0), "ps {flags:?} {place:?}: {}", said.stderr);
    said
}

#[once]
#[test]
fn everything_is_done_by_a_service_as_it_is_on_this_machine() {
    let fixture = Fixture::new();
    let service = Service::start(&fixture, &[]);
    let _ = (service.child("dispatcher"), service.child("broker"));
    let url = service.url();
    let process = || get(&service, "/dispatcher")["process"].clone();
    for place in [&[][..], &["--server", &url]] {
        let running = || process()["status"] == "running" && process()["desired"] == "running";
        wait_until(IN_TIME, "the dispatcher runs", running);
        let listed = ps(&fixture, &["--json"], place).json();
        let names: Vec<&Value> = listed.as_array().expect("a list").iter().map(|one| &one["name"]).collect();
        assert_eq!(json!(names), json!(["dispatcher", "broker", "worker-1", "tester-1", "docser-1"]));
        let log = ps(&fixture, &["logs", "dispatcher", "-n", "1000", "--json"], place).json();
        assert!(log.to_string().contains("working"), "{log:#}");

        let stopped = ps(&fixture, &["stop", "dispatcher", "--json"], place).json();
        assert_eq!(stopped["process"]["desired"], "stopped", "{stopped:#}");
        wait_until(IN_TIME, "it stops", || process()["status"] == "stopped");
        let started = ps(&fixture, &["start", "dispatcher", "--json"], place).json();
        assert_eq!((&started["alreadyRunning"], &started["skipped"]), (&json!(false), &json!(false)));
        let again = ps(&fixture, &["start", "dispatcher", "--json"], place).json();
        assert_eq!(again["alreadyRunning"], true, "{again:#}");
        let skipped = ps(&fixture, &["start", "worker-1"], place);
        assert!(String::from_utf8_lossy(&skipped.stdout).starts_with("skipped: "), "{}", skipped.stderr);

        let all = ps(&fixture, &["stop-all", "--json"], place).json();
        assert_eq!(all["stopped"], json!(["dispatcher", "broker"]), "{all:#}");
        wait_until(IN_TIME, "it stops", || process()["status"] == "stopped");
        ps(&fixture, &["start", "dispatcher"], place);
        let unknown = fixture.cofferdam(["ps", "start", "planner"].iter().chain(place));
        assert_eq!(unknown.code, Some(2), "{}", unknown.stderr);
        assert!(unknown.stderr.contains("POST /api/v1/runs"), "{}", unknown.stderr);
    }
    service.stop();
}

#[once]
#[test]
fn a_log_is_followed_on_this_machine_and_from_a_service() {
    let fixture = Fixture::new();
    let service = Service::start(&fixture, &[]);
    let _ = service.child("dispatcher");
    let url = service.url();
    for place in [&[][..], &["--server", &url]] {
        let mut follow = fixture.command();
        follow.args(["ps", "logs", "dispatcher", "--follow", "-n", "1"]).args(place);
        let mut following = follow.stdout(Stdio::piped()).spawn().expect("the binary can be started");
        let mut lines = BufReader::new(following.stdout.take().expect("a pipe")).lines();
        lines.next().expect("the last line").expect("text");
        // What it says from now on.
        ps(&fixture, &["stop", "dispatcher"], &[]);
        ps(&fixture, &["start", "dispatcher"], &[]);
        let is_new = |line: &String| line.contains("working");
        assert!(
            lines.map_while(Result::ok).any(|line| is_new(&line)),
            "{place:?}: what is said later is printed"
        );
        following.kill().expect("it is ours");
        following.wait().expect("a child can be waited for");
    }
    service.stop();
}
