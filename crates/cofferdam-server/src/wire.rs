//! From what is on record to what goes over the wire.

use cofferdam_api::{
    ArtifactResponse, AttemptResponse, AuditResponse, DeadLetterResponse, KeyResponse, MessageResponse,
    NodeResponse, ProcessResponse, RunResponse, StartProcessResponse, StopAllResponse, StopProcessResponse,
};
use cofferdam_core::{AttemptRef, MessageState, ProcessName, Receipt, RunId, SandboxId, iso_time};
use cofferdam_operations::{Process, Started, Starting, Stopped, StoppedAll};
use cofferdam_store::{
    Artifact, AttemptRecord, Audit, KeptLetter, KeyRecord, Letter, MessageRecord, NodeRecord, RunRecord,
};
use serde_json::Value;

use crate::status::SILENT_MS;

/// A run with its seal.
pub(crate) fn run(record: RunRecord) -> RunResponse {
    let id = record.request.id.clone();
    RunResponse {
        sandbox_id: sandbox(&id, record.attempts.max(1)),
        id,
        state: record.state,
        owner: record.owner.to_string(),
        request: record.request,
        attempts: record.attempts,
        outcome: record.outcome,
        seal: record.seal,
        cancel_requested_at_ms: record.cancel_requested_at_ms,
        dead_letter: record.letter == Letter::Dead,
        node_id: record.node,
        not_before_ms: record.not_before_ms,
        last_seq: record.last_seq,
        created_at_ms: record.created_at_ms,
        updated_at_ms: record.updated_at_ms,
        finished_at_ms: record.finished_at_ms,
        events_removed_at_ms: record.events_removed_at_ms,
        files_removed_at_ms: record.files_removed_at_ms,
    }
}

/// The sandbox of an attempt.
pub(crate) fn sandbox(run: &RunId, number: u32) -> SandboxId {
    SandboxId::of(&AttemptRef { run: run.clone(), number })
}

pub(crate) fn attempt(run: &RunId, record: AttemptRecord) -> AttemptResponse {
    AttemptResponse {
        number: record.number,
        sandbox_id: sandbox(run, record.number),
        node_id: record.node,
        outcome: record.outcome,
        seal: record.seal,
        started_at_ms: record.started_at_ms,
        ended_at_ms: record.ended_at_ms,
    }
}

pub(crate) fn message(record: MessageRecord) -> MessageResponse {
    MessageResponse {
        id: record.message.id.number(),
        kind: record.message.kind,
        content: record.message.content,
        state: record.receipt.as_ref().map_or(MessageState::Accepted, Receipt::state),
        reason: record.receipt.as_ref().and_then(Receipt::reason).map(str::to_owned),
        created_at_ms: record.message.created_at_ms,
        settled_at_ms: record.settled_at_ms,
    }
}

pub(crate) fn artifact(run: &RunId, artifact: Artifact) -> ArtifactResponse {
    let Artifact { attempt, name, bytes, sha256, .. } = artifact;
    let href = format!("/api/v1/runs/{run}/artifacts/{attempt}/{name}");
    ArtifactResponse { attempt, name, bytes, sha256, href }
}

pub(crate) fn letter(kept: KeptLetter) -> DeadLetterResponse {
    let (replayed_by, replay_state) = kept.replay.map(|replay| (replay.run, replay.state)).unzip();
    DeadLetterResponse { run_id: kept.run, letter: kept.letter, replayed_by, replay_state }
}

pub(crate) fn key(record: KeyRecord) -> KeyResponse {
    let KeyRecord { id, name, owner, scopes, created_at_ms, used_at_ms, revoked_at_ms } = record;
    KeyResponse { id, name, scopes, owner, created_at_ms, used_at_ms, revoked_at_ms }
}

pub(crate) fn node(record: NodeRecord, now_ms: u64) -> NodeResponse {
    let plain = |value: Result<Value, serde_json::Error>| value.expect("what nodes tell is plain JSON");
    let report = record.report;
    NodeResponse {
        id: record.id,
        name: report.name,
        host: report.host,
        version: report.version,
        roles: report.roles.iter().map(ToString::to_string).collect(),
        capacity: report.capacity,
        running: report.running,
        health: plain(serde_json::to_value(report.health)),
        modes: report.modes.into_iter().map(|mode| plain(serde_json::to_value(mode))).collect(),
        started_at_ms: record.started_at_ms,
        seen_at_ms: record.seen_at_ms,
        live: now_ms.saturating_sub(record.seen_at_ms) < SILENT_MS,
    }
}

/// A process as it goes over the wire, and as the command line shows it.
#[must_use]
pub fn process(process: Process) -> ProcessResponse {
    let Process { service, name, desired, report, .. } = process;
    ProcessResponse {
        name: name.to_string(),
        label: name.label(),
        description: name.description(),
        kind: name.kind(),
        supports_stop: true,
        status: report.status,
        desired,
        pid: report.pid,
        started_at: report.started_at_ms.map(iso_time),
        finished_at: report.finished_at_ms.map(iso_time),
        exit_code: report.exit_code,
        signal: report.signal,
        restarts: report.restarts,
        message: report.message,
        log_path: Some(report.log_path).filter(|path| !path.is_empty()),
        service: service.name().to_owned(),
        host: service.record.map(|record| record.report.host),
        service_id: service.id,
    }
}

/// What came of a start.
#[must_use]
pub fn started(started: Started) -> StartProcessResponse {
    let already_running = started.starting == Starting::Before;
    let reason = match started.starting {
        Starting::Skipped(reason) => Some(reason),
        Starting::Now | Starting::Before => None,
    };
    let process = process(started.process);
    StartProcessResponse { process, already_running, skipped: reason.is_some(), reason }
}

/// What came of a stop.
#[must_use]
pub fn stopped(stopped: Stopped) -> StopProcessResponse {
    StopProcessResponse { process: process(stopped.process), cancelled_runs: stopped.cancelled }
}

/// What came of stopping all.
#[must_use]
pub fn stopped_all(stopped: &StoppedAll, cancel: bool) -> StopAllResponse {
    let message = match (stopped.stopped.len(), cancel) {
        (0, _) => "nothing ran".to_owned(),
        (count, true) => format!("{count} processes stop; {} runs were asked to end", stopped.cancelled),
        (count, false) => {
            format!("{count} processes stop; their runs go on, and the next start takes them up")
        }
    };
    let names = |names: &[ProcessName]| names.iter().map(ToString::to_string).collect();
    StopAllResponse {
        stopped: names(&stopped.stopped),
        skipped: names(&stopped.skipped),
        cancelled_runs: stopped.cancelled,
        message,
    }
}

pub(crate) fn audit(record: Audit) -> AuditResponse {
    AuditResponse {
        seq: record.seq,
        at_ms: record.at_ms,
        actor: record.actor,
        outcome: record.outcome.as_str().to_owned(),
        count: record.count,
        action: record.action,
        subject: record.subject,
        data: record.data,
    }
}
