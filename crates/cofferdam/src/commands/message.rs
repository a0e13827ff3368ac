//! `cofferdam message`: one message to an agent that has a folder of its own, and its reply.

mod reply;
mod request;

use clap::Args;
use cofferdam_core::Mode;

use self::request::request_from;
use super::run::{self, Accepted, Watcher};
use crate::caller::{Caller, new_run_id};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::node::BrokerSetup;
use crate::secrets::CallerSecrets;
use crate::{redaction, settings, signals, terminal};

/// Say something to an agent of yours, which works in its own folder and remembers what was said.
#[derive(Debug, Clone, Args)]
#[command(after_help = crate::exit::HELP)]
pub(crate) struct MessageArgs {
    /// What is said; `-` reads it from stdin
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: String,
    /// Its name: a key of `agents` in the settings
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) agent: String,
    /// Forget what was said before
    #[arg(long)]
    pub(crate) new_session: bool,
    /// Longest time of one attempt, such as 90s, 10m, 1h30m [default: 10m]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) timeout: Option<String>,
    /// Print one JSON object instead of the reply
    #[arg(long)]
    pub(crate) json: bool,
}

/// Sends it, and shows what was answered.
pub(crate) async fn run(args: &MessageArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let loaded = settings::load(caller, &settings::local_folder(caller))?;
    loaded.warn();
    let settings = loaded.effective;
    let secrets = CallerSecrets::of(caller)?;
    let home = caller.open_state()?;
    let Accepted { request, notices, mode_by, .. } =
        request_from(args, &new_run_id(), caller, &home, &settings, &secrets)?;
    let settings = settings.settings;
    if request.policy.mode == Mode::Docker {
        // A variable that cannot be read is not overlooked by whoever wants a container.
        settings::docker(caller, &settings)?;
    }
    redaction::refuse_in(&request.work)?;
    run::announce(&notices);
    if request.policy.mode == Mode::Host {
        terminal::write_stderr(&run::host_warning(&mode_by));
    }
    let mut watcher = Watcher::on_stderr();
    let cancel = signals::cancel_on_signals(watcher.notices(), &signals::OF_THIS_MACHINE)
        .map_err(|error| Failure::internal("signals cannot be received", &error))?;
    let broker = BrokerSetup::new(caller, secrets, settings, caller.state_folder().as_deref())?;
    let mut see = |progress| watcher.see(&progress);
    let executed = run::execute(&home, caller, broker, run::Asked::New(request), &mut see, cancel).await;
    watcher.finish();
    let finished = executed?;
    if args.json {
        terminal::write_json(&reply::to_json(&finished, watcher.tally())?)?;
    } else if let Some(reply) = &finished.reply {
        reply::print(&reply.reply)?;
    }
    terminal::write_stderr(&run::summary(&finished, &watcher, None));
    Ok(ExitCode::from(&finished.outcome))
}
