//! A hostile program in the sandbox: every attempt is stopped by the wall that is named for it, and every
//! bad habit ends in one true outcome with nothing left.

use std::time::Duration;

use cofferdam_attacks::behaviours::FORGED_EVENT;
use cofferdam_e2e::attack_suite::{Backend, Inside, attack, events, hostile_program, messages};
use cofferdam_e2e::{Finished, Fixture};

#[test]
fn native_stops_every_attempt_with_the_wall_named_for_it() {
    attack(&Backend {
        name: "native",
        flags: &["--mode", "native"],
        inside: Inside::SEALED,
        exact: &[
            // There is no /sys at all, /proc belongs to nobody inside, and the network is another one.
            ("cgroup_release_agent", "ENOENT"),
            ("leave_cgroup", "ENOENT"),
            ("core_pattern", "EACCES"),
            ("sysrq_trigger", "EACCES"),
            ("write_sysctl", "EACCES"),
            ("host_abstract_socket", "ECONNREFUSED"),
        ],
    });
}

/// Runs the hostile program with one behaviour.
fn misbehave(fixture: &Fixture, flags: &[&str], behaviour: &[&str]) -> Finished {
    let (tools, program) = hostile_program(fixture);
    let mut args = vec!["run", "--json", "--mount", &tools];
    args.extend(flags);
    args.extend(["--", &program]);
    args.extend(behaviour);
    fixture.cofferdam(&args)
}

/// Not for ever. How soon each cause becomes an outcome is for tests that run alone; these share a machine.
const SOON: Duration = Duration::from_secs(30);

#[test]
fn forged_worker_lines_arrive_as_messages_and_not_as_events() {
    let fixture = Fixture::new();
    let finished = misbehave(&fixture, &[], &["forge"]);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let events = events(&fixture, &finished.run_id());
    assert_eq!(messages(&events).collect::<Vec<_>>(), [FORGED_EVENT]);
    let finishes = events.iter().filter(|event| event["type"] == "agent.finished").count();
    assert_eq!(finishes, 1, "{events:#?}");
}

/// The exit status of an agent that printed a success is still its own.
#[test]
fn a_forged_success_does_not_hide_a_failure() {
    let fixture = Fixture::new();
    let finished = fixture.run(&[], &format!("echo '{FORGED_EVENT}'; exit 3"));
    assert_eq!(finished.outcome(), "failed/agent", "{}", finished.stderr);
    assert_eq!(finished.json()["outcome"]["exit_code"], 3);
}

#[test]
fn a_fork_bomb_is_held_and_leaves_nothing() {
    let fixture = Fixture::new();
    let finished = misbehave(&fixture, &["--pids", "64"], &["fork", "5000"]);
    // A cgroup counts how often it refused; without one the program alone knows.
    let held_by_a_group = !finished.json()["seal"]["outside"]["cgroup"].is_null();
    let expected = if held_by_a_group { "failed/pids_limit" } else { "failed/agent" };
    assert_eq!(finished.outcome(), expected, "{}", finished.stderr);
    assert!(finished.took < SOON, "{:?}", finished.took);
}

#[test]
fn a_memory_bomb_ends_as_out_of_memory() {
    let fixture = Fixture::new();
    let finished = misbehave(&fixture, &["--memory", "256MiB"], &["memory", "1073741824"]);
    assert_eq!(finished.outcome(), "failed/out_of_memory", "{}", finished.stderr);
    assert!(finished.took < SOON, "{:?}", finished.took);
}

#[test]
fn filling_the_disk_ends_at_the_limit() {
    let fixture = Fixture::new();
    for folder in ["/workspace", "/home/worker", "/tmp"] {
        let finished = misbehave(&fixture, &["--disk", "64MiB"], &["disk", "2147483648", folder]);
        assert!(
            ["failed/disk_limit", "failed/agent"].contains(&finished.outcome().as_str()),
            "{folder}: {}",
            finished.stderr
        );
        assert!(finished.took < SOON, "{folder}: {:?}", finished.took);
    }
}

#[test]
fn exhausting_descriptors_hurts_the_agent_alone() {
    let fixture = Fixture::new();
    let finished = misbehave(&fixture, &[], &["fds", "100000"]);
    assert_eq!(finished.outcome(), "failed/agent", "{}", finished.stderr);
}

#[test]
fn huge_output_and_an_endless_line_end_at_the_limit() {
    let fixture = Fixture::new();
    for behaviour in ["output", "line"] {
        let finished = misbehave(&fixture, &[], &[behaviour, "500000000"]);
        assert_eq!(finished.outcome(), "failed/output_limit", "{behaviour}: {}", finished.stderr);
    }
}

#[test]
fn a_process_that_wants_to_outlive_the_agent_does_not() {
    let fixture = Fixture::new();
    let finished = misbehave(&fixture, &[], &["outlive", "600"]);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert!(finished.took < SOON, "{:?}", finished.took);
}
