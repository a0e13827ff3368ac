//! Asking a model without an agent's process: judging a question. It is accepted as any other run is.

use cofferdam_core::{
    Action, Actor, AskInput, ChosenPolicy, InputError, InputSyntax, RunId, RunRequest, Surroundings,
    validate_ask,
};

use super::create::{Judged, Way};
use crate::Operations;
use crate::clock::now_ms;
use crate::error::Error;
use crate::random::random_bits;

const RESUME: &str = "options.resume";

/// What somebody asks, and how.
#[derive(Clone, Copy)]
pub struct NewAsk<'a> {
    /// What is asked, as it was written.
    pub input: &'a AskInput,
    /// How it was written, so that an error names a field in the same way.
    pub syntax: InputSyntax,
    /// Who executes it.
    pub way: Way<'a>,
    /// Facts about the machine that the input speaks of.
    pub surroundings: &'a (dyn Surroundings + Sync),
}

impl Operations {
    /// Judges what somebody asks, and starts nothing. It is accepted with [`Operations::accept`].
    ///
    /// # Errors
    /// [`Error`].
    pub async fn judge_ask(&self, actor: &Actor, new: &NewAsk<'_>) -> Result<Judged, Error> {
        let id = RunId::new(now_ms(), random_bits());
        self.authorise_at_all(actor, Action::CreateRun, id.as_str()).await?;
        let now = self.now().await?;
        let project = now.project_of(new.input.project_id.as_deref(), new.way).await?;
        let resumed = now.resumed(actor, new.input.options.resume.as_deref()).await?;
        let request = now.in_context(
            (actor, &id),
            (new.syntax, new.way, new.surroundings),
            project.as_ref(),
            |context| validate_ask(new.input, resumed.as_ref(), context),
        )?;
        now.judge_request(actor, request, ChosenPolicy::Known(None)).await
    }

    /// The run whose conversation is to go on. Whoever goes on with it can have all of it repeated, without anything redacted,
    /// and so needs what it takes to run it again.
    async fn resumed(&self, actor: &Actor, named: Option<&str>) -> Result<Option<RunRequest>, Error> {
        // What is no id is refused where the input is checked.
        let Some(run) = named.and_then(|text| text.parse::<RunId>().ok()) else { return Ok(None) };
        let record = self.touchable_run(actor, Action::RetryRun, &run).await?;
        let refuse = |problem: String, hint: &str| Err(InputError::invalid(RESUME, problem, hint).into());
        if record.request.work.direct().is_none() {
            return refuse(
                format!("{run} is not a question to a model"),
                "use the `run_id` of an earlier answer",
            );
        }
        if !record.state.is_final() {
            return refuse(
                format!("{run} is still {}", record.state),
                "wait for its end, or send it a message",
            );
        }
        if !self.store.has_turns(&run).await? {
            let problem = format!("nothing is kept of what was said in {run}");
            return refuse(problem, "ask anew; `retention.events_days` says how long it is kept");
        }
        Ok(Some(record.request))
    }
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
