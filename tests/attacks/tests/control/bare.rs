//! On a host without walls.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

use cofferdam_attacks::{Ending, behaviours, find};
use rustix::process::{Pid, Signal};

use crate::fixture::{As, Host};

pub(crate) fn every_attempt_succeeds() {
    let host = Host::new(As::Root);
    let mut failed = Vec::new();
    for report in host.attack(|_| ()) {
        let attempt = find(&report.name).unwrap();
        match (report.result, attempt.may_be_absent) {
            (Ending::Succeeded, _) => {}
            (Ending::NotPossible, Some(why)) => {
                println!("SKIPPED: {} on this host: {} ({why})", report.name, report.detail);
            }
            _ => failed.push(report),
        }
    }
    assert!(failed.is_empty(), "did not succeed on a bare host: {failed:#?}");
    let left: Vec<_> = fs::read_dir(&host.target.workspace).unwrap().flatten().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

pub(crate) fn every_way_to_change_a_workspace_works() {
    let host = Host::new(As::Root);
    let file = host.target.workspace.join(cofferdam_attacks::WORKSPACE_FILE);
    fs::write(&file, "hello\n").unwrap();
    let mut reports = host.attack_workspace();
    reports.retain(|report| report.result != Ending::Succeeded);
    assert!(reports.is_empty(), "did not succeed on a bare host: {reports:#?}");
    assert_eq!(fs::read_to_string(file).unwrap(), "hello\n", "it is as it was");
    assert_eq!(fs::read_dir(&host.target.workspace).unwrap().count(), 1, "something was left behind");
}

pub(crate) fn every_behaviour_has_its_way() {
    let host = Host::new(As::Root);
    let run = |args: &[&str]| -> Output {
        let output = host.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    };
    run(&["memory", "314572800"]);
    run(&["fork", "300"]);
    run(&["disk", "83886080"]);
    run(&["fds", "2000"]);
    for hiding in ["name", "zombie", "table"] {
        run(&["hide", hiding, "disk", "80", ".", "0"]);
        run(&["hide", hiding, "memory", "80", "0"]);
    }
    let printed = run(&["output", "1000000"]).stdout;
    assert_eq!(printed.len(), 1_000_000);
    assert!(printed.iter().filter(|byte| **byte == b'\n').count() > 10_000);
    let printed = run(&["line", "1000000"]).stdout;
    assert!(printed.len() == 1_000_000 && !printed.contains(&b'\n'));
    assert_eq!(String::from_utf8(run(&["forge"]).stdout).unwrap().trim_end(), behaviours::FORGED_EVENT);
    every_process_has_its_mappings(&host);
    the_orphan_outlives_its_parent(&host);
}

/// The program ends at once; the orphan's end shows as the end of the output that it keeps open.
fn the_orphan_outlives_its_parent(host: &Host) {
    let mut command: Command = host.command(&["outlive", "1"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let started = std::time::Instant::now();
    assert!(child.wait().unwrap().success());
    let ended = started.elapsed();
    std::io::copy(&mut child.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
    let closed = started.elapsed();
    assert!(closed.as_millis() >= 900 && closed > ended, "ended after {ended:?}, closed after {closed:?}");
}

fn every_process_has_its_mappings(host: &Host) {
    let mut command = host.command(&["mappings", "2", "60000", "."]);
    let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let own = child.id();
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap();
    // Not `maps`, whose text is what takes so long.
    let mapped = |pid: &str| fs::read_dir(format!("/proc/{pid}/map_files")).unwrap().count();
    let counts: Vec<usize> = children.split_whitespace().map(mapped).collect();
    rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert_eq!(said, "ready\n");
    assert!(counts.len() == 2 && counts.iter().all(|count| *count >= 60_000), "{counts:?}");
}
