//! Limits that a process sets on itself and cannot lift again.

use cofferdam_core::WallPlan;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::enter::Error;

/// Sets the limits of the plan, soft and hard alike: a soft limit alone could be lifted by the agent.
///
/// Core dumps are always off, because a dump is written by the kernel, outside the agent's file access,
/// and `core_pattern` may even hand it to a program of the host.
pub(crate) fn set(plan: &WallPlan) -> Result<(), Error> {
    let limits = [
        ("RLIMIT_NOFILE", Resource::Nofile, plan.open_files),
        ("RLIMIT_NPROC", Resource::Nproc, plan.processes),
        ("RLIMIT_FSIZE", Resource::Fsize, plan.file_bytes),
        ("RLIMIT_CORE", Resource::Core, Some(0)),
    ];
    for (limit, resource, asked) in limits {
        let Some(asked) = asked else { continue };
        // A limit that is lower already stays: raising one needs a privilege, and less is never a breach.
        let most = getrlimit(resource).maximum.map_or(asked, |current| asked.min(current));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
            .map_err(|errno| Error::Limit { limit, source: errno.into() })?;
    }
    Ok(())
}

/// Makes the agent the first to die when memory runs out, so that a memory bomb does not take the worker
/// that has to report it. Best effort: it protects the report and not the host, which the limit does.
pub(crate) fn prefer_in_oom() {
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}
