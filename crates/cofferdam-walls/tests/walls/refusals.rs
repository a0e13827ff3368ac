//! Each wall changes what the probe measures, and without it the measurement says so.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};

use cofferdam_core::{InsideSeal, Tried, WallPlan};

use crate::harness::{
    As, Test, all_walls, behind, enter_walls, held, measured, open_folder, public_copy, succeeded,
};

pub(crate) const TESTS: &[Test] = &[
    ("without_walls_every_call_works", without_walls_every_call_works),
    ("the_filter_refuses_every_call_of_the_probe", the_filter_refuses_every_call_of_the_probe),
    ("landlock_closes_a_folder_that_all_else_leaves_open", landlock_closes_a_folder),
    ("the_flag_is_set_and_measured", the_flag_is_set_and_measured),
    ("limits_are_hard_and_core_dumps_are_off", limits_are_hard),
    ("a_plan_without_walls_changes_nothing", a_plan_without_walls_changes_nothing),
    ("the_agent_inherits_no_descriptor_and_no_ignored_signal", nothing_is_inherited),
    ("whoever_holds_the_agent_is_told_why_it_did_not_start", a_failed_start_is_told),
    ("what_was_measured_is_what_becomes_the_agent", what_was_measured_becomes_the_agent),
    ("an_agent_that_nobody_waits_for_never_starts", an_abandoned_agent_never_starts),
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
        // What programs do without where a kernel does not have it is missing.
        let errno = if ["clone3", "io_setup"].contains(&call.as_str()) { "ENOSYS" } else { "EPERM" };
        assert_eq!(*tried, Tried::Refused(errno.to_owned()), "{call}");
    }
}

fn landlock_closes_a_folder(who: As) {
    let (inside, outside) = (open_folder(), open_folder());
    let paths = [inside.path(), outside.path()];
    let writable = |seal: InsideSeal| {
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

fn a_failed_start_is_told(who: As) {
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

/// Exit code, and what was said once it was told to start.
fn started(plan: &WallPlan, who: As, argv: &[&str]) -> (Option<i32>, String) {
    let (mut child, mut control) = held(plan, who, None, argv);
    control.write_all(b"\n").unwrap();
    let mut text = String::new();
    control.read_to_string(&mut text).unwrap();
    (child.wait().unwrap().code(), text)
}

fn what_was_measured_becomes_the_agent(who: As) {
    let (inside, outside) = (open_folder(), open_folder());
    let paths = [inside.path(), outside.path()];
    for plan in [all_walls(inside.path()), WallPlan::none()] {
        let own = public_copy();
        let list = serde_json::to_string(&paths).unwrap();
        let (child, mut control) = held(&plan, who, Some(&paths), &[own.to_str().unwrap(), "probe", &list]);
        let mut line = String::new();
        BufReader::new(&control).read_line(&mut line).unwrap();
        let mut said: BTreeMap<String, InsideSeal> = serde_json::from_str(&line).unwrap();
        control.write_all(b"\n").unwrap();
        let mut after: InsideSeal =
            serde_json::from_str(&succeeded(child.wait_with_output().unwrap())).unwrap();
        let mut before = said.remove("seal").unwrap();
        // Others come and go on this machine.
        (before.visible_processes, after.visible_processes) = (0, 0);
        assert_eq!(before, after);
    }
}

fn an_abandoned_agent_never_starts(who: As) {
    let (child, control) = held(&WallPlan::none(), who, Some(&[]), &["echo", "started"]);
    BufReader::new(control).read_line(&mut String::new()).unwrap();
    assert_eq!(succeeded(child.wait_with_output().unwrap()), "");
    for descriptor in ["", "x", "1", "999"] {
        let unheld = enter_walls(&["--control-fd", descriptor], who, &["echo", "started"]);
        assert_eq!((unheld.status.code(), unheld.stdout), (Some(126), Vec::new()), "{descriptor}");
    }
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
