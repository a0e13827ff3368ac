//! A hostile program in the sandbox: every attempt is stopped by the wall that is named for it, and every
//! bad habit ends in one true outcome with nothing left.

use std::path::Path;
use std::time::Duration;

use cofferdam_attacks::behaviours::FORGED_EVENT;
use cofferdam_core::Wall;
use cofferdam_e2e::attack_suite::{
    Backend, Exact, Inside, attack, events, hostile_program, messages, without_walls,
};
use cofferdam_e2e::containers::{ContainerMode, DOCKER, InContainers};
use cofferdam_e2e::{Finished, Fixture, Marks};

#[test]
fn every_backend_stops_every_attempt_with_the_wall_named_for_it() {
    attack(&[NATIVE, container("docker", &["--mode", "docker"], &DOCKER)]);
}

const NATIVE: Backend = Backend {
    name: "native",
    flags: &["--mode", "native"],
    containers: None,
    inside: Inside::NATIVE,
    // There is no /sys at all, /proc belongs to nobody inside, and the network is another one.
    exact: &[
        exact("cgroup_release_agent", Wall::Mounts, "ENOENT"),
        exact("cgroup_notify_on_release", Wall::Mounts, "ENOENT"),
        exact("leave_cgroup", Wall::Mounts, "ENOENT"),
        exact("write_sys", Wall::Mounts, "ENOENT"),
        exact("core_pattern", Wall::User, "EACCES"),
        exact("sysrq_trigger", Wall::User, "EACCES"),
        exact("write_sysctl", Wall::User, "EACCES"),
        exact("host_abstract_socket", Wall::Network, "ECONNREFUSED"),
    ],
};

const fn container(
    name: &'static str,
    flags: &'static [&'static str],
    mode: &'static ContainerMode,
) -> Backend {
    Backend { name, flags, containers: Some(mode), inside: Inside::CONTAINER, exact: IN_A_CONTAINER }
}

/// Engines show /sys and /proc, read-only. Where their files are root's, that answers first.
const IN_A_CONTAINER: &[Exact] = &[
    exact("become_root", Wall::User, "EPERM"),
    exact("cgroup_notify_on_release", Wall::User, "EACCES"),
    exact("leave_cgroup", Wall::User, "EACCES"),
    exact("write_sys", Wall::Mounts, "EROFS"),
    exact("core_pattern", Wall::User, "EACCES"),
    exact("sysrq_trigger", Wall::User, "EACCES"),
    exact("write_sysctl", Wall::Mounts, "EROFS"),
    exact("host_abstract_socket", Wall::Network, "ECONNREFUSED"),
];

const fn exact(attempt: &'static str, wall: Wall, errno: &'static str) -> Exact {
    Exact { attempt, wall, errno }
}

/// What shows that it was Cofferdam, and not the engine, that stopped them.
#[test]
fn in_a_careless_container_every_attempt_succeeds() {
    without_walls(&DOCKER);
}

/// No wall stands between an agent and a socket that it was given, so it is not given.
#[test]
fn a_container_that_would_be_given_the_engine_is_refused() {
    let Some(stage) = InContainers::new(&DOCKER) else { return };
    let marks = Marks::new(&stage.fixture);
    let socket = stage.engine.address().trim_start_matches("unix://");
    let folder = Path::new(socket).parent().expect("a socket is in a folder").display().to_string();
    for path in [socket, &folder] {
        for access in ["ro", "rw"] {
            let given = format!("{path}:{access}");
            let finished = stage.run(&["--mount", &marks.mount(), "--mount", &given], &marks.script("true"));
            assert_eq!(finished.code, Some(3), "{given}: {}", finished.stderr);
            assert!(finished.stderr.contains("whoever reaches it is root"), "{given}: {}", finished.stderr);
        }
    }
    assert_eq!(marks.starts(), 0, "something was started");
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
