//! Why this machine cannot make a sandbox, and what to type.

use std::fs;

use cofferdam_core::SandboxId;

use super::launcher::{CREATE_NAMESPACES, LaunchError, OVERLAY};
use crate::errors::{CreateError, Refusal};

/// What the kernel lacks altogether, found without trying.
pub(crate) fn missing_kernel_features() -> Vec<Refusal> {
    let mut missing = Vec::new();
    let number = |path: &str| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let root = rustix::process::geteuid().is_root();
    if number("/proc/sys/user/max_user_namespaces") == Some(0) {
        missing.push(Refusal::new(
            "user namespaces are switched off on this machine (user.max_user_namespaces is 0)",
            "sudo sysctl user.max_user_namespaces=15000",
        ));
    }
    if !root && number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
        missing.push(Refusal::new(
            "user namespaces are closed to ordinary users on this machine",
            "sudo sysctl kernel.unprivileged_userns_clone=1",
        ));
    }
    if cofferdam_walls::landlock_abi() == 0 {
        missing.push(Refusal::new(
            "this kernel has no Landlock",
            "boot a kernel of 5.13 or later with `landlock` in its `lsm=` parameter",
        ));
    }
    missing
}

/// Nobody holds the limits, and the policy asks for somebody.
pub(crate) fn no_limits(why: &str) -> Refusal {
    Refusal::new(
        format!("memory, processor and process limits cannot be held here: {why}"),
        "run as root, in a systemd user session, or delegate a cgroup with cpu, memory and pids",
    )
}

/// What a launch that failed means to the caller.
pub(crate) fn explain(id: &SandboxId, error: &LaunchError) -> CreateError {
    let denied = matches!(error.errno, Some(libc::EPERM | libc::EACCES));
    if error.errno == Some(libc::ENOSPC) && error.step != CREATE_NAMESPACES {
        return CreateError::DiskFull { id: id.clone() };
    }
    if error.step == CREATE_NAMESPACES && (denied || matches!(error.errno, Some(libc::ENOSPC | libc::EUSERS)))
    {
        return CreateError::Refused(Refusal::new(
            format!("this machine does not let us make namespaces ({})", error.message),
            namespace_remedy(),
        ));
    }
    // An owner that cannot be shifted, a layer on a network file system, an upper layer on an overlay.
    let unsupported =
        matches!(error.errno, Some(libc::EINVAL | libc::EOPNOTSUPP | libc::EREMOTE | libc::ELOOP));
    if unsupported && error.step.starts_with(OVERLAY) {
        return CreateError::NoOverlay { id: id.clone(), message: error.message.clone() };
    }
    if denied
        && (error.step.starts_with("mount")
            || error.step.starts_with("detach")
            || error.step.starts_with("make the root"))
    {
        return CreateError::Refused(Refusal::new(
            format!("this machine does not let a sandbox {} ({})", error.step, error.message),
            mount_remedy(),
        ));
    }
    CreateError::Failed { id: id.clone(), message: format!("could not {}: {}", error.step, error.message) }
}

fn apparmor_restricts() -> bool {
    fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
        .is_ok_and(|text| text.trim() == "1")
}

fn in_container() -> bool {
    ["/.dockerenv", "/run/.containerenv"].iter().any(|path| fs::exists(path).unwrap_or(false))
}

fn namespace_remedy() -> String {
    if apparmor_restricts() {
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0".to_owned()
    } else if in_container() {
        "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
            .to_owned()
    } else {
        "sudo sysctl user.max_user_namespaces=15000".to_owned()
    }
}

fn mount_remedy() -> String {
    if apparmor_restricts() {
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0".to_owned()
    } else {
        "inside a container, start it with --security-opt systempaths=unconfined --security-opt \
         apparmor=unconfined --security-opt seccomp=unconfined"
            .to_owned()
    }
}
