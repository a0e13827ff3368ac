//! The hidden roles: what this same binary is when Cofferdam starts it for a sandbox.
//!
//! They are taken before clap, tokio, tracing and any thread exist, because several of them must be
//! single-threaded and all of them must carry as little as possible into the sandbox.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::commands::demo;

/// A role's main function. It reads its own arguments.
type Role = fn() -> ExitCode;

/// Every role by the first argument that names it.
const ROLES: &[(&str, Role)] = &[("demo-agent", demo::agent::main)];

/// The role that these arguments name, if they name one.
pub(crate) fn named_by(arguments: impl Iterator<Item = OsString>) -> Option<Role> {
    let name = arguments.into_iter().nth(1)?;
    ROLES.iter().find(|(role, _)| name == *role).map(|(_, main)| *main)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn no_role_hides_a_command() {
        let cli = crate::cli::Cli::command();
        for (role, _) in ROLES {
            assert!(cli.get_subcommands().all(|command| command.get_name() != *role), "{role}");
        }
    }

    #[test]
    fn a_role_is_taken_from_the_first_argument_alone() {
        let named = |words: &[&str]| named_by(words.iter().map(OsString::from)).is_some();
        assert!(named(&["cofferdam", "demo-agent", "{}"]));
        assert!(!named(&["cofferdam", "run", "--", "demo-agent"]));
        assert!(!named(&["demo-agent"]));
    }
}
