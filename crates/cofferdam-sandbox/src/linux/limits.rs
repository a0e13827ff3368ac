//! Who holds the limits on memory, processor and processes.

use cofferdam_core::{Policy, WORKER_PIDS};

use super::plan::{CgroupLimits, CgroupPlan};
use super::{cgroup, system};

/// Where the limits of a sandbox will be kept.
pub(crate) enum Holder {
    /// A group of ours.
    Group(CgroupPlan),
    /// A scope that systemd makes: the command in front of the shim's.
    Scope(Vec<String>),
    /// Nobody; why not.
    Nobody(String),
}

pub(crate) fn holder(name: &str, limits: &CgroupLimits) -> Holder {
    match cgroup::locate(name) {
        Ok(plan) => Holder::Group(plan),
        Err(why) => match system::user_systemd() {
            true => Holder::Scope(cgroup::systemd_scope(name, limits)),
            false => Holder::Nobody(why),
        },
    }
}

/// Limits that nothing can break.
pub(crate) const NO_LIMITS: CgroupLimits =
    CgroupLimits { memory_bytes: u64::MAX, cpus_milli: u32::MAX, pids: u64::MAX };

pub(crate) fn limits_of(policy: &Policy) -> CgroupLimits {
    CgroupLimits {
        memory_bytes: policy.limits.memory_bytes,
        cpus_milli: policy.limits.cpus_milli,
        pids: u64::from(policy.limits.pids) + WORKER_PIDS,
    }
}
