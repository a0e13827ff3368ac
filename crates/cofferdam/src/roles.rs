//! The hidden roles: what this same binary is when Cofferdam starts it for a sandbox.
//!
//! They are taken before clap, tokio, tracing and any thread exist, because several of them must be
//! single-threaded and all of them must carry as little as possible into the sandbox.

use std::ffi::OsString;
use std::process::ExitCode;

use cofferdam_direct::sealed::SealedCall;

use crate::commands::demo;

/// A role's main function. It reads its own arguments.
type Role = fn() -> ExitCode;

/// Every role by the first argument that names it.
const ROLES: &[(&str, Role)] = &[
    ("shim", shim),
    ("watcher", watcher),
    ("try-socket", try_socket),
    ("try-mount", try_mount),
    ("launcher", launcher),
    ("runtime-client", runtime_client),
    ("worker", worker),
    ("broker", broker),
    ("enter-walls", || cofferdam_walls::enter_main(arguments())),
    ("collect", || cofferdam_runner::artifacts::collector_main(arguments())),
    ("publish", || cofferdam_runner::publish::publisher_main(arguments(), cofferdam_worker::open_gateway)),
    ("fetch-repository", || cofferdam_runner::workspace::fetcher_main(cofferdam_worker::open_gateway)),
    (SealedCall::ROLE, cofferdam_direct::sealed::sealed_main),
    ("demo-agent", demo::agent::main),
];

/// What follows the role's name.
fn arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(2)
}

fn shim() -> ExitCode {
    let mut arguments = arguments();
    match (arguments.next(), arguments.next()) {
        (Some(folder), Some(ticket)) => {
            cofferdam_sandbox::shim_main(folder.as_ref(), &ticket.to_string_lossy())
        }
        _ => misused("shim FOLDER TICKET"),
    }
}

fn watcher() -> ExitCode {
    match arguments().next() {
        Some(folder) => cofferdam_sandbox::docker::watcher_main(folder.as_ref()),
        None => misused("watcher FOLDER"),
    }
}

fn try_socket() -> ExitCode {
    match arguments().next() {
        Some(path) => cofferdam_sandbox::docker::try_socket_main(path.as_ref()),
        None => misused("try-socket PATH"),
    }
}

fn try_mount() -> ExitCode {
    match arguments().next() {
        Some(path) => cofferdam_sandbox::docker::try_mount_main(path.as_ref()),
        None => misused("try-mount PATH"),
    }
}

fn launcher() -> ExitCode {
    let mut arguments = arguments();
    let parent = |text: OsString| text.to_str()?.parse().ok();
    match (arguments.next(), arguments.next().and_then(parent)) {
        (Some(folder), Some(parent)) => cofferdam_sandbox::launcher_main(folder.as_ref(), parent),
        _ => misused("launcher FOLDER PARENT"),
    }
}

fn runtime_client() -> ExitCode {
    let mut arguments = arguments();
    let parent = |text: OsString| text.to_str()?.parse().ok();
    match (arguments.next(), arguments.next().and_then(parent)) {
        (Some(folder), Some(parent)) => {
            cofferdam_sandbox::apple::runtime_client_main(folder.as_ref(), parent)
        }
        _ => misused("runtime-client FOLDER PARENT"),
    }
}

fn broker() -> ExitCode {
    let mut arguments = arguments();
    let text = |argument: Option<OsString>| argument.and_then(|text| text.into_string().ok());
    match (arguments.next(), text(arguments.next()), text(arguments.next())) {
        (Some(state), Some(node), name) => crate::broker_role::main(state.as_ref(), &node, name.as_deref()),
        _ => misused("broker STATE NODE [NAME]"),
    }
}

fn worker() -> ExitCode {
    match cofferdam_worker::Options::of_this_process() {
        Ok(options) => cofferdam_worker::worker_main(options),
        Err(error) => {
            eprintln!("the worker cannot start: {error}");
            ExitCode::FAILURE
        }
    }
}

fn misused(usage: &str) -> ExitCode {
    eprintln!("usage: cofferdam {usage} (a role that Cofferdam starts itself)");
    ExitCode::FAILURE
}

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
