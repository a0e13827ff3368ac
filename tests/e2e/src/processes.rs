//! The processes of a run, found from outside.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// What a launcher calls itself: one that was forked has the command line of its shim.
const LAUNCHER: &str = "launcher";

/// The processes that have this role (`shim`, `launcher`) for a sandbox of this state folder.
#[must_use]
pub fn with_role(state: &Path, role: &str) -> Vec<u32> {
    let Ok(state) = state.canonicalize() else { return Vec::new() };
    let folder = format!("{}/sandboxes/", state.display());
    let has_role = |pid: u32| match (role == LAUNCHER, name(pid) == LAUNCHER) {
        (true, true) => command_line(pid).contains(&format!(" {folder}")),
        (false, false) => command_line(pid).contains(&format!(" {role} {folder}")),
        (true, false) | (false, true) => false,
    };
    pids().filter(|pid| !is_zombie(*pid) && has_role(*pid)).collect()
}

/// The brokers of a state folder's nodes: at most one of each node serves, and others wait for its end.
#[must_use]
pub fn brokers_of(state: &Path) -> Vec<u32> {
    let Ok(state) = state.canonicalize() else { return Vec::new() };
    let sought = format!(" broker {} ", state.display());
    pids().filter(|pid| !is_zombie(*pid) && command_line(*pid).contains(&sought)).collect()
}

/// The processes whose command line has this in it.
pub(crate) fn naming(text: &str) -> Vec<u32> {
    pids().filter(|pid| !is_zombie(*pid) && command_line(*pid).contains(text)).collect()
}

/// Whether a process has this command line.
pub(crate) fn is_called(pid: u32, command: &str) -> bool {
    command_line(pid) == command
}

/// The children of a process.
#[must_use]
pub fn children_of(parent: u32) -> Vec<u32> {
    pids().filter(|pid| field(*pid, 1) == Some(parent.to_string())).collect()
}

/// All descendants of a process.
#[must_use]
pub fn descendants_of(ancestor: u32) -> Vec<u32> {
    let mut found = children_of(ancestor);
    let mut next = 0;
    while next < found.len() {
        found.extend(children_of(found[next]));
        next += 1;
    }
    found
}

/// Whether a process runs. One that has ended and was not waited for does not.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists() && !is_zombie(pid)
}

/// `kill -9`.
///
/// # Panics
/// If the process is gone or somebody else's.
pub fn kill_9(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process id is positive");
    kill_process(pid, Signal::KILL).expect("the process is there");
}

/// Waits until something holds.
///
/// # Panics
/// If it does not hold within the time.
pub fn wait_until(within: Duration, what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < within, "not within {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What a process was started with; nothing of one that has ended.
pub(crate) fn arguments(pid: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// What a process calls itself.
fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

fn is_zombie(pid: u32) -> bool {
    field(pid, 0).is_some_and(|state| state == "Z" || state == "X")
}

/// A field of `/proc/PID/stat` after the program's name, which may itself hold spaces and brackets.
fn field(pid: u32, index: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    rest.split_whitespace().nth(index).map(str::to_owned)
}
