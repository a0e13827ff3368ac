//! Who holds the limits on memory, processor and processes.

use std::path::Path;

use cofferdam_core::{Policy, Seal};

use crate::backend::{Finding, Status};
use crate::linux::{Holder, cgroup, holder, limits_of, system};

/// Whether the kernel holds the limits, as the trial's seal has it.
pub(super) fn limits(up: Option<&Seal>) -> Finding {
    let name = "limits";
    match up.map(|seal| &seal.outside) {
        Some(outside) => match &outside.cgroup {
            Some(group) => {
                // The trial's own group is gone by now; runs have theirs beside it.
                let path = Path::new(&group.path).parent().unwrap_or(Path::new("/")).display();
                let version = group.version;
                Finding::ok(
                    name,
                    format!("memory, processor and processes are held by cgroup v{version} ({path})"),
                )
            }
            None => {
                let note = outside.limits_note.as_deref().unwrap_or("no reason was recorded");
                Finding::new(name, Status::Weak, &format!("best effort: {note}{}", delegated()), &remedy())
            }
        },
        None => match holder("cofferdam", &limits_of(&Policy::default())) {
            Holder::Group(_) => {
                Finding::unknown(name, "there is a place for a cgroup, and no sandbox came up to try it")
            }
            Holder::Scope(_) => {
                Finding::unknown(name, "your systemd may hold them, and no sandbox came up to try it")
            }
            Holder::Nobody(why) => {
                Finding::new(name, Status::Weak, &format!("best effort: {why}{}", delegated()), &remedy())
            }
        },
    }
}

/// Which controllers reach this process's group, in words.
fn delegated() -> String {
    match cgroup::own_controllers() {
        Some(names) if names.is_empty() => "; no controller reaches this process's group".to_owned(),
        Some(names) => format!("; this process's group has {names}"),
        None => String::new(),
    }
}

fn remedy() -> String {
    if rustix::process::geteuid().is_root() {
        return "make /sys/fs/cgroup writable; for a container: --cgroupns=private, and a delegated cgroup"
            .to_owned();
    }
    if !Path::new("/run/systemd/system").exists() {
        return "have a cgroup with cpu, memory and pids delegated to you, or run as root".to_owned();
    }
    if !system::user_systemd() {
        return "sudo loginctl enable-linger \"$USER\", and log in again: your own systemd then holds them"
            .to_owned();
    }
    "systemd-run --user --scope -p Delegate=yes cofferdam …; if that lacks cpu, put `[Service]` and \
     `Delegate=cpu memory pids` into /etc/systemd/system/user@.service.d/delegate.conf, then sudo systemctl \
     daemon-reload, and log in again"
        .to_owned()
}
