//! Whether we are in a container already, which may deny what a sandbox is made of.

use std::fs;

use cofferdam_core::Seal;

use crate::backend::{Finding, Status};

/// Which container this is, and what of it is in the way.
pub(super) fn enclosing_container(up: Option<&Seal>) -> Finding {
    let name = "container";
    let Some(kind) = kind() else { return Finding::ok(name, "none was recognised") };
    if up.is_some() {
        return Finding::ok(name, format!("this is inside {kind}, and sandboxes can be made in it"));
    }
    let mut in_the_way = Vec::new();
    if status_field("Seccomp:").as_deref() == Some("2") {
        in_the_way.push("a filter of system calls is in force");
    }
    if proc_is_covered() {
        in_the_way.push("parts of /proc are covered, so no other /proc can be mounted");
    }
    if in_the_way.is_empty() {
        return Finding::unknown(
            name,
            format!("this is inside {kind}; whether that is in the way cannot be told"),
        );
    }
    Finding::new(
        name,
        Status::Weak,
        &format!("this is inside {kind}: {}", in_the_way.join("; ")),
        "start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt \
         systempaths=unconfined (podman: --security-opt unmask=ALL)",
    )
}

fn kind() -> Option<&'static str> {
    let exists = |path: &str| fs::exists(path).unwrap_or(false);
    if exists("/.dockerenv") {
        return Some("a Docker container");
    }
    if exists("/run/.containerenv") {
        return Some("a Podman container");
    }
    let groups = fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
    let named = |part: &str| groups.lines().any(|line| line.contains(part));
    match fs::read_to_string("/run/systemd/container").unwrap_or_default().trim() {
        "lxc" => Some("an LXC container"),
        "" if named("/kubepods") => Some("a Kubernetes pod"),
        "" if named("/docker") || named("/containerd") => Some("a Docker container"),
        "" if named("/lxc") => Some("an LXC container"),
        "" => None,
        _ => Some("a container"),
    }
}

fn status_field(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}

/// The kernel mounts a new /proc for a user namespace only where all of the old one can be seen.
fn proc_is_covered() -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().filter_map(|line| line.split(' ').nth(4)).any(|target| {
        target.strip_prefix("/proc/").is_some_and(|below| !below.starts_with("sys/fs/binfmt_misc"))
    })
}
