//! Codex: its app server, JSON-RPC on stdin and stdout.
//!
//! The answer to `turn/steer` says that the text was queued, not that it was taken: an interrupt or the end of
//! the turn loses it. What was taken comes back as a `userMessage` item with the id that we gave it.

mod command;
mod items;
mod login;
mod parse;
mod permissions;
mod turns;

use cofferdam_core::{AgentReport, PromptSetup};

use crate::adapter::{Adapter, Command, Context, Message, Receipt, Step, Stream};
use crate::facts;
use crate::json_lines::unfinished;
use turns::Turns;

#[derive(Default)]
pub(crate) struct Codex {
    setup: PromptSetup,
    working_directory: String,
    /// The thread that is to go on.
    resume: Option<String>,
    turns: Turns,
    /// What the agent said last in this turn.
    last_message: String,
    report: Option<AgentReport>,
}

impl Codex {
    pub(crate) fn new(setup: PromptSetup) -> Self {
        Self { setup, ..Self::default() }
    }
}

impl Adapter for Codex {
    fn command(&self, context: &Context<'_>) -> Command {
        command::command(&self.setup, context)
    }

    fn begin(&mut self, context: &Context<'_>) -> Step {
        context.working_directory.clone_into(&mut self.working_directory);
        self.resume = context.resume().map(str::to_owned);
        let mut step = self.turns.begin();
        if self.setup.max_turns.is_some() {
            step.facts.push(facts::log("Codex counts no turns: the limit on turns is not in force"));
        }
        step
    }

    fn parse(&mut self, stream: Stream, line: &[u8]) -> Step {
        self.understand(stream, line)
    }

    fn send(&mut self, message: Message) -> Step {
        self.turns.send(message)
    }

    fn is_idle(&self) -> bool {
        self.turns.is_idle()
    }

    fn abandon(&mut self) -> Vec<Receipt> {
        self.turns.abandon()
    }

    fn report(&self) -> Option<AgentReport> {
        Some(self.report.clone().unwrap_or_else(|| unfinished("Codex")))
    }
}
