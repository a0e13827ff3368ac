//! Claude Code: JSON lines both ways (`--input-format stream-json`).
//!
//! A user message that is written while the agent works enters its next request to the model; one that is
//! written when a turn has just ended starts the next turn. With `--replay-user-messages` the CLI repeats
//! each message at the moment it takes it, under the id that we gave it: that is the receipt.

mod command;
mod login;
mod messages;
mod parse;
mod permissions;

use cofferdam_core::{AgentReport, PromptSetup};

use crate::adapter::{Adapter, Command, Context, Message, Receipt, Step, Stream};
use crate::json_lines::unfinished;
use messages::Messages;

#[derive(Default)]
pub(crate) struct ClaudeCode {
    setup: PromptSetup,
    messages: Messages,
    session_id: Option<String>,
    /// The session that is to go on.
    resume: Option<String>,
    could_not_resume: bool,
    report: Option<AgentReport>,
}

impl ClaudeCode {
    pub(crate) fn new(setup: PromptSetup) -> Self {
        Self { setup, ..Self::default() }
    }
}

impl Adapter for ClaudeCode {
    fn command(&self, context: &Context<'_>) -> Command {
        command::command(&self.setup, context)
    }

    fn begin(&mut self, context: &Context<'_>) -> Step {
        self.resume = context.resume().map(str::to_owned);
        self.messages.begin(context.attempt, &self.setup.prompt)
    }

    fn parse(&mut self, stream: Stream, line: &[u8]) -> Step {
        self.understand(stream, line)
    }

    fn send(&mut self, message: Message) -> Step {
        self.messages.send(message)
    }

    fn is_idle(&self) -> bool {
        self.messages.is_idle()
    }

    fn abandon(&mut self) -> Vec<Receipt> {
        self.messages.abandon()
    }

    fn could_not_resume(&self) -> bool {
        self.could_not_resume
    }

    fn report(&self) -> Option<AgentReport> {
        Some(self.report.clone().unwrap_or_else(|| unfinished("Claude Code")))
    }
}
