//! What is said to the agent: its task, the messages of others, and at the end that nothing more will come.

use std::io;
use std::str::FromStr;
use std::time::Instant;

use cofferdam_agent::Message;
use cofferdam_core::{AgentEnd, MessageKind, MessageReceipt, RefusalReason};
use rustix::process::Signal;
use serde_json::Value;

use crate::agent_process::AgentProcess;
use crate::session::Session;

impl Session {
    /// A message of the host.
    pub(crate) fn pass_on(
        &mut self,
        agent: &mut AgentProcess,
        id: String,
        kind: &str,
        content: String,
    ) -> io::Result<()> {
        let Ok(kind) = MessageKind::from_str(kind) else {
            return self.refuse(id, RefusalReason::UnknownKind);
        };
        if agent.ended.is_some() || agent.ended_for.is_some() || agent.dismissed {
            return self.refuse(id, RefusalReason::RunEnded);
        }
        if agent.stdin.as_ref().is_some_and(|stdin| stdin.is_crowded()) {
            return self.refuse(id, RefusalReason::AgentDoesNotRead);
        }
        if !self.heard.insert(id.clone()) {
            return Ok(());
        }
        agent.relay.send(Message { id, kind, content }, &mut self.output)?;
        self.tell(agent)
    }

    /// Writes what the adapter has for the agent.
    pub(crate) fn tell(&mut self, agent: &mut AgentProcess) -> io::Result<()> {
        for line in agent.relay.take_lines() {
            let Some(stdin) = &agent.stdin else { return Ok(()) };
            if !stdin.write(line) {
                // Whoever talks to us this much without listening gets no answer.
                agent.stdin = None;
                return self.log("closed the agent's stdin: it does not read");
            }
        }
        Ok(())
    }

    /// Tells the agent that nothing more will come. There is one queue for all that happens and one thread that
    /// takes from it: a message that was there before this has been passed on, and one that comes later is
    /// refused. None is lost in between.
    pub(crate) fn dismiss(&mut self, agent: &mut AgentProcess) {
        agent.stdin = None;
        agent.dismissed = true;
        let exit_by = Instant::now() + self.options.exit_grace;
        agent.act_at = agent.act_at.into_iter().chain([exit_by]).min();
    }

    /// The agent was to exit by now. The first time it is asked once more; `false` if it has to be killed.
    pub(crate) fn urge(&mut self, agent: &mut AgentProcess) -> bool {
        if !agent.dismissed || agent.ended_for.is_some() {
            return false;
        }
        agent.ended_for = Some(AgentEnd::Dismissed);
        self.reaper.signal_group(agent.pid, Signal::TERM);
        agent.act_at = Some(Instant::now() + self.options.exit_grace);
        true
    }

    /// The receipts of what the agent never took.
    pub(crate) fn refuse_the_rest(&mut self, agent: &mut AgentProcess) -> io::Result<()> {
        for receipt in agent.relay.abandon() {
            emit_receipt(&receipt, |event_type, data| self.output.emit(event_type, data))?;
        }
        Ok(())
    }

    pub(crate) fn refuse(&mut self, id: String, reason: RefusalReason) -> io::Result<()> {
        let receipt = MessageReceipt::refused(id, reason);
        emit_receipt(&receipt, |event_type, data| self.output.emit(event_type, data))
    }
}

/// A receipt as an event.
pub(crate) fn emit_receipt(
    MessageReceipt { id, receipt }: &MessageReceipt,
    emit: impl FnOnce(&str, &Value) -> io::Result<()>,
) -> io::Result<()> {
    emit(receipt.event_type().as_str(), &receipt.event_data(id))
}
