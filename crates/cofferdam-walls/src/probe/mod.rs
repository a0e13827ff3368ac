//! The probe: a process, started exactly as the agent will be, that measures what is in force around it.
//!
//! It believes nothing that it was told. What can be tried is tried, with arguments that do no harm.

mod apart;
mod calls;

pub use calls::landlock_abi;
mod files;
mod network;
mod status;

use std::ffi::OsString;
use std::io::Write as _;

use cofferdam_core::{InsideLimits, InsideSeal};
use rustix::process::{Resource, getrlimit};

use files::{mounts, writable};

/// The role `probe`: `args` are paths to try to write in, besides every mount point. Prints the
/// [`InsideSeal`] as one line of JSON. Exits with 0 once the line is written.
pub fn probe_main(args: impl IntoIterator<Item = OsString>) -> ! {
    let paths = args.into_iter().next().unwrap_or_default();
    // A list that cannot be read leaves the mount points, which are tried in any case.
    let paths: Vec<String> = serde_json::from_slice(paths.as_encoded_bytes()).unwrap_or_default();
    let seal = probe(&paths);
    let written = serde_json::to_string(&seal)
        .map_err(std::io::Error::from)
        .and_then(|line| writeln!(std::io::stdout(), "{line}"));
    match written {
        Ok(()) => std::process::exit(0),
        Err(error) => {
            eprintln!("failed to report the seal: {error}");
            std::process::exit(1)
        }
    }
}

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
