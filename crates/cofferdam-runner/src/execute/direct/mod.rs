//! A direct attempt: a conversation with a model, led by us. There is no process, no sandbox and nothing to seal; what is said
//! is in the record before the next step is taken, so that a crash, a retry and another node all go on from there.

mod journal;
mod mail;
mod shown;
mod socket;

use std::sync::Arc;

use cofferdam_core::{
    AgentEnd, AgentReport, DirectSetup, EventType, Evidence, FailureClass, NOTHING_TO_SEAL, Outcome,
    SandboxExit, conclude, gateway,
};
use cofferdam_direct::{
    Ended, Entry as Said, Fact, History, Journal as _, ModelClient, Patience, Turn, converse,
};
use cofferdam_sandbox::CreateError;
use cofferdam_store::Claimed;
use serde_json::json;
use tokio::time::{Duration, sleep};

use self::journal::StoreJournal;
use self::mail::StoreMail;
use self::socket::AttemptSocket;
use super::begin::{has_told, prepare};
use super::way_out::open_way_out;
use super::{Attempt, Entry, Stop};
use crate::node::{Node, now_ms};
use crate::progress::{Cancel, Stage};
use crate::tools::{ToolBox, ToolsError};
use crate::workspace::Layering;

/// Leads the conversation to its end. However that comes, the way to the model is closed afterwards.
pub(super) async fn run(attempt: &mut Attempt<'_>, setup: &DirectSetup) -> Result<Outcome, Stop> {
    let outcome = lead(attempt, setup).await;
    attempt.node.broker.close(&attempt.node.store, &attempt.claimed.attempt).await;
    outcome
}

async fn lead(attempt: &mut Attempt<'_>, setup: &DirectSetup) -> Result<Outcome, Stop> {
    let left = time_left(attempt.node, &attempt.claimed).await?;
    let mut cancel = attempt.cancel.clone();
    let cancelled = async move {
        if cancel.wait_for(|asked| *asked != Cancel::No).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let timeout_ms = attempt.claimed.request.policy.timeout_ms;
    // Dropping a conversation ends it at once: nothing of it lives outside this future but calls of the model, which the broker
    // cuts when their connection is gone.
    tokio::select! {
        biased;
        () = cancelled => Ok(Outcome::Cancelled),
        () = sleep(left) => Ok(Outcome::TimedOut { timeout_ms }),
        ended = talk(attempt, setup) => ended,
    }
}

/// What is left of the attempt's time, which a restart of its node does not prolong.
async fn time_left(node: &Node, claimed: &Claimed) -> Result<Duration, Stop> {
    let tried = &claimed.attempt;
    let attempts = node.store.attempts(&tried.run).await?;
    let started =
        attempts.iter().find(|one| one.number == tried.number).map_or_else(now_ms, |one| one.started_at_ms);
    let ends_at_ms = started.saturating_add(claimed.request.policy.timeout_ms);
    Ok(Duration::from_millis(ends_at_ms.saturating_sub(now_ms())))
}

async fn talk(attempt: &mut Attempt<'_>, setup: &DirectSetup) -> Result<Outcome, Stop> {
    let node = attempt.node;
    // Before there is a way out, whose sockets are in the folder that a workspace is prepared in.
    let tools = tools_for(attempt, setup).await?;
    let Some(way_out) = open_way_out(node, &attempt.claimed).await? else {
        unreachable!("the policy of a direct run lets it reach its model");
    };
    attempt.stage(Stage::Running);
    let socket = Arc::new(AttemptSocket { folder: way_out.folder });
    let model =
        ModelClient::new(socket, http::HeaderMap::new(), Patience::default()).below(gateway::ANTHROPIC);
    let tools = tools.tools(node, setup, &model);
    let mut history = history(node, &attempt.claimed).await?;
    let mut mail = StoreMail::new(node, &attempt.claimed.lease);
    let (before, own) = (history.before.len(), history.own.len());
    // One that died after its last word says it again.
    let is_told =
        attempt.entry == Entry::Adopted && has_told(node, &attempt.claimed, EventType::AgentFinished).await?;
    let mut journal = StoreJournal::new(attempt, before + own, is_told);
    if own == 0 {
        let prompt = Turn::prompt(&setup.prompt);
        let started = json!({ "model": setup.model, "tools": setup.tools, "seal": NOTHING_TO_SEAL });
        let started = Fact { event_type: EventType::AgentStarted, data: started };
        let entry = Said { turns: vec![prompt.clone()], facts: vec![started], ..Said::default() };
        if let Err(error) = journal.record(entry).await {
            return Err(journal.stop(&error));
        }
        history.own.push(prompt);
    }
    let settings = settings_of(setup);
    let ended = converse(&settings, history, &model, &tools, &mut journal, &mut mail).await;
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => return Err(journal.stop(&error)),
    };
    // What the calls came to is on record once they are closed.
    node.broker.close(&node.store, &attempt.claimed.attempt).await;
    conclude_with(node, &attempt.claimed, &ended).await
}

/// The tools, with the project in front of them if they read one: as layers, or as a copy where it cannot be layered.
async fn tools_for(attempt: &mut Attempt<'_>, setup: &DirectSetup) -> Result<ToolBox, Stop> {
    let node = attempt.node;
    if !setup.tools.iter().any(|tool| tool.reads_project()) {
        return Ok(ToolBox::new(node, &attempt.claimed));
    }
    let prepared = prepare(attempt, Layering::Overlay).await?;
    match ToolBox::with_project(node, &attempt.claimed, &prepared).await {
        Err(ToolsError::Create(CreateError::NoOverlay { message, id })) => {
            tracing::info!(sandbox.id = %id, %message, "copying the project: it cannot be layered");
            let prepared = prepare(attempt, Layering::Copy).await?;
            Ok(ToolBox::with_project(node, &attempt.claimed, &prepared).await?)
        }
        opened => Ok(opened?),
    }
}

fn settings_of(setup: &DirectSetup) -> cofferdam_direct::Settings {
    cofferdam_direct::Settings {
        model: setup.model.clone(),
        system: cofferdam_direct::system_prompt(
            setup.system_prompt.as_deref(),
            setup.append_system_prompt.as_deref(),
        ),
        max_turns: setup.max_turns,
        max_output_tokens: setup.max_output_tokens,
        thinking: setup.thinking,
        effort: setup.effort,
        output_schema: setup.output_schema.clone(),
    }
}

/// What was said so far.
async fn history(node: &Node, claimed: &Claimed) -> Result<History, Stop> {
    let mut history = History::default();
    for stored in node.store.turns(&claimed.lease).await? {
        let turn: Turn = serde_json::from_str(&stored.content).map_err(|_| {
            let message = format!("turn {} of the conversation on record cannot be read", stored.number);
            Stop::outcome(Outcome::failed(FailureClass::Lost, message))
        })?;
        if stored.is_earlier { history.before.push(turn) } else { history.own.push(turn) }
    }
    Ok(history)
}

/// Concludes by the same rules as for an agent's process: a conversation that has ended was dismissed, and what it says of
/// itself is its report.
async fn conclude_with(node: &Node, claimed: &Claimed, ended: &Ended) -> Result<Outcome, Stop> {
    let tried = &claimed.attempt;
    let budget_exceeded = node.store.budget_exceeded(&tried.run).await?;
    // The broker has seen more of it than its client.
    let seen = node.store.last_trouble(tried).await?;
    let report = &ended.report;
    let message = match report.errors.is_empty() {
        true => report.result.clone().unwrap_or_default(),
        false => report.errors.join("; "),
    };
    let outside = SandboxExit::unknown();
    let outcome = conclude(&Evidence {
        worker: Some(&AgentEnd::Dismissed),
        report: Some(&AgentReport { ok: !report.is_error, message }),
        outside: &outside,
        cancel_requested: false,
        timeout_ms: claimed.request.policy.timeout_ms,
        budget_exceeded: budget_exceeded.as_deref(),
        trouble: ended.trouble.as_ref().map(|own| seen.as_ref().unwrap_or(own)),
    });
    Ok(match outcome {
        // There is no diff that could have what it did.
        Outcome::Failed { class: FailureClass::Budget, message, .. } => {
            let hint = format!("go on with what was said: cofferdam ask --continue {} \"…\"", tried.run);
            Outcome::failed_with_hint(FailureClass::Budget, message, hint)
        }
        outcome => outcome,
    })
}
