//! With the walls that a process puts around itself and nothing else: no namespace, no mount. Each attempt
//! must be stopped by its wall, and must not look stopped by it when that wall is missing.

use std::os::unix::process::CommandExt as _;

use cofferdam_attacks::{Ending, Report, find};
use cofferdam_core::{Wall, WallPlan};

use crate::fixture::{As, Host};

fn all_walls(host: &Host) -> WallPlan {
    WallPlan {
        no_new_privileges: true,
        seccomp: true,
        landlock_writable: Some(vec![host.target.workspace.to_str().unwrap().to_owned()]),
        open_files: Some(1000),
        // Of all processes of this user on the machine, which without a user namespace are counted together.
        processes: Some(200),
        file_bytes: None,
    }
}

/// Every attempt behind the walls, by an ordinary user.
#[expect(unsafe_code, reason = "the walls must be entered between fork and exec")]
fn attack(host: &Host, plan: WallPlan) -> Vec<Report> {
    host.attack(|command| {
        // SAFETY: this test has one thread, so that the child may allocate as its parent may.
        unsafe {
            command.pre_exec(move || {
                cofferdam_walls::enter(&plan).map_err(|error| std::io::Error::other(error.to_string()))
            });
        }
    })
}

pub(crate) fn the_walls_stop_what_is_theirs() {
    let host = Host::new(As::Nobody);
    let reports = attack(&host, all_walls(&host));
    let own = [Wall::Seccomp, Wall::Landlock, Wall::NoNewPrivileges, Wall::Limits, Wall::User];
    let complaints: Vec<String> = reports
        .iter()
        .filter(|report| own.contains(&report.wall))
        .filter_map(|report| find(&report.name).unwrap().judge(report).err())
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// The attempts of `wall` that still look as if it had stopped them.
fn taken_for_stopped(wall: Wall, reports: &[Report]) -> Vec<&str> {
    reports
        .iter()
        // A host that has nothing to attack proves nothing either way.
        .filter(|report| report.wall == wall && report.result != Ending::NotPossible)
        .filter(|report| find(&report.name).unwrap().judge(report).is_ok())
        .map(|report| report.name.as_str())
        .collect()
}

pub(crate) fn without_seccomp() {
    let host = Host::new(As::Nobody);
    let reports = attack(&host, WallPlan { seccomp: false, ..all_walls(&host) });
    // The two calls that the kernel itself refuses to an unprivileged process in the filter's way: always,
    // and where the operator closed the kernel's log.
    let alike = ["load_module", "read_kernel_log"];
    let taken = taken_for_stopped(Wall::Seccomp, &reports);
    assert!(taken.iter().all(|name| alike.contains(name)), "{taken:?}");
}

pub(crate) fn without_landlock() {
    let host = Host::new(As::Nobody);
    let reports = attack(&host, WallPlan { landlock_writable: None, ..all_walls(&host) });
    assert_eq!(taken_for_stopped(Wall::Landlock, &reports), [""; 0]);
}

pub(crate) fn without_limits() {
    let host = Host::new(As::Nobody);
    let reports = attack(&host, WallPlan { open_files: None, processes: None, ..all_walls(&host) });
    assert_eq!(taken_for_stopped(Wall::Limits, &reports), [""; 0]);
}

/// All walls of a process stand, and nothing else does: no namespace, no mount, no network of its own.
pub(crate) fn without_namespaces() {
    let host = Host::new(As::Nobody);
    let reports = attack(&host, all_walls(&host));
    // Landlock stands in for the network's namespace, and the modes of /sys for the mount table. Which of
    // them answered is what the suite of each backend pins down (`Backend::exact` in tests/e2e).
    let alike = [
        "host_abstract_socket",
        "cgroup_release_agent",
        "cgroup_notify_on_release",
        "leave_cgroup",
        "write_sys",
    ];
    for wall in [Wall::Namespaces, Wall::Network, Wall::Mounts] {
        let taken = taken_for_stopped(wall, &reports);
        assert!(taken.iter().all(|name| alike.contains(name)), "{wall:?}: {taken:?}");
    }
}

/// Root without capabilities and capabilities without walls: who the attacker is, is a wall of its own.
pub(crate) fn without_another_user() {
    let host = Host::new(As::Root);
    let reports = attack(&host, WallPlan { seccomp: false, landlock_writable: None, ..all_walls(&host) });
    for wall in [Wall::User, Wall::Capabilities] {
        assert_eq!(taken_for_stopped(wall, &reports), [""; 0], "{wall:?}");
    }
}
