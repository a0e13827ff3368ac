//! `--server`: the same commands, done by a service, shown in the same way.

use std::time::Duration;

use cofferdam_e2e::processes::{is_alive, wait_until};
use cofferdam_e2e::{Finished, Fixture, Service};
use cofferdam_test_marks::{limits, once};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const IN_TIME: Duration = Duration::from_secs(60);
const SCRIPT: &str = "echo working; echo more >> README.md";

fn said(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

fn start(fixture: &Fixture) -> (Service, String) {
    let service = Service::start(fixture, &[]);
    let url = service.url();
    (service, url)
}

/// `cofferdam run` as somebody at a terminal types it.
fn run(fixture: &Fixture, flags: &[&str], script: &str) -> Finished {
    let words = ["run"].into_iter().chain(flags.iter().copied()).chain(["--", "sh", "-c", script]);
    fixture.cofferdam(words)
}

/// Whether this machine holds runs to their limits, which a service needs.
fn limits_hold(fixture: &Fixture) -> bool {
    !fixture.run(&[], "true").json()["seal"]["outside"]["cgroup"].is_null()
}

#[limits]
#[test]
fn a_run_of_a_service_looks_like_one_of_this_machine() {
    let fixture = Fixture::new();
    let limits_hold = limits_hold(&fixture);
    let (service, url) = start(&fixture);
    let there = run(&fixture, &["--server", &url], SCRIPT);
    if !limits_hold {
        assert_eq!(there.code, Some(3), "without limits nothing is run for others: {}", there.stderr);
        assert!(there.stderr.contains("limits"), "{}", there.stderr);
        service.stop();
        return;
    }
    let here = run(&fixture, &[], SCRIPT);
    assert_eq!((there.code, said(&there.stdout)), (Some(0), said(&here.stdout)), "{}", there.stderr);
    for line in
        ["| working", "cofferdam: succeeded (", "cofferdam: sealed", "cofferdam: more: cofferdam runs show"]
    {
        assert!(there.stderr.contains(line) && here.stderr.contains(line), "{line}: {}", there.stderr);
    }
    let failed = fixture.run(&["--server", &url], "exit 7");
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    let late = fixture.run(&["--server", &url, "--timeout", "1s"], "sleep 60");
    assert_eq!(late.code, Some(4), "{}", late.stderr);

    let run = fixture.run(&["--server", &url], SCRIPT).run_id();
    for command in [
        &["show"][..],
        &["events"],
        &["diff"],
        &["show", "--json"],
        &["events", "--json"],
        &["diff", "--json"],
    ] {
        let (name, flags) = command.split_first().expect("a command");
        let local = fixture.cofferdam(["runs", name, &run].iter().chain(flags));
        let served = fixture.cofferdam(["runs", name, &run, "--server", &url].iter().chain(flags));
        assert_eq!(served.code, Some(0), "{}", served.stderr);
        // What is told of its age differs by the moment between the two.
        let without_age = |output: &[u8]| -> Vec<String> {
            said(output).lines().filter(|line| !line.starts_with("accepted")).map(str::to_owned).collect()
        };
        assert_eq!(without_age(&served.stdout), without_age(&local.stdout), "{command:?}");
    }
    let listed = fixture.cofferdam(["runs", "list", "--json", "--server", &url]);
    assert_eq!(listed.json(), fixture.cofferdam(["runs", "list", "--json"]).json());

    // A damaged record: what the service writes as the outcome is lost.
    let database = rusqlite::Connection::open(fixture.state().join("cofferdam.db")).expect("the record");
    let lose = "CREATE TRIGGER lose AFTER UPDATE OF outcome ON runs WHEN NEW.outcome IS NOT NULL \
                BEGIN UPDATE runs SET outcome = NULL WHERE id = NEW.id; END";
    database.execute_batch(lose).expect("a trigger");
    let unknown = fixture.run(&["--server", &url], SCRIPT);
    assert_eq!(unknown.code, Some(70), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("it is unknown how run_"), "{}", unknown.stderr);
    drop(database);
    service.stop();
}

#[once]
#[test]
fn a_second_ctrl_c_leaves_a_run_that_the_service_goes_on_cancelling() {
    let fixture = Fixture::new();
    if !limits_hold(&fixture) {
        return;
    }
    let (service, url) = start(&fixture);
    let mut running = fixture.start(&["--server", &url], "echo ready; sleep 600");
    running.wait_for("| ready");
    // A dispatcher that hears of nothing: the run lasts for as long as this test needs it.
    let dispatcher =
        Pid::from_raw(service.child("dispatcher").cast_signed()).expect("a process id is positive");
    kill_process(dispatcher, Signal::STOP).expect("it runs");
    running.signal(Signal::INT);
    running.wait_for("asking the service to cancel the run");
    running.signal(Signal::INT);
    wait_until(IN_TIME, "the command leaves", || !is_alive(running.pid()));
    kill_process(dispatcher, Signal::CONT).expect("it runs");
    let left = running.finish();
    assert_eq!(left.code, Some(5), "{}", left.stderr);
    assert!(!left.stderr.contains("killing"), "{}", left.stderr);
    assert!(left.stderr.contains(" is being cancelled by http://"), "{}", left.stderr);
    let run = left.stderr.split_whitespace().find(|word| word.starts_with("run_")).expect("its id is told");
    assert!(left.stderr.contains(&format!("cofferdam runs show {run} --server {url}")), "{}", left.stderr);
    wait_until(IN_TIME, "the service cancels the run", || {
        fixture.cofferdam(["runs", "show", "--json", run, "--server", &url]).json()["state"] == "cancelled"
    });
    service.stop();
}

#[once]
#[test]
fn a_key_opens_what_it_is_for_until_it_is_revoked() {
    let mut fixture = Fixture::new();
    let (service, url) = start(&fixture);
    let made = fixture.cofferdam(["keys", "create", "--name", "ci", "--scopes", "read", "--json"]).json();
    let text = |field: &str| made[field].as_str().expect("a text").to_owned();
    let (id, key) = (text("id"), text("key"));
    let listed = fixture.cofferdam(["keys", "list"]);
    assert!(said(&listed.stdout).contains(&id) && !said(&listed.stdout).contains(&key));

    fixture.set_env("COFFERDAM_API_KEY", &key);
    fixture.set_env("COFFERDAM_SERVER", &url);
    assert_eq!(fixture.cofferdam(["runs", "list", "--json"]).json(), Value::Array(Vec::new()));
    let refused = fixture.run(&[], "true");
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("does not have the scope `run`"), "{}", refused.stderr);

    // Revoking is done by the service too, and needs another key than this one.
    let refused = fixture.cofferdam(["keys", "revoke", &id]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    fixture.set_env("COFFERDAM_API_KEY", &service.key());
    assert_eq!(fixture.cofferdam(["keys", "revoke", &id]).code, Some(0));
    let unknown = fixture.cofferdam(["keys", "revoke", "key_00000000000000000000000000"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.stderr);
    fixture.set_env("COFFERDAM_API_KEY", &key);
    wait_until(IN_TIME, "the key opens nothing", || fixture.cofferdam(["runs", "list"]).code == Some(3));
    service.stop();
}

#[once]
#[test]
fn what_cannot_be_done_from_afar_is_told() {
    let fixture = Fixture::new();
    let nobody = fixture.cofferdam(["runs", "list", "--server", "http://127.0.0.1:1"]);
    assert_eq!(nobody.code, Some(3), "{}", nobody.stderr);
    assert!(
        nobody.stderr.contains("does not answer") && nobody.stderr.contains("hint:"),
        "{}",
        nobody.stderr
    );
    let nonsense = fixture.cofferdam(["runs", "list", "--server", "nonsense"]);
    assert_eq!(nonsense.code, Some(2), "{}", nonsense.stderr);
    let folder = fixture.run(&["--server", "http://cofferdam.invalid:1"], "true");
    assert_eq!(folder.code, Some(2), "{}", folder.stderr);
    assert!(folder.stderr.contains("folder of this machine"), "{}", folder.stderr);
}

#[once]
#[test]
fn what_is_the_operators_is_done_by_a_service_as_it_is_here() {
    let fixture = Fixture::new();
    let (service, url) = start(&fixture);
    let made = fixture.cofferdam(["keys", "create", "--name", "ci", "--json", "--server", &url]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let made = made.json();
    let (id, key) = (made["id"].as_str().expect("an id"), made["key"].as_str().expect("a key"));
    let list = |flags: &[&str]| fixture.cofferdam(["keys", "list", "--json"].iter().chain(flags)).json();
    let listed = list(&["--server", &url]);
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "the first start's and this one: {listed}");
    assert!(listed.to_string().contains(id) && !listed.to_string().contains(key), "{listed}");
    let mut by_it = fixture.command();
    by_it.args(["keys", "list", "--server", &url]).env("COFFERDAM_API_KEY", key);
    let by_it = Finished::of(by_it);
    assert_eq!(by_it.code, Some(3), "{}", by_it.stderr);
    assert!(by_it.stderr.contains("scope `system`"), "{}", by_it.stderr);
    let revoked = fixture.cofferdam(["keys", "revoke", id, "--server", &url]);
    assert_eq!(revoked.code, Some(0), "{}", revoked.stderr);
    assert!(list(&[]).as_array().expect("a list").iter().any(|key| !key["revoked_at_ms"].is_null()));
    let nobody = "key_00000000000000000000000000";
    for place in [&["--server", &url][..], &[]] {
        let unknown = fixture.cofferdam(["keys", "revoke", nobody].iter().chain(place));
        assert_eq!(unknown.code, Some(2), "{}", unknown.stderr);
        assert!(unknown.stderr.contains("there is no key"), "{}", unknown.stderr);
    }

    let run = fixture.run(&[], SCRIPT).run_id();
    for place in [&["--server", &url][..], &[]] {
        let late = fixture.cofferdam(["runs", "allow", &run, "npm"].iter().chain(place));
        assert_eq!(late.code, Some(3), "{}", late.stderr);
        assert!(late.stderr.contains("has ended") && late.stderr.contains("runs show"), "{}", late.stderr);
    }
    let removed = fixture.cofferdam(["runs", "rm", &run, "--server", &url]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    assert!(!fixture.state().join("runs").join(&run).exists());
    let gone = fixture.cofferdam(["runs", "show", &run]);
    assert!(gone.code == Some(2) && gone.stderr.contains("there is no run"), "{}", gone.stderr);

    let shown = fixture.cofferdam(["sandbox", "show", "--json", "--server", &url]).json();
    assert_eq!(shown["settings"]["sandbox"]["mode"], "native", "{shown}");
    let trusted = fixture.cofferdam(["trust", "list", "--json", "--server", &url]).json();
    assert_eq!(trusted, fixture.cofferdam(["trust", "list", "--json"]).json());
    service.stop();
}
