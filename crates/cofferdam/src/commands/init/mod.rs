//! `cofferdam init`: looks at what is there, asks what cannot be seen, and writes the settings.

mod found;
mod questions;

use std::io::{IsTerminal, stdin};

use clap::Args;
use cofferdam_core::{Agent, AgentName, Effective, Mode, Origin};

use self::found::Found;
use self::questions::Questions;
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::{sanitize, settings, terminal};

/// Set up: find agents, keys, logins and sandboxes, ask a few questions, and write the settings
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Ask nothing, and take the defaults
    #[arg(long)]
    yes: bool,
}

/// What an agent is called if nobody says otherwise.
const USUAL_NAME: &str = "coder";

/// What is to be written.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    mode: Option<Mode>,
    agent: Option<(AgentName, Agent)>,
}

/// Looks, asks, writes, and says what to type next.
pub(crate) async fn run(args: &InitArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let has_terminal = stdin().is_terminal() && terminal::stderr_is_terminal();
    if !args.yes && !has_terminal {
        let message = "init asks questions, and there is no terminal to ask them on";
        return Err(UsageError::new(message, "type `cofferdam init --yes` to take the defaults").into());
    }
    let home = caller.open_state()?;
    // A repository has no say in what is written for all of them.
    let settings = settings::load(caller, home.root())?.effective;
    let found = Found::look(caller, &home, &settings).await?;
    terminal::write_stderr(&found.to_text());
    let mut questions = if args.yes { Questions::silent() } else { Questions::on_terminal() };
    let plan = plan(&found, &settings, &mut questions)?;
    let path = home.root().join("settings.json");
    let shown = sanitize::line(&path.display().to_string());
    if plan == Plan::default() {
        terminal::write_stderr(&format!("cofferdam: {shown} stays as it is\n"));
    } else if questions.yes(&format!("Write {} to {shown}?", plan.to_text()))? {
        settings::change(&home, |text| {
            let text = match plan.mode {
                Some(mode) => cofferdam_core::set_mode(text, mode)?,
                None => text.to_owned(),
            };
            match &plan.agent {
                Some((name, provider)) => cofferdam_core::add_agent(&text, name, *provider),
                None => Ok(text),
            }
        })?;
        terminal::write_stderr(&format!("cofferdam: wrote {} to {shown}\n", plan.to_text()));
    } else {
        terminal::write_stderr("cofferdam: nothing was written\n");
        return Ok(ExitCode::Cancelled);
    }
    terminal::write_stdout(next_steps(&plan, &settings).as_bytes())?;
    Ok(ExitCode::Succeeded)
}

/// What is set already is a default, and is replaced only by an answer.
fn plan(found: &Found, settings: &Effective, questions: &mut Questions) -> Result<Plan, Failure> {
    let set = matches!(settings.origin_of(&["sandbox", "mode"]), Origin::Global(_));
    let before = set.then_some(settings.settings.sandbox.mode);
    let modes = [Mode::Native, Mode::Docker, Mode::Apple, Mode::Host].map(|mode| mode.to_string());
    let modes: Vec<&str> = modes.iter().map(String::as_str).collect();
    let default = before.unwrap_or_else(|| found.best_mode()).to_string();
    let answer = questions.choose("Where do agents run?", &modes, &default)?;
    let mode: Mode = answer.parse().expect("it is one of the modes");
    let mut plan = Plan { mode: Some(mode).filter(|mode| before != Some(*mode)), agent: None };
    // Who has agents knows how to add another.
    if settings.settings.agents.is_empty() {
        let mut agents: Vec<&str> = Agent::ALL.iter().map(|provider| provider.as_str()).collect();
        agents.push("none");
        let default = found.best_agent(mode).map_or("none", Agent::as_str);
        let answer = questions.choose("Which agent works for you?", &agents, default)?;
        if let Some(provider) = Agent::ALL.into_iter().find(|provider| provider.as_str() == answer) {
            plan.agent = Some((questions.name("What is it called?", USUAL_NAME)?, provider));
        }
    }
    Ok(plan)
}

impl Plan {
    fn to_text(&self) -> String {
        let mode = self.mode.map(|mode| format!("the mode `{mode}`"));
        let agent = self.agent.as_ref().map(|(name, provider)| format!("the agent `{name}` ({provider})"));
        mode.into_iter().chain(agent).collect::<Vec<_>>().join(" and ")
    }
}

fn next_steps(plan: &Plan, settings: &Effective) -> String {
    let new = plan.agent.as_ref().map(|(name, _)| name.to_string());
    let agent = new.or_else(|| settings.settings.agents.keys().next().map(ToString::to_string));
    let flag = agent.map(|agent| format!("--agent {agent} ")).unwrap_or_default();
    format!(
        "Type next:\n  cofferdam sandbox doctor\n  cofferdam auth status\n  cofferdam run {flag}\"fix the failing test\"\n"
    )
}

#[cfg(test)]
mod tests {
    use cofferdam_core::read_layer;

    use super::*;

    fn settings(text: &str) -> Effective {
        Effective::default().under(&read_layer(text, &Origin::Global("/g".into())).unwrap())
    }

    #[test]
    fn defaults_leave_alone_what_is_set() {
        let found = Found::of([Mode::Docker], [Agent::Codex]);
        let fresh = plan(&found, &settings("{}"), &mut Questions::silent()).unwrap();
        let coder = ("coder".parse().unwrap(), Agent::Codex);
        assert_eq!(fresh, Plan { mode: Some(Mode::Docker), agent: Some(coder) });
        let set = r#"{"sandbox": {"mode": "native"}, "agents": {"mine": {"provider": "opencode"}}}"#;
        assert_eq!(plan(&found, &settings(set), &mut Questions::silent()).unwrap(), Plan::default());
    }
}
