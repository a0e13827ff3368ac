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
mod tree;

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
    let allow_list = compile_allow_list()?;
    let deny_list = compile_deny_list()?;
    seccompiler::apply_filter(&allow_list)?;
    seccompiler::apply_filter(&deny_list)
}

fn compile_allow_list() -> Result<BpfProgram, Error> {
    tree::compile(&allowed::calls(), answer(libc::ENOSYS), ARCH)
}

fn compile_deny_list() -> Result<BpfProgram, Error> {
    let filter = SeccompFilter::new(denied::rules()?, SeccompAction::Allow, answer(libc::EPERM), ARCH)?;
    Ok(filter.try_into()?)
}

fn answer(errno: libc::c_int) -> SeccompAction {
    SeccompAction::Errno(errno.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_both_allowed_and_denied_outright() {
        let allowed = allowed::calls();
        let both: Vec<_> = denied::rules()
            .unwrap()
            .into_iter()
            .filter(|(call, rules)| rules.is_empty() && allowed.contains(call))
            .map(|(call, _)| call)
            .collect();
        assert_eq!(both, Vec::<i64>::new());
    }

    #[test]
    fn a_call_that_is_denied_by_its_arguments_is_otherwise_allowed() {
        let allowed = allowed::calls();
        let neither: Vec<_> = denied::rules()
            .unwrap()
            .into_iter()
            .filter(|(call, rules)| !rules.is_empty() && !allowed.contains(call))
            .map(|(call, _)| call)
            .collect();
        assert_eq!(neither, Vec::<i64>::new());
    }

    #[test]
    fn both_filters_fit_into_what_the_kernel_takes() {
        let (allow_list, deny_list) = (compile_allow_list().unwrap(), compile_deny_list().unwrap());
        assert!(allow_list.len() + deny_list.len() < 4096);
    }
}
