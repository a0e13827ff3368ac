//! `cofferdam status`.

use std::fmt;

use clap::Args;
use cofferdam_core::{NodeName, iso_time};
use cofferdam_runner::Home;
use serde_json::json;

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::service::State;
use crate::terminal;

/// Tell whether the service runs
///
/// Exit codes: 0 it runs, 1 it does not.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Which one
    #[arg(long, value_name = "NAME", default_value_t)]
    name: NodeName,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Tells it.
pub(crate) fn run(args: &StatusArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let home = caller.open_state()?;
    let state = look(&home, &args.name)?;
    match args.json {
        true => terminal::write_json(&as_json(&args.name, &state))?,
        false => {
            terminal::write_stdout(Shown { name: &args.name, state: &state }.to_string().as_bytes())?;
        }
    }
    Ok(match state {
        State::Running(_) => ExitCode::Succeeded,
        State::Stopped | State::Unclean(_) => ExitCode::Failed,
    })
}

/// Whether the service of this name runs.
pub(super) fn look(home: &Home, name: &NodeName) -> Result<State, Failure> {
    State::of(home, name)
        .map_err(|error| Failure::internal("the state of the service cannot be read", &error))
}

fn as_json(name: &NodeName, state: &State) -> serde_json::Value {
    let (word, served) = match state {
        State::Running(served) => ("running", served.as_ref()),
        State::Stopped => ("stopped", None),
        State::Unclean(served) => ("unclean", Some(served)),
    };
    json!({
        "name": name,
        "state": word,
        "ready": served.is_some_and(|served| served.is_ready && word == "running"),
        "pid": served.map(|served| served.pid),
        "started_at": served.map(|served| iso_time(served.started_at_ms)),
        "listen": served.and_then(|served| served.listen),
        "children": served.map(|served| &served.children),
    })
}

/// A service's state for people.
pub(super) struct Shown<'a> {
    pub(super) name: &'a NodeName,
    pub(super) state: &'a State,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        match self.state {
            State::Running(None) => writeln!(f, "{name}: starting"),
            State::Running(Some(served)) => {
                let word = if served.is_ready { "running" } else { "starting or stopping" };
                let since = iso_time(served.started_at_ms);
                write!(f, "{name}: {word} (pid {}, since {since}", served.pid)?;
                if let Some(listen) = served.listen {
                    write!(f, ", listening on {listen}")?;
                }
                writeln!(f, ")")?;
                for (role, child) in &served.children {
                    let pid = child.pid.map_or("not running".to_owned(), |pid| format!("pid {pid}"));
                    let restarts = match child.restarts {
                        0 => String::new(),
                        count => format!(", started again {count} times"),
                    };
                    writeln!(f, "  {role}: {pid}{restarts}")?;
                }
                Ok(())
            }
            State::Stopped => writeln!(f, "{name}: stopped"),
            State::Unclean(served) => {
                writeln!(f, "{name}: unclean (pid {} ended without saying so)", served.pid)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{ChildState, Served};
    use cofferdam_core::ProcessName;

    #[test]
    fn a_state_is_told_in_words() {
        let name = NodeName::default();
        let served = Served {
            pid: 17,
            started_at_ms: 0,
            listen: Some(([127, 0, 0, 1], 8787).into()),
            is_ready: true,
            children: [(
                ProcessName::Dispatcher,
                ChildState { pid: Some(18), restarts: 2, ..ChildState::default() },
            )]
            .into(),
        };
        let shown = |state: State| Shown { name: &name, state: &state }.to_string();
        insta::assert_snapshot!(shown(State::Running(Some(served.clone()))), @r"
        main: running (pid 17, since 1970-01-01T00:00:00.000Z, listening on 127.0.0.1:8787)
          dispatcher: pid 18, started again 2 times
        ");
        assert_eq!(shown(State::Stopped), "main: stopped\n");
        assert_eq!(shown(State::Unclean(served)), "main: unclean (pid 17 ended without saying so)\n");
    }
}
