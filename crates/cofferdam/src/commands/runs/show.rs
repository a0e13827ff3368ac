//! `cofferdam runs show`.

use std::time::Duration;

use cofferdam_core::{LimitsRule, NOTHING_TO_SEAL, RunId, Source, show_bytes};
use cofferdam_store::Letter;
use serde_json::{Value, json};

use crate::caller::now_ms;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::{Records, RunRecord};
use crate::units::show_duration;
use crate::{sanitize, terminal, words};

/// Shows one run.
pub(crate) async fn run(records: &Records, id: &RunId, json: bool) -> Result<ExitCode, Failure> {
    let run = records.run(id).await?;
    terminal::write_answer(json, || to_json(&run), || text(&run, now_ms()))?;
    Ok(ExitCode::Succeeded)
}

fn text(run: &RunRecord, now_ms: u64) -> String {
    let request = &run.request;
    let policy = &request.policy;
    let limits = &policy.limits;
    let mut lines = vec![
        format!("run        {}", request.id),
        format!("state      {}", run.state),
        format!("command    {}", words::command(&request.work, 400)),
        format!("workspace  {}", source_words(&request.source)),
        format!(
            "asked for  {}, network {}, timeout {}",
            request.shown_mode(),
            policy.network,
            ms(policy.timeout_ms)
        ),
        format!(
            "limits     {} memory, {} cpus, {} processes, {} disk{}",
            show_bytes(limits.memory_bytes),
            f64::from(limits.cpus_milli) / 1000.0,
            limits.pids,
            show_bytes(limits.workspace_bytes),
            match policy.limits_rule {
                LimitsRule::Required => ", required",
                LimitsRule::BestEffort => "",
            }
        ),
        format!("accepted   {} ago", ms(now_ms.saturating_sub(run.created_at_ms))),
    ];
    if let Some(finished) = run.finished_at_ms {
        lines.push(format!("took       {}", ms(finished.saturating_sub(run.created_at_ms))));
    }
    lines.extend(request.replay_of.as_ref().map(|run| format!("replay of  {run}")));
    lines.push(format!("attempts   {} of at most {}", run.attempts, request.retry.max_attempts));
    if let Some(outcome) = &run.outcome {
        lines.push(format!("outcome    {}", words::outcome(outcome)));
        lines.extend(words::hint(outcome).map(|hint| format!("hint       {hint}")));
    }
    lines.extend(words::removed(run).map(|words| format!("removed    {words}")));
    if run.letter == Letter::Dead {
        lines.push(format!("kept       as a dead letter: cofferdam dead-letter show {}", request.id));
    }
    // Before its first attempt a run has no seal to speak of.
    if run.attempts > 0 {
        lines.extend(seal_lines(run).into_iter().map(|line| format!("           {line}")));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn seal_lines(run: &RunRecord) -> Vec<String> {
    if run.request.work.direct().is_some() {
        return vec![NOTHING_TO_SEAL.to_owned()];
    }
    let mut lines = vec![words::seal(run.request.policy.mode, run.seal.as_ref(), run.outcome.as_ref())];
    let Some(seal) = &run.seal else { return lines };
    let namespaces = seal.outside.namespaces.iter().filter(|(_, fact)| fact.sandbox != fact.host);
    let kinds: Vec<&str> = namespaces.map(|(kind, _)| kind.as_str()).collect();
    lines.push(format!("namespaces of its own: {}", or_none(&kinds.join(", "))));
    lines.push(format!("user id {} inside, {} outside", seal.inside.uid, seal.outside.host_uid));
    lines.push(format!("workspace: {}", words::access(seal.workspace.access)));
    lines.push(format!("writable: {}", or_none(&sanitize::line(&seal.inside.writable.join(", ")))));
    lines.extend(words::hidden(seal));
    lines.extend(words::stripped(seal));
    lines
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

fn ms(ms: u64) -> String {
    show_duration(Duration::from_millis(ms))
}

fn source_words(source: &Source) -> String {
    match source {
        Source::Empty => "empty".to_owned(),
        Source::Local { path } => sanitize::line(&path.to_string_lossy()),
        Source::Git { url, reference } => {
            let at = reference.as_ref().map_or(String::new(), |name| format!(" at {name}"));
            sanitize::line(&format!("{url}{at}"))
        }
    }
}

fn to_json(run: &RunRecord) -> Value {
    json!({
        "run": run.request.id,
        "state": run.state,
        "mode": run.request.shown_mode(),
        "created_at_ms": run.created_at_ms,
        "finished_at_ms": run.finished_at_ms,
        "request": run.request,
        "attempts": run.attempts,
        "outcome": run.outcome,
        "seal": run.seal,
        "dead_letter": run.letter == Letter::Dead,
        "replay_of": run.request.replay_of,
        "events_removed_at_ms": run.events_removed_at_ms,
        "files_removed_at_ms": run.files_removed_at_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{FailureClass, Outcome, Policy, RunRequest, RunState, Work};

    #[test]
    fn a_run_without_a_seal_is_not_called_sealed() {
        let outcome = Outcome::failed(FailureClass::Seal, "seccomp: expected mode 2, measured mode 0");
        let run = RunRecord {
            owner: cofferdam_core::OwnerName::local(),
            request: RunRequest::new(
                RunId::new(0, 7),
                Source::Empty,
                Work::Program { argv: vec!["make".to_owned(), "test".to_owned()] },
                Policy::default(),
            ),
            state: RunState::Failed,
            created_at_ms: 1_000,
            finished_at_ms: Some(3_500),
            events_removed_at_ms: None,
            files_removed_at_ms: None,
            attempts: 1,
            outcome: Some(outcome),
            seal: None,
            cancel_requested_at_ms: None,
            letter: Letter::None,
            node: None,
            not_before_ms: 0,
            last_seq: 0,
            updated_at_ms: 1_000,
        };
        insta::assert_snapshot!(text(&run, 61_000), @r"
        run        run_00000000000000000000000007
        state      failed
        command    make test
        workspace  empty
        asked for  native, network none, timeout 10m 00s
        limits     2 GiB memory, 1 cpus, 256 processes, 10 GiB disk, required
        accepted   1m 00s ago
        took       2.5 s
        attempts   1 of at most 1
        outcome    failed: seccomp: expected mode 2, measured mode 0
                   NOT SEALED: native, so the agent was never started
        ");
    }
}
