//! Every attempt is stopped by the wall that is named for it, on every backend.

use std::path::Path;

use cofferdam_core::Wall;
use cofferdam_e2e::Marks;
use cofferdam_e2e::attack_suite::{Backend, Exact, Inside, attack, attack_workspace, without_walls};
use cofferdam_e2e::containers::{APPLE_DOCKER, APPLE_PODMAN, ContainerMode, DOCKER, InContainers};
use cofferdam_test_marks::limits;

#[limits]
#[test]
fn every_backend_stops_every_attempt_with_the_wall_named_for_it() {
    attack(BACKENDS);
}

#[test]
fn every_backend_stops_every_way_to_change_a_workspace_that_is_read_only_and_none_where_it_is_not() {
    attack_workspace(BACKENDS);
}

const BACKENDS: &[Backend] = &[
    NATIVE,
    container("docker", &["--mode", "docker"], &DOCKER),
    container("apple with podman", &["--mode", "apple"], &APPLE_PODMAN),
    container("apple with docker", &["--mode", "apple"], &APPLE_DOCKER),
];

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
#[limits]
#[test]
fn in_a_careless_container_every_attempt_succeeds() {
    without_walls(&DOCKER);
}

/// No wall stands between an agent and a socket that it was given, so it is not given.
#[limits]
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
