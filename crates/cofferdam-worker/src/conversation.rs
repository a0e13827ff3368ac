//! What is said to the agent: its task, the messages of others, and at the end that nothing more will come.

use std::io;
use std::str::FromStr;
use std::time::Instant;

use cofferdam_agent::{Message, Receipt};
use cofferdam_core::{AgentEnd, EventType, MessageKind};
use rustix::process::Signal;
use serde_json::json;

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
        let Ok(kind) = MessageKind::from_str(kind) else { return self.refuse(&id, "unknown_kind") };
        if agent.ended.is_some() || agent.ended_for.is_some() || agent.dismissed {
            return self.keep_or_refuse(id, kind, content, "run_ended");
        }
        if agent.stdin.as_ref().is_some_and(|stdin| stdin.is_crowded()) {
            return self.refuse(&id, "agent_does_not_read");
        }
        if !self.heard.insert(id.clone()) {
            return Ok(());
        }
        let message = Message { id, kind, content };
        if self.kept.is_some() {
            self.given.push(message.clone());
        }
        agent.relay.send(message, &mut self.output)?;
        self.tell(agent)
    }

    /// There is no agent that the message could be for: it waits for the next one, if there may be one.
    pub(crate) fn keep_or_refuse(
        &mut self,
        id: String,
        kind: MessageKind,
        content: String,
        reason: &str,
    ) -> io::Result<()> {
        match &mut self.kept {
            None => self.refuse(&id, reason),
            Some(kept) => {
                // A host that does not know whether it arrived sends it again, and an agent may have taken it since.
                if !self.heard.contains(&id) && kept.iter().all(|message| message.id != id) {
                    kept.push(Message { id, kind, content });
                }
                Ok(())
            }
        }
    }

    /// From now on there may be another agent after each.
    pub(crate) fn keep_messages(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// Passes on what has waited for an agent.
    pub(crate) fn pass_on_kept(&mut self, agent: &mut AgentProcess) -> io::Result<()> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        for Message { id, kind, content } in std::mem::take(kept) {
            self.pass_on(agent, id, kind.as_str(), content)?;
        }
        Ok(())
    }

    /// No agent follows, so that nothing waits for one any more.
    pub(crate) fn refuse_kept(&mut self) -> io::Result<()> {
        for message in self.kept.take().unwrap_or_default() {
            self.refuse(&message.id, "run_ended")?;
        }
        Ok(())
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

    /// The receipts of what the agent never took. Where another one may follow, it waits for that; but an interrupt was
    /// meant for this agent's turn, which is over.
    pub(crate) fn refuse_the_rest(&mut self, agent: &mut AgentProcess) -> io::Result<()> {
        let given = std::mem::take(&mut self.given);
        for receipt in agent.relay.abandon() {
            let (Receipt::Refused { id, .. } | Receipt::Delivered { id, .. }) = &receipt;
            let is_meant = |message: &&Message| message.id == *id && message.kind != MessageKind::Interrupt;
            if let (Some(kept), Some(message), Receipt::Refused { .. }) =
                (&mut self.kept, given.iter().find(is_meant), &receipt)
            {
                self.heard.remove(id);
                kept.push(message.clone());
                continue;
            }
            emit_receipt(&receipt, |event_type, data| self.output.emit(event_type, data))?;
        }
        Ok(())
    }

    pub(crate) fn refuse(&mut self, id: &str, reason: &str) -> io::Result<()> {
        let data = json!({ "id": id, "reason": reason });
        self.output.emit(EventType::MessageRefused.as_str(), &data)
    }
}

/// A receipt as an event.
pub(crate) fn emit_receipt(
    receipt: &Receipt,
    emit: impl FnOnce(&str, &serde_json::Value) -> io::Result<()>,
) -> io::Result<()> {
    match receipt {
        Receipt::Delivered { id, taken_as } => {
            emit(EventType::MessageDelivered.as_str(), &json!({ "id": id, "as": taken_as }))
        }
        Receipt::Refused { id, reason } => {
            emit(EventType::MessageRefused.as_str(), &json!({ "id": id, "reason": reason }))
        }
    }
}
