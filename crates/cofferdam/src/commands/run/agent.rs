//! Which agent does the work: the one that was named, or the one that is installed and has a key.

use std::path::Path;

use cofferdam_agent::profile;
use cofferdam_core::{Agent, Mode, PromptSetup, Work};
use cofferdam_runner::NoModel;
use cofferdam_runner::installation::{InstallationError, Search, find};
use cofferdam_runner::logins::LoginError;

use crate::caller::Caller;
use crate::failure::UsageError;
use crate::secrets::{CallerSecrets, no_model};

/// Where agents are looked for.
#[derive(Clone, Copy)]
pub(super) struct Agents<'a> {
    /// Whose PATH and home it is.
    pub(super) caller: &'a Caller,
    /// What opens the models.
    pub(super) secrets: &'a CallerSecrets,
    /// The repository, which may not supply an agent's CLI.
    pub(super) repository: Option<&'a Path>,
}

impl Agents<'_> {
    /// Refuses an agent that is not installed or has no key: inside, it would only find out after minutes of retries.
    pub(super) fn check(&self, work: &Work, mode: Mode) -> Result<(), UsageError> {
        let Some(agent) = work.agent() else { return Ok(()) };
        self.place(agent, mode).map_err(|error| cannot_be_used(&error))?;
        self.secrets.choose_for(work).map_err(|error| has_no_model(agent, &error))?;
        Ok(())
    }

    /// The first agent that is installed and has a key, and what to say about the choice.
    pub(super) fn first_that_can(
        &self,
        mode: Mode,
        setup: &PromptSetup,
    ) -> Result<(Agent, String), UsageError> {
        let mut installed = Vec::new();
        for agent in Agent::ALL {
            let Ok(place) = self.place(agent, mode) else { continue };
            match self.secrets.choose(agent, (profile(agent).vendors)(setup.model.as_deref())) {
                Ok(_) => return Ok((agent, format!("using {} ({place})", profile(agent).title))),
                Err(error) => installed.push((agent, error)),
            }
        }
        // Whoever has logged in somewhere wants to know what became of that.
        let tried = installed.iter().find(|(_, error)| !matches!(error, LoginError::Missing { .. }));
        match tried.or(installed.first()) {
            Some((agent, error)) => Err(has_no_model(*agent, error)),
            None => {
                let programs = Agent::ALL.map(|agent| profile(agent).program).join(" nor ");
                let package = profile(Agent::default()).package;
                Err(UsageError::new(
                    format!("no agent is installed: neither {programs} is on PATH"),
                    format!("type `npm install -g {package}`, then `cofferdam sandbox doctor`"),
                ))
            }
        }
    }

    /// Where an agent's CLI is. What is installed here does not matter to a container: its image has agents of its own,
    /// or has not.
    fn place(&self, agent: Agent, mode: Mode) -> Result<String, InstallationError> {
        if mode.is_container() {
            return Ok("of the image".to_owned());
        }
        let (path, home) = (self.caller.path(), self.caller.home());
        let search = Search { path: &path, home: home.as_deref(), exclude: self.repository };
        find(agent, &search).map(|found| found.command.display().to_string())
    }
}

fn has_no_model(agent: Agent, error: &LoginError) -> UsageError {
    let NoModel { message, hint } = no_model(error);
    tracing::warn!(%agent, "{message}; nothing was started");
    UsageError::new(message, hint)
}

fn cannot_be_used(error: &InstallationError) -> UsageError {
    UsageError::new(cofferdam_core::with_causes(error), error.remedy())
}
