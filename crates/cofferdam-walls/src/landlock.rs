//! File access by Landlock: read and execute everywhere, write below a few paths only.
//!
//! It stands behind the mount table: an agent that finds a way to a writable mount (a forgotten bind, a
//! path that a policy shows by mistake) still cannot write there. It also keeps the agent from signalling
//! the worker, from reading the worker's `/proc` entries (a process may only trace those of its own
//! domain) and from abstract Unix sockets of others. The network is the namespace's business.

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, PathFdError, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

/// The newest version that the crate knows; an older kernel enforces what it can of it.
const NEWEST: ABI = ABI::V9;

/// Devices that programs write to. None of them keeps or passes on what is written, but for the
/// terminals, which belong to the sandbox's own `devpts`.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Why the rules are not in force.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel has no Landlock, or it is switched off.
    #[error("this kernel has no Landlock (add `landlock` to the kernel's `lsm=` parameter)")]
    Unsupported,
    /// The rules were refused.
    #[error(transparent)]
    Ruleset(#[from] RulesetError),
    /// A path could not be opened for a reason other than not being there.
    #[error("failed to open `{path}`")]
    Path {
        /// The path.
        path: String,
        /// Why.
        #[source]
        source: PathFdError,
    },
}

/// Enforces the rules on the calling thread and all that it starts.
pub(crate) fn enforce(writable: &[String]) -> Result<(), Error> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?;
    let mut rules = allow(rules, "/", AccessFs::from_read(NEWEST))?;
    for path in writable {
        rules = allow(rules, path, AccessFs::from_all(NEWEST))?;
    }
    let device = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::IoctlDev;
    for path in DEVICES {
        rules = allow(rules, path, device)?;
    }
    // Best effort is about single rights of newer kernels. No Landlock at all is not an effort.
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(Error::Unsupported),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}

/// Adds a rule, unless the path does not exist: then there is nothing to allow.
fn allow(rules: RulesetCreated, path: &str, access: BitFlags<AccessFs>) -> Result<RulesetCreated, Error> {
    let opened = match PathFd::new(path) {
        Ok(opened) => opened,
        Err(PathFdError::OpenCall { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(rules);
        }
        Err(source) => return Err(Error::Path { path: path.to_owned(), source }),
    };
    // For a path that is a file, the crate leaves out the rights that only a folder can have.
    Ok(rules.add_rule(PathBeneath::new(opened, access))?)
}
