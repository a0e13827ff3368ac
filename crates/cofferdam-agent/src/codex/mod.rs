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

use std::path::PathBuf;

use cofferdam_core::{AgentReport, PromptSetup};

use crate::adapter::{Adapter, Command, Context, Message, Receipt, Step, Stream, Supports};
use crate::detect::Search;
use crate::facts;
use crate::json_lines::LONGEST_LINE;
use turns::Turns;

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
        Self {
            setup,
            working_directory: String::new(),
            resume: None,
            turns: Turns::default(),
            last_message: String::new(),
            report: None,
        }
    }
}

impl Adapter for Codex {
    fn provider(&self) -> &'static str {
        "codex"
    }

    fn detect(&self, search: &Search<'_>) -> Option<PathBuf> {
        search.find("codex")
    }

    fn command(&self, context: &Context<'_>) -> Command {
        command::command(&self.setup, context)
    }

    fn supports(&self) -> Supports {
        Supports { steer: true, follow_up: true, interrupt: true, max_turns: false }
    }

    fn longest_line(&self) -> usize {
        LONGEST_LINE
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
        Some(self.report.clone().unwrap_or_else(|| AgentReport {
            ok: false,
            message: "Codex ended before it had finished its turn".to_owned(),
        }))
    }
}
