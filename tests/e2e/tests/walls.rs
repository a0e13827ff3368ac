//! Each wall is taken away in turn: the measured seal must name it, and the agent must not start.

use cofferdam_e2e::containers::{DOCKER, InContainers};
use cofferdam_e2e::{Finished, Fixture, Marks, Record};
use cofferdam_test_marks::limits;

/// Runs with these walls taken away. The agent leaves a mark if it starts.
fn run_without(walls: &str) -> (Finished, Record, usize) {
    let mut fixture = Fixture::new();
    fixture.set_env("COFFERDAM_WITHOUT", walls);
    let marks = Marks::new(&fixture);
    let finished = fixture.run(&["--mount", &marks.mount()], &marks.script("echo more >> README.md"));
    let record = Record::of_the_only_run(&fixture);
    record.assert_ended_once();
    (finished, record, marks.starts())
}

/// The walls that the recorded seal says are missing.
fn breached(record: &Record) -> Vec<String> {
    let sealed = record.data_of("sandbox.sealed");
    let breaches = sealed.first().and_then(|data| data["breaches"].as_array().cloned()).unwrap_or_default();
    breaches.iter().filter_map(|breach| breach["wall"].as_str().map(str::to_owned)).collect()
}

macro_rules! wall_tests {
    ($($name:ident: $walls:literal => $named:literal;)+) => {
        $(#[limits]
        #[test]
        fn $name() {
            is_noticed($walls, $named);
        })+
    };
}

wall_tests! {
    a_shared_ipc_namespace_is_noticed: "namespaces:ipc" => "namespaces";
    a_shared_host_name_is_noticed: "namespaces:uts" => "namespaces";
    a_shared_cgroup_namespace_is_noticed: "namespaces:cgroup" => "namespaces";
    a_shared_network_is_noticed: "namespaces:net" => "network";
    root_inside_is_noticed: "user" => "user";
    capabilities_are_noticed: "capabilities" => "capabilities";
    new_privileges_are_noticed: "no_new_privileges,seccomp,landlock" => "no_new_privileges";
    a_missing_filter_is_noticed: "seccomp" => "seccomp";
    missing_file_rules_are_noticed: "landlock" => "landlock";
    a_writable_root_is_noticed: "mounts" => "mounts";
    a_writable_system_is_noticed: "mounts:system" => "mounts";
    open_files_without_a_limit_are_noticed: "limits:files" => "limits";
    a_disk_that_nobody_watches_is_noticed: "limits:disk" => "limits";
    limits_that_nobody_holds_are_noticed: "limits:cgroup" => "limits";
}

fn is_noticed(walls: &str, named: &str) {
    let (finished, record, starts) = run_without(walls);
    println!("without {walls}: {:?}", breached(&record));
    assert_eq!(starts, 0, "the agent was started");
    assert_eq!(finished.outcome(), "failed/seal", "{}", finished.stderr);
    assert_eq!(finished.code, Some(3), "{}", finished.stderr);
    assert!(breached(&record).iter().any(|wall| wall == named), "{:?}", breached(&record));
    let message = record.shown["outcome"]["message"].as_str().unwrap_or_default();
    assert!(message.contains(named), "{message}");
    // What was taken away, and nothing else, is what the seal says is missing.
    let taken: Vec<&str> = walls.split([',', ':']).collect();
    for wall in breached(&record) {
        assert!(wall == named || taken.contains(&wall.as_str()), "{wall} is missing, without {walls}");
    }
}

/// Without these there is no sandbox to measure: the launcher cannot go on.
#[limits]
#[test]
fn without_a_namespace_that_the_launcher_needs_there_is_no_run() {
    for kind in ["user", "mnt", "pid"] {
        let (finished, record, starts) = run_without(&format!("namespaces:{kind}"));
        println!("without namespaces:{kind}: {} {:?}", finished.outcome(), breached(&record));
        assert_eq!(starts, 0, "the agent was started without a {kind} namespace");
        assert!(
            ["failed/seal", "failed/sandbox", "failed/refused"].contains(&finished.outcome().as_str()),
            "{}: {}",
            finished.outcome(),
            finished.stderr
        );
    }
}

/// In a container the worker's walls are ours; those of the engine are named to it one by one.
#[limits]
#[test]
fn a_wall_that_is_missing_in_a_container_is_noticed() {
    for (walls, named) in [
        ("no_new_privileges,seccomp,landlock", "seccomp"),
        ("seccomp", "seccomp"),
        ("landlock", "landlock"),
        ("limits:files", "limits"),
    ] {
        let Some(mut stage) = InContainers::new(&DOCKER) else { return };
        stage.fixture.set_env("COFFERDAM_WITHOUT", walls);
        let marks = Marks::new(&stage.fixture);
        let finished = stage.run(&["--mount", &marks.mount()], &marks.script("echo more >> README.md"));
        assert_eq!(marks.starts(), 0, "the agent was started without {walls}");
        assert_eq!(
            (finished.outcome().as_str(), finished.code),
            ("failed/seal", Some(3)),
            "{}",
            finished.stderr
        );
        let record = Record::of_the_only_run(&stage.fixture);
        assert!(breached(&record).iter().any(|wall| wall == named), "{walls}: {:?}", breached(&record));
    }
}

#[limits]
#[test]
fn with_every_wall_the_agent_starts() {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let finished = fixture.run(&["--mount", &marks.mount()], &marks.script("echo more >> README.md"));
    assert_eq!((finished.outcome().as_str(), finished.code), ("succeeded", Some(0)), "{}", finished.stderr);
    assert_eq!((marks.starts(), marks.ends()), (1, 1));
    assert!(breached(&Record::of_the_only_run(&fixture)).is_empty());
}
