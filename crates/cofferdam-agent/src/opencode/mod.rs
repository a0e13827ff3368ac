//! OpenCode: the Agent Client Protocol (`opencode acp`), JSON-RPC on stdin and stdout.
//!
//! A second prompt during a turn would be taken, but the protocol does not say when or whether: so nothing is
//! said to a busy agent, and a follow-up waits here for the end of the turn.

mod command;
mod parse;
mod permissions;
mod tools;
mod turns;

use cofferdam_core::{AgentReport, PromptSetup};

use crate::adapter::{Adapter, Command, Context, Message, Receipt, Step, Stream};
use crate::facts;
use crate::json_lines::unfinished;
use parse::Chunks;
use tools::Tools;
use turns::Turns;

#[derive(Default)]
pub(crate) struct OpenCode {
    setup: PromptSetup,
    working_directory: String,
    /// The session that is to go on.
    resume: Option<String>,
    turns: Turns,
    chunks: Chunks,
    tools: Tools,
    /// What the agent said last in this turn.
    last_message: String,
    /// What the session has cost, as the CLI counts it.
    cost_usd: Option<f64>,
    report: Option<AgentReport>,
}

impl OpenCode {
    pub(crate) fn new(setup: PromptSetup) -> Self {
        Self { setup, ..Self::default() }
    }
}

impl Adapter for OpenCode {
    fn command(&self, context: &Context<'_>) -> Command {
        command::command(&self.setup, context)
    }

    fn begin(&mut self, context: &Context<'_>) -> Step {
        context.working_directory.clone_into(&mut self.working_directory);
        self.resume = context.resume().map(str::to_owned);
        let mut step = self.turns.begin();
        if self.setup.max_turns.is_some() {
            step.facts
                .push(facts::log("OpenCode holds no limit on turns: the one asked for is not in force"));
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
        Some(self.report.clone().unwrap_or_else(|| unfinished("OpenCode")))
    }
}
