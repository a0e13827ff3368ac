//! Ends every process of the agent, those that left its group, its session and its parent included.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process_group, pidfd_open, pidfd_send_signal};

/// What is ended together with the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everything in our pid namespace, whose first process the worker is.
    PidNamespace,
    /// All descendants of the worker, which is their subreaper: on the host, where everything else
    /// belongs to somebody else.
    Descendants,
}

impl Scope {
    /// The scope of the running process: whoever is process 1 has a pid namespace to itself.
    #[must_use]
    pub fn of_this_process() -> Self {
        if getpid().is_init() { Self::PidNamespace } else { Self::Descendants }
    }
}

/// Kills everything that is there now. To be repeated until the reaper knows of no child, since on the
/// host a process may fork while it is being looked for.
pub(crate) fn kill_once(scope: Scope) {
    match scope {
        // `kill(-1)` is one step for the kernel, so not even a fork bomb gets away. It means "all
        // processes of the user" for anybody but process 1, hence the second look.
        Scope::PidNamespace if getpid().is_init() => {
            let _ = kill_process_group(Pid::INIT, Signal::KILL);
        }
        Scope::PidNamespace | Scope::Descendants => kill_descendants(),
    }
}

fn kill_descendants() {
    let Ok(entries) = fs::read_dir("/proc") else { return };
    let pids = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&pid| is_descendant(pid));
    for pid in pids {
        let Some(pid) = Pid::from_raw(pid) else { continue };
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        // The id may have passed to a process of somebody else between the first look and the open. The
        // descriptor cannot.
        if is_descendant(pid.as_raw_pid()) {
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    }
}

fn is_descendant(pid: i32) -> bool {
    let own = getpid().as_raw_pid();
    let mut ancestor = parent(pid);
    while let Some(pid) = ancestor.filter(|&pid| pid > 0) {
        if pid == own {
            return true;
        }
        ancestor = parent(pid);
    }
    false
}

fn parent(pid: i32) -> Option<i32> {
    parse_parent(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The program's name comes first, in brackets, and is the agent's to choose: a name such as `x) S 1 (`
/// must not pass for fields. So the fields are those after the last bracket.
fn parse_parent(stat: &[u8]) -> Option<i32> {
    let end_of_name = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = std::str::from_utf8(&stat[end_of_name + 1..]).ok()?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_cannot_choose_its_parent_by_its_name() {
        assert_eq!(parse_parent(b"7 (sh) S 5 7 7 0"), Some(5));
        assert_eq!(parse_parent(b"7 (x) S 1 (\xff) R 5 7 7 0"), Some(5));
        assert_eq!(parse_parent(b""), None);
    }

    #[test]
    fn the_parent_of_this_process_is_not_its_descendant() {
        let parent = rustix::process::getppid().expect("a test has a parent");
        assert!(!is_descendant(parent.as_raw_pid()));
        assert!(!is_descendant(getpid().as_raw_pid()));
    }
}
