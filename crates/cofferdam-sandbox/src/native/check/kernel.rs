//! The kernel's own settings.

use std::fs;
use std::path::Path;

use cofferdam_core::Seal;

use crate::backend::{Finding, Status};

/// Whether user namespaces can be made.
pub(super) fn user_namespaces(up: Option<&Seal>) -> Finding {
    let name = "user_namespaces";
    if up.is_some() {
        return Finding::ok(name, "the trial's were made");
    }
    let missing = |detail: &str, remedy: &str| Finding::new(name, Status::Missing, detail, remedy);
    if setting("user/max_user_namespaces") == Some(0) {
        return missing("user.max_user_namespaces is 0", "sudo sysctl user.max_user_namespaces=15000");
    }
    let root = rustix::process::geteuid().is_root();
    if !root && setting("kernel/unprivileged_userns_clone") == Some(0) {
        return missing(
            "kernel.unprivileged_userns_clone is 0: closed to ordinary users",
            "sudo sysctl kernel.unprivileged_userns_clone=1",
        );
    }
    Finding::unknown(name, "the kernel's settings allow them, and no sandbox came up")
}

/// Whether AppArmor keeps ordinary users from using the namespaces that they make.
pub(super) fn apparmor(up: Option<&Seal>, binary: &Path) -> Finding {
    judge_apparmor(setting("kernel/apparmor_restrict_unprivileged_userns"), up.is_some(), binary)
}

fn judge_apparmor(restricts: Option<u64>, is_up: bool, binary: &Path) -> Finding {
    let name = "apparmor";
    match restricts {
        None => Finding::ok(name, "this kernel has no restriction of user namespaces"),
        Some(0) => Finding::ok(name, "user namespaces are not restricted"),
        Some(_) if is_up => {
            Finding::ok(name, "user namespaces are restricted, and this program may use them")
        }
        Some(_) => Finding::new(
            name,
            Status::Weak,
            "programs without a profile may not use user namespaces \
             (kernel.apparmor_restrict_unprivileged_userns is 1)",
            &profile_command(binary),
        ),
    }
}

/// A line that gives this program, and no other, a profile; and the setting for whoever wants all.
fn profile_command(binary: &Path) -> String {
    let profile = format!(
        "abi <abi/4.0>,\\nprofile cofferdam \"{}\" flags=(unconfined) {{\\n  userns,\\n}}\\n",
        binary.display()
    );
    let file = "/etc/apparmor.d/cofferdam";
    format!(
        "`printf '{profile}' | sudo tee {file} && sudo apparmor_parser -r {file}`, or for every program \
         `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
    )
}

/// Whether system calls can be filtered.
pub(super) fn seccomp(up: Option<&Seal>) -> Finding {
    let name = "seccomp";
    match up {
        Some(seal) => {
            let refused = seal.inside.system_calls.len();
            Finding::ok(
                name,
                format!("filters are in force: {refused} calls that no agent needs were tried and refused"),
            )
        }
        None => match fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail") {
            Ok(actions) if actions.split_whitespace().any(|action| action == "errno") => {
                Finding::unknown(name, "the kernel has filters, and no sandbox came up to try them in")
            }
            Ok(_) => Finding::new(
                name,
                Status::Missing,
                "this kernel's filters cannot refuse a call",
                "boot a kernel with CONFIG_SECCOMP_FILTER",
            ),
            Err(error) => Finding::unknown(name, format!("/proc/sys/kernel/seccomp cannot be read: {error}")),
        },
    }
}

/// Which Landlock the kernel has.
pub(super) fn landlock() -> Finding {
    match cofferdam_walls::landlock_abi() {
        0 => Finding::new(
            "landlock",
            Status::Missing,
            "this kernel has no Landlock",
            "boot a kernel of 5.13 or later with `landlock` in its `lsm=` parameter",
        ),
        abi => Finding::ok("landlock", format!("ABI {abi}")),
    }
}

/// A number below `/proc/sys`; `None` if the kernel has no such setting.
fn setting(name: &str) -> Option<u64> {
    fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restriction_is_told_with_a_profile_only_where_it_is_in_the_way() {
        let binary = Path::new("/opt/cofferdam");
        let status = |restricts, is_up| judge_apparmor(restricts, is_up, binary).status;
        assert_eq!(status(None, false), Status::Ok);
        assert_eq!(status(Some(0), false), Status::Ok);
        assert_eq!(status(Some(1), true), Status::Ok);
        assert_eq!(status(Some(1), false), Status::Weak);
        let remedy = judge_apparmor(Some(1), false, binary).remedy.unwrap();
        let expected = r#"`printf 'abi <abi/4.0>,\nprofile cofferdam "/opt/cofferdam" flags=(unconfined) {\n  userns,\n}\n' | sudo tee"#;
        assert!(remedy.starts_with(expected), "{remedy}");
    }
}
