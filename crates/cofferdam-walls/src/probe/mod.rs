//! The probe: measures what is in force around the process that calls it, which then becomes the agent.
//!
//! It believes nothing that it was told. What can be tried is tried, with arguments that do no harm and leave nothing
//! behind: no file, no descriptor, no changed flag.

mod apart;
mod calls;

pub use calls::landlock_abi;
mod files;
mod network;
mod status;

use cofferdam_core::{InsideLimits, InsideSeal};
use rustix::process::{Resource, getrlimit};

use files::{mounts, writable};

/// Measures what is in force around the calling process, trying to make a file in every mount point and
/// in each of `paths`. What cannot be read counts as the weakest: a missing `/proc` shows as no wall.
#[must_use]
pub fn probe(paths: &[String]) -> InsideSeal {
    let status = status::read();
    let mounts = mounts();
    InsideSeal {
        uid: status.uid,
        gid: status.gid,
        capabilities: status.capabilities,
        no_new_privileges: status.no_new_privileges,
        seccomp_mode: status.seccomp_mode,
        landlock_abi: landlock_abi(),
        writable: writable(&mounts, paths),
        mounts,
        visible_processes: visible_processes(),
        limits: limits(),
        network: network::measure(),
        apart: apart::measure(status.uid),
        // Last: a filter that kills instead of refusing would otherwise hide the rest.
        system_calls: calls::try_all(),
    }
}

/// How many processes `/proc` shows. Where it shows nothing, the number is the largest there is, so that
/// nobody takes "cannot look" for "alone".
fn visible_processes() -> u32 {
    let Ok(entries) = std::fs::read_dir("/proc") else { return u32::MAX };
    let count = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()))
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn limits() -> InsideLimits {
    let hard = |resource| getrlimit(resource).maximum;
    InsideLimits {
        open_files: hard(Resource::Nofile),
        processes: hard(Resource::Nproc),
        file_bytes: hard(Resource::Fsize),
        core_bytes: hard(Resource::Core),
    }
}
