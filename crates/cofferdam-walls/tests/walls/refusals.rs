//! Each wall changes what the probe measures, and without it the measurement says so.

use std::io::Read as _;
use std::os::fd::AsRawFd as _;

use cofferdam_core::{Tried, WallPlan};

use crate::harness::{As, Test, all_walls, behind, behind_with_status, measured, open_folder, succeeded};

pub(crate) const TESTS: &[Test] = &[
    ("without_walls_every_call_works", without_walls_every_call_works),
    ("the_filter_refuses_every_call_of_the_probe", the_filter_refuses_every_call_of_the_probe),
    ("landlock_closes_a_folder_that_all_else_leaves_open", landlock_closes_a_folder),
    ("the_flag_is_set_and_measured", the_flag_is_set_and_measured),
    ("limits_are_hard_and_core_dumps_are_off", limits_are_hard),
    ("a_plan_without_walls_changes_nothing", a_plan_without_walls_changes_nothing),
    ("the_agent_inherits_no_descriptor_and_no_ignored_signal", nothing_is_inherited),
    ("the_status_pipe_tells_why_the_agent_was_not_started", status_pipe),
    ("a_signal_out_of_the_walls_is_refused", a_signal_out_is_refused),
];

fn without_walls_every_call_works(who: As) {
    let seal = measured(&WallPlan::none(), who, &[]);
    let refused: Vec<_> = seal.system_calls.iter().filter(|(_, tried)| **tried != Tried::Worked).collect();
    assert!(refused.is_empty(), "arguments that prove nothing on this kernel: {refused:?}");
    assert_eq!(seal.seccomp_mode, 0);
    assert!(seal.landlock_abi >= 1);
    assert!(seal.visible_processes > 1);
    assert!(seal.mounts.iter().any(|mount| mount.target == "/"));
    assert!(seal.network.interfaces.contains(&"lo".to_owned()));
}

fn the_filter_refuses_every_call_of_the_probe(who: As) {
    let seal = measured(&WallPlan { seccomp: true, ..WallPlan::none() }, who, &[]);
    assert_eq!(seal.seccomp_mode, 2);
    for (call, tried) in &seal.system_calls {
        let errno = if call == "clone3" { "ENOSYS" } else { "EPERM" };
        assert_eq!(*tried, Tried::Refused(errno.to_owned()), "{call}");
    }
}

fn landlock_closes_a_folder(who: As) {
    let (inside, outside) = (open_folder(), open_folder());
    let paths = [inside.path(), outside.path()];
    let writable = |seal: cofferdam_core::InsideSeal| {
        paths.map(|path| seal.writable.iter().any(|found| found.as_str() == path.to_str().unwrap()))
    };
    let plan = all_walls(inside.path());
    assert_eq!(writable(measured(&plan, who, &paths)), [true, false]);
    let open = WallPlan { landlock_writable: None, ..plan };
    assert_eq!(writable(measured(&open, who, &paths)), [true, true]);
    let left = [&inside, &outside].map(|folder| std::fs::read_dir(folder.path()).unwrap().count());
    assert_eq!(left, [0, 0], "the probe leaves nothing behind");
}

fn the_flag_is_set_and_measured(who: As) {
    let flag = |plan: &WallPlan| measured(plan, who, &[]).no_new_privileges;
    assert!(flag(&WallPlan { no_new_privileges: true, ..WallPlan::none() }));
    assert!(!flag(&WallPlan { open_files: Some(512), ..WallPlan::none() }));
}

fn limits_are_hard(who: As) {
    let plan = WallPlan { processes: Some(4000), ..all_walls("/var/tmp".as_ref()) };
    let limits = measured(&plan, who, &[]).limits;
    assert_eq!(limits.open_files, Some(512));
    assert_eq!(limits.processes, Some(4000));
    assert_eq!(limits.file_bytes, Some(1 << 30));
    assert_eq!(limits.core_bytes, Some(0));
}

fn a_plan_without_walls_changes_nothing(who: As) {
    let limits = measured(&WallPlan::none(), who, &[]).limits;
    assert_eq!(limits.open_files, rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum);
    let script = "cat /proc/self/oom_score_adj";
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    assert_eq!(succeeded(behind(&WallPlan::none(), who, &["sh", "-c", script]).output().unwrap()), own);
}

fn nothing_is_inherited(who: As) {
    let folder = open_folder();
    let secret = std::fs::File::create(folder.path().join("secret")).unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    for plan in [all_walls(folder.path()), WallPlan::none()] {
        // The listing itself is read through one more descriptor, 3.
        let listed = succeeded(behind(&plan, who, &["ls", "/proc/self/fd"]).output().unwrap());
        assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
        let status = succeeded(behind(&plan, who, &["cat", "/proc/self/status"]).output().unwrap());
        for line in ["SigIgn:\t0000000000000000", "SigBlk:\t0000000000000000"] {
            assert!(status.contains(line), "{status}");
        }
    }
}

fn status_pipe(who: As) {
    let folder = open_folder();
    let plan = all_walls(folder.path());
    assert_eq!(started(&plan, who, &["true"]), (Some(0), String::new()));
    assert_eq!(
        started(&plan, who, &["no-such-program"]),
        (Some(127), "{\"not_started\":\"program `no-such-program` not found\"}\n".to_owned())
    );
    let (code, reason) = started(&plan, who, &["/etc/passwd"]);
    assert_eq!(code, Some(126));
    assert!(reason.contains("failed to execute `/etc/passwd`"), "{reason}");
}

/// Exit code, and what came through the status descriptor.
fn started(plan: &WallPlan, who: As, argv: &[&str]) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    // A number that the child inherits, as the worker passes it on.
    let status = rustix::io::fcntl_dupfd_cloexec(&writer, 10).unwrap();
    rustix::io::fcntl_setfd(&status, rustix::io::FdFlags::empty()).unwrap();
    let mut child = behind_with_status(plan, who, status.as_raw_fd(), argv).spawn().unwrap();
    drop((writer, status));
    let mut text = String::new();
    std::io::BufReader::new(reader).read_to_string(&mut text).unwrap();
    (child.wait().unwrap().code(), text)
}

fn a_signal_out_is_refused(who: As) {
    let folder = open_folder();
    // A process of the same user, outside the walls.
    let mut outside = behind(&WallPlan::none(), who, &["sleep", "60"]).spawn().unwrap();
    let script = format!("kill -0 {}", outside.id());
    let kill = |plan: &WallPlan| behind(plan, who, &["sh", "-c", &script]).output().unwrap().status.success();
    let (open, walled) = (kill(&WallPlan::none()), kill(&all_walls(folder.path())));
    outside.kill().unwrap();
    outside.wait().unwrap();
    assert!(open, "without walls a process may signal its own user's");
    assert!(!walled, "Landlock keeps signals inside");
}
