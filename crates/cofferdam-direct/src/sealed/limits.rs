//! Limits that a sealed process sets on itself before it reads the first byte. They hold also where the machine delegates no
//! control groups: a bomb ends the process, and nothing else.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::SealedCall;

/// Sets them, soft and hard alike.
pub(super) fn set() -> io::Result<()> {
    let limits = [
        (Resource::As, SealedCall::MEMORY_BYTES),
        (Resource::Cpu, SealedCall::SECONDS),
        (Resource::Fsize, SealedCall::ANSWER_BYTES),
    ];
    for (resource, most) in limits {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
