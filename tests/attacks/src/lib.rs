//! A hostile program: what an agent gone bad would try, one function per named attempt.
//!
//! [`ATTEMPTS`] is the list. Each attempt names the wall that must stop it and how that wall answers, so
//! that a suite can fail not only when an attempt succeeds but also when something else happened to stop
//! it. [`run_all`] makes every attempt in a process of its own; [`behaviours`] are attacks that can only
//! be judged from outside (bombs, endless output, orphans), [`hiding`] those on whoever counts what is used; [`broker`] is
//! what is tried on the way out.
//!
//! Run without a sandbox, as root, every attempt succeeds and harms nothing: that is the control, without
//! which "it was stopped" would prove nothing. What a host may lack is given by the [`Target`].
//!
//! This crate knows no backend: what it attacks is in the target.

mod attempt;
pub mod behaviours;
pub mod broker;
mod container;
mod devices;
mod errno;
mod files;
pub mod hiding;
mod kernel;
mod limits;
mod mounting;
mod network;
mod privileges;
mod processes;
mod run;
mod sys;
mod target;
mod workspace;

pub use attempt::{Attempt, Attempted, Ending, Expect, Report};
pub use run::{run_all, run_on_workspace};
pub use target::Target;
pub use workspace::{FILE as WORKSPACE_FILE, ON_WORKSPACE};

/// Every attempt, by theme. Those that end a process come last.
pub const ATTEMPTS: &[&[Attempt]] = &[
    privileges::ATTEMPTS,
    kernel::ATTEMPTS,
    mounting::ATTEMPTS,
    devices::ATTEMPTS,
    files::ATTEMPTS,
    network::ATTEMPTS,
    container::ATTEMPTS,
    limits::ATTEMPTS,
    processes::ATTEMPTS,
];

/// The attempt of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Attempt> {
    ATTEMPTS.iter().copied().flatten().find(|attempt| attempt.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attempt_has_a_name_of_its_own() {
        let all = ATTEMPTS.iter().copied().chain([ON_WORKSPACE]).flatten();
        let names: Vec<_> = all.map(|attempt| attempt.name).collect();
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
    }
}
