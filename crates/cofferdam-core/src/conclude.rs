//! How an attempt ended, concluded from the evidence alone.

use crate::egress::{ModelTrouble, TroubleKind};
use crate::outcome::{AgentEnd, ExitCause, FailureClass, LimitHit, Outcome, SandboxExit};
use crate::protocol::AgentReport;
use crate::spec::MOST_TRIES;

/// Why a limit counts as broken that nobody saw broken.
const UNMEASURED: &str = "could not be measured: it has too many files, processes or mappings to look at, so that its limit cannot be enforced";

/// Everything that is known of an attempt that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// How the agent ended, from the worker's last line.
    pub worker: Option<&'a AgentEnd>,
    /// What the agent's CLI said of its own success.
    pub report: Option<&'a AgentReport>,
    /// What the outside saw.
    pub outside: &'a SandboxExit,
    /// Whether somebody had asked for the end.
    pub cancel_requested: bool,
    /// The wall clock that it had.
    pub timeout_ms: u64,
    /// Which budget was found spent, if one was.
    pub budget_exceeded: Option<&'a str>,
    /// How its last model call failed, if that was its last.
    pub trouble: Option<&'a ModelTrouble>,
}

/// Concludes how an attempt ended: from what the outside saw first, then from the worker's last line.
///
/// A cancel that arrived after the agent had ended by itself changes nothing: the agent's own end is
/// what happened.
#[must_use]
pub fn conclude(evidence: &Evidence<'_>) -> Outcome {
    use FailureClass as Class;
    let Evidence { worker, outside, timeout_ms, .. } = *evidence;
    // What the worker has reported happened before anything that ended the sandbox.
    let finished_by_itself = matches!(
        worker,
        Some(
            AgentEnd::Exited { .. }
                | AgentEnd::Signaled { .. }
                | AgentEnd::Dismissed
                | AgentEnd::PhaseFailed { .. }
                | AgentEnd::PhaseTimedOut { .. }
        )
    );
    match outside.cause {
        ExitCause::Limit { hit: LimitHit::Disk } => {
            return Outcome::failed(Class::DiskLimit, "the agent wrote more than its limit");
        }
        ExitCause::Limit { hit: LimitHit::Memory } => {
            return Outcome::failed(Class::OutOfMemory, "the agent used more memory than its limit");
        }
        ExitCause::Limit { hit: LimitHit::DiskUnmeasured } => {
            return Outcome::failed(Class::DiskLimit, format!("what the agent wrote {UNMEASURED}"));
        }
        ExitCause::Limit { hit: LimitHit::MemoryUnmeasured } => {
            return Outcome::failed(Class::OutOfMemory, format!("what memory the agent used {UNMEASURED}"));
        }
        ExitCause::OwnerGone if !finished_by_itself => {
            return Outcome::failed(Class::Lost, "the process that the run was attached to ended");
        }
        _ => {}
    }
    // Whatever the agent made of it: from then on it had no model.
    if let (Some(which), Some(_)) = (evidence.budget_exceeded, worker) {
        return Outcome::failed_with_hint(
            Class::Budget,
            format!("the run's budget is spent: {which}"),
            format!("what it did until then is in the diff; raise {} to let it go on", budget_flag(which)),
        );
    }
    match worker {
        _ if outside.cause == ExitCause::Deadline && !finished_by_itself => Outcome::TimedOut { timeout_ms },
        Some(AgentEnd::Exited { code: 0 }) if evidence.report.is_none_or(|report| report.ok) => {
            Outcome::Succeeded
        }
        // Its status is that of the signal that we sent, so its own words are the only evidence.
        Some(AgentEnd::Dismissed) if evidence.report.is_some_and(|report| report.ok) => Outcome::Succeeded,
        // Nobody but the host can ask the worker for it, also if that host is dead by now.
        Some(AgentEnd::Cancelled) => Outcome::Cancelled,
        Some(AgentEnd::OutputLimit) => {
            Outcome::failed(Class::OutputLimit, "the agent printed more than its limit")
        }
        Some(AgentEnd::NotStarted { reason }) => Outcome::failed(Class::AgentMissing, reason.clone()),
        Some(AgentEnd::NoFolder { reason }) => {
            let hint = "name a folder of the repository, as it is in the commit that the run works on";
            Outcome::failed_with_hint(Class::Workspace, reason.clone(), hint)
        }
        Some(AgentEnd::PhaseFailed { phase }) => {
            let message = format!("the phase `{phase}` did not pass its gate in {MOST_TRIES} tries");
            let hint =
                "the spec has what was missing; execute it again, with another model or a longer description";
            Outcome::failed_with_hint(Class::Gate, message, hint)
        }
        Some(AgentEnd::PhaseTimedOut { seconds, .. }) => {
            Outcome::TimedOut { timeout_ms: u64::from(*seconds) * 1_000 }
        }
        Some(AgentEnd::Exited { .. } | AgentEnd::Signaled { .. } | AgentEnd::Dismissed) | None => {
            failure(evidence)
        }
    }
}

/// What to raise, by the name that the broker has for the budget.
fn budget_flag(which: &str) -> &'static str {
    match which {
        "model calls" => "--max-model-calls",
        "tokens" => "--max-tokens",
        "cost" => "--max-cost-usd",
        _ => "the budget",
    }
}

fn failure(evidence: &Evidence<'_>) -> Outcome {
    use FailureClass as Class;
    let Evidence { worker, outside, report, .. } = *evidence;
    let exit_code = match worker {
        Some(AgentEnd::Exited { code }) => Some(*code),
        _ => None,
    };
    let failed = |class, message: String| Outcome::Failed {
        class,
        message,
        hint: None,
        exit_code,
        retry_after_ms: None,
    };
    if worker.is_none() && evidence.cancel_requested {
        return Outcome::Cancelled;
    }
    if outside.oom_kills > 0 {
        return failed(Class::OutOfMemory, "the agent needed more memory than its limit".to_owned());
    }
    if outside.pids_refused > 0 {
        return failed(Class::PidsLimit, "the agent needed more processes than its limit".to_owned());
    }
    let said = report.filter(|report| !report.ok && !report.message.is_empty());
    match (worker, evidence.trouble) {
        (None, _) => {
            let class = match outside.cause {
                ExitCause::Paused | ExitCause::Removed | ExitCause::EngineGone => Class::Engine,
                ExitCause::Exited { .. }
                | ExitCause::Signaled { .. }
                | ExitCause::Deadline
                | ExitCause::Limit { .. }
                | ExitCause::OwnerGone
                | ExitCause::Killed
                | ExitCause::Unknown => Class::WorkerCrashed,
            };
            failed(class, crash_message(outside))
        }
        (Some(_), Some(trouble)) => of_trouble(trouble, exit_code),
        (Some(AgentEnd::Exited { code: 0 } | AgentEnd::Dismissed), None) => {
            let said = said.map_or("it did not say why", |report| &report.message);
            failed(Class::Agent, format!("the agent gave up: {said}"))
        }
        (Some(AgentEnd::Exited { code }), None) => match said {
            Some(report) => {
                failed(Class::Agent, format!("the agent exited with status {code}: {}", report.message))
            }
            None => failed(Class::Agent, format!("the agent exited with status {code}")),
        },
        (Some(AgentEnd::Signaled { signal }), None) => {
            failed(Class::Agent, format!("the agent was ended by signal {signal}"))
        }
        (
            Some(
                AgentEnd::NotStarted { .. }
                | AgentEnd::NoFolder { .. }
                | AgentEnd::Cancelled
                | AgentEnd::OutputLimit
                | AgentEnd::PhaseFailed { .. }
                | AgentEnd::PhaseTimedOut { .. },
            ),
            None,
        ) => {
            unreachable!("these ends have outcomes of their own")
        }
    }
}

/// The agent failed, and the last thing that happened to it was that its model did.
fn of_trouble(trouble: &ModelTrouble, exit_code: Option<i32>) -> Outcome {
    let (class, hint) = match trouble.kind {
        TroubleKind::Budget => (FailureClass::Budget, None),
        TroubleKind::Auth => (
            FailureClass::Auth,
            Some(
                "check the key (ANTHROPIC_API_KEY or OPENAI_API_KEY) and the address it is meant for; a login is \
                 renewed by its own CLI: type `claude -p hi` or `codex exec hi` once",
            ),
        ),
        TroubleKind::Quota => (
            FailureClass::Quota,
            Some("wait until the limit is reset, or let it try again with --max-attempts 3"),
        ),
        TroubleKind::Overloaded => {
            (FailureClass::Overloaded, Some("try again later, or with --max-attempts 3"))
        }
        TroubleKind::Unreachable => (
            FailureClass::Model,
            Some("check the network and the address (ANTHROPIC_BASE_URL or OPENAI_BASE_URL)"),
        ),
        TroubleKind::Broken | TroubleKind::Rejected => (FailureClass::Model, None),
    };
    Outcome::Failed {
        class,
        message: trouble.message.clone(),
        hint: hint.map(str::to_owned),
        exit_code,
        retry_after_ms: trouble.retry_after_ms,
    }
}

fn crash_message(outside: &SandboxExit) -> String {
    match outside.cause {
        ExitCause::Signaled { signal } => format!("the worker was ended by signal {signal}"),
        ExitCause::Exited { code } => {
            format!("the worker exited with status {code} without saying how the agent ended")
        }
        ExitCause::Killed => "the sandbox was ended from outside".to_owned(),
        ExitCause::Paused => "somebody paused the container, and it was ended".to_owned(),
        ExitCause::Removed => "somebody removed the container".to_owned(),
        ExitCause::EngineGone => "the container engine stopped under the run".to_owned(),
        ExitCause::Deadline | ExitCause::Limit { .. } | ExitCause::OwnerGone | ExitCause::Unknown => {
            "the sandbox ended, and nothing is left that saw how".to_owned()
        }
    }
}

#[cfg(test)]
#[path = "conclude_tests.rs"]
mod tests;
