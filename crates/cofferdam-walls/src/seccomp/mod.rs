//! The system-call filter: two filters, one behind the other.
//!
//! The first is an allow-list in the spirit of Docker's default profile for a container without
//! capabilities. What is not on it answers `ENOSYS`, as a kernel that does not have the call would, so
//! that programs fall back: the C library to `clone` where `clone3` (whose flags a filter cannot see) is
//! missing. The second names what an agent must never do and answers `EPERM`; it is installed last,
//! because of several filters that refuse a call the newest one's error is returned.
//!
//! A call through another architecture's entry (`int 0x80` on x86-64) kills the process, and the x32
//! calls are not on the list: neither is a way around.

mod allowed;
mod denied;

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, Error, SeccompAction, SeccompFilter, SeccompRule, TargetArch};

/// System calls and the conditions under which they match; none means always.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;

/// Installs both filters on the calling thread and all that it starts.
pub(crate) fn install() -> Result<(), Error> {
    // Both are built before the first stands, so that a mistake in the second leaves nothing half done.
    let allowed = compile(allowed::rules(), libc::ENOSYS, Meaning::AllowList)?;
    let denied = compile(denied::rules()?, libc::EPERM, Meaning::DenyList)?;
    seccompiler::apply_filter(&allowed)?;
    seccompiler::apply_filter(&denied)
}

#[derive(Clone, Copy)]
enum Meaning {
    AllowList,
    DenyList,
}

fn compile(rules: Rules, errno: libc::c_int, meaning: Meaning) -> Result<BpfProgram, Error> {
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let (otherwise, on_match) = match meaning {
        Meaning::AllowList => (refuse, SeccompAction::Allow),
        Meaning::DenyList => (SeccompAction::Allow, refuse),
    };
    Ok(SeccompFilter::new(rules, otherwise, on_match, ARCH)?.try_into()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_both_allowed_and_denied_outright() {
        let allowed = allowed::rules();
        let both: Vec<_> = denied::rules()
            .unwrap()
            .into_iter()
            .filter(|(call, rules)| rules.is_empty() && allowed.contains_key(call))
            .map(|(call, _)| call)
            .collect();
        assert_eq!(both, Vec::<i64>::new());
    }

    #[test]
    fn a_call_that_is_denied_by_its_arguments_is_otherwise_allowed() {
        let allowed = allowed::rules();
        let neither: Vec<_> = denied::rules()
            .unwrap()
            .into_iter()
            .filter(|(call, rules)| !rules.is_empty() && !allowed.contains_key(call))
            .map(|(call, _)| call)
            .collect();
        assert_eq!(neither, Vec::<i64>::new());
    }

    #[test]
    fn both_filters_fit_into_what_the_kernel_takes() {
        let allowed = compile(allowed::rules(), libc::ENOSYS, Meaning::AllowList).unwrap();
        let denied = compile(denied::rules().unwrap(), libc::EPERM, Meaning::DenyList).unwrap();
        assert!(allowed.len() + denied.len() < 4096);
    }
}
