//! The check in a sandbox: a trivial prompt, in a fresh one, with the key or login that the broker adds. What the
//! backend refuses and what the broker saw decides, and never what the agent says of itself.

use std::time::Duration;

use cofferdam_agent::{TRIVIAL_PROMPT, profile};
use cofferdam_core::{
    Budget, Event, EventType, FailureClass, Network, Outcome, Policy, PromptSetup, TroubleKind, Work,
    with_causes,
};
use tokio::time::Instant;

use super::AuthCheck;
use super::one_run::{Seen, one_run};
use super::status::AuthWord;
use super::verdict::Verdict;
use crate::installation;
use crate::node::Node;

/// More than a CLI's retries, and an end to a CLI that goes on asking.
const MOST_CALLS: u64 = 8;

/// Tries it.
pub(super) async fn check(node: &Node, asked: &AuthCheck) -> Verdict {
    let deadline = Instant::now() + asked.timeout();
    let policy = policy(asked);
    if !policy.mode.is_container()
        && let Err(error) = installation::find(asked.agent, &asked.search(node))
    {
        let message = format!("{}; {}", with_causes(&error), error.remedy());
        return Verdict::early(AuthWord::CliMissing, message);
    }
    let Some(backend) = node.backend(policy.mode) else {
        return Verdict::early(AuthWord::Unknown, format!("this node has no backend for `{}`", policy.mode));
    };
    // Asked apart from the run, so that why it is refused is known by more than its words.
    match tokio::time::timeout_at(deadline, backend.validate(&policy)).await {
        Ok(Ok(())) => {}
        Ok(Err(refusal)) => {
            let message = format!("{}; type: {}", refusal.problem, refusal.remedy);
            return Verdict::early(refusal.kind.into(), message);
        }
        Err(_) => return Verdict::timeout(false, asked.timeout()),
    }
    match one_run(node, work(asked), policy, deadline).await {
        Ok(seen) => judge(&seen, asked.timeout()),
        Err(why) => Verdict::early(AuthWord::Unknown, format!("it could not be tried: {why}")),
    }
}

/// As a run of this agent would be, with as little as a trivial prompt needs.
fn policy(asked: &AuthCheck) -> Policy {
    let mut policy = asked.policy.clone();
    if policy.network != Network::Open {
        policy.network = Network::Sealed;
    }
    policy.egress.model = true;
    policy.budget = Budget { max_model_calls: Some(MOST_CALLS), ..Budget::default() };
    policy.mounts.clear();
    policy.timeout_ms = u64::try_from(asked.timeout().as_millis()).unwrap_or(u64::MAX);
    policy.grace_ms = 0;
    policy
}

fn work(asked: &AuthCheck) -> Work {
    let setup = PromptSetup {
        prompt: TRIVIAL_PROMPT.to_owned(),
        model: asked.model.clone(),
        max_turns: profile(asked.agent).support.max_turns.then_some(1),
        ..PromptSetup::default()
    };
    Work::Agent { agent: asked.agent, setup }
}

fn judge(seen: &Seen, timeout: Duration) -> Verdict {
    let has = |event_type| seen.events.iter().any(|event: &Event| event.event_type == event_type);
    let started = has(EventType::AgentStarted);
    let verdict = |word, message: String| Verdict { word, started, message };
    if let Some(refused) = refused_key(&seen.events) {
        return verdict(AuthWord::AuthRequired, refused);
    }
    match &seen.outcome {
        None => Verdict::timeout(started, timeout),
        Some(Outcome::Succeeded) if is_answered(&seen.events) => {
            verdict(AuthWord::Ok, "a model answered through the broker".to_owned())
        }
        // A model may begin with a tool, for which a trivial prompt has no turn left. Its server has taken the key all the same.
        Some(Outcome::Failed { class: FailureClass::Agent, message, .. }) if is_answered(&seen.events) => {
            verdict(
                AuthWord::Ok,
                format!("a model answered through the broker; the agent ended with: {message}"),
            )
        }
        Some(Outcome::Succeeded) => {
            verdict(AuthWord::Unknown, "the agent ended well, and no model was seen to answer it".to_owned())
        }
        Some(Outcome::Failed { class, message, hint, .. }) => {
            let word = match class {
                FailureClass::Auth => AuthWord::AuthRequired,
                FailureClass::AgentMissing => AuthWord::CliMissing,
                FailureClass::Agent
                | FailureClass::Gate
                | FailureClass::OutOfMemory
                | FailureClass::PidsLimit
                | FailureClass::DiskLimit
                | FailureClass::OutputLimit
                | FailureClass::Workspace
                | FailureClass::Repository
                | FailureClass::RepositoryHost
                | FailureClass::Sandbox
                | FailureClass::Refused
                | FailureClass::Seal
                | FailureClass::WorkerCrashed
                | FailureClass::Lost
                | FailureClass::Engine
                | FailureClass::Collect
                | FailureClass::Publish
                | FailureClass::Budget
                | FailureClass::Quota
                | FailureClass::Overloaded
                | FailureClass::Model => AuthWord::Unknown,
            };
            let hint = hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            verdict(word, format!("{message}{hint}"))
        }
        Some(Outcome::Cancelled) => verdict(AuthWord::Unknown, "it was cancelled".to_owned()),
        Some(Outcome::TimedOut { .. }) => Verdict::timeout(started, timeout),
    }
}

/// Whether the broker saw a model's server take the key: it answered with a success and told what that used. What is only
/// estimated was never told.
fn is_answered(events: &[Event]) -> bool {
    events.iter().any(|event| {
        let status = event.data.get("status").and_then(serde_json::Value::as_u64);
        event.event_type == EventType::ModelUsage
            && status.is_some_and(|status| (200..300).contains(&status))
            && event.data.get("estimated") == Some(&false.into())
    })
}

/// What the broker recorded of a key that the model's server refused, unless a later call was answered. A CLI may go on
/// trying until its time is up.
fn refused_key(events: &[Event]) -> Option<String> {
    let calls = |event: &&Event| [EventType::ModelUsage, EventType::ModelError].contains(&event.event_type);
    let last = events.iter().rfind(calls).filter(|event| event.event_type == EventType::ModelError)?;
    let kind: TroubleKind = serde_json::from_value(last.data.get("kind")?.clone()).ok()?;
    let message = last.data.get("message").and_then(|message| message.as_str()).unwrap_or_default();
    (kind == TroubleKind::Auth).then(|| format!("the model's server refused the key or login: {message}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(event_type: EventType, data: Value) -> Event {
        Event { seq: 1, attempt: Some(1), at_ms: 0, event_type, data }
    }

    fn seen(outcome: Option<Outcome>, events: &[(EventType, Value)]) -> Verdict {
        let events = events.iter().map(|(kind, data)| event(*kind, data.clone())).collect();
        judge(&Seen { outcome, events }, Duration::from_secs(20))
    }

    #[test]
    fn nothing_but_an_answer_of_a_model_is_a_login() {
        let started = (EventType::AgentStarted, json!({}));
        let answered = (EventType::ModelUsage, json!({ "status": 200, "estimated": false }));
        let refused = (EventType::ModelError, json!({ "kind": "auth", "message": "401" }));
        let ok = Some(Outcome::Succeeded);
        assert_eq!(seen(ok.clone(), &[started.clone(), answered.clone()]).word, AuthWord::Ok);
        assert_eq!(seen(ok.clone(), std::slice::from_ref(&started)).word, AuthWord::Unknown);
        assert_eq!(seen(ok.clone(), &[started.clone(), refused.clone()]).word, AuthWord::AuthRequired);
        assert_eq!(seen(ok, &[started.clone(), refused.clone(), answered.clone()]).word, AuthWord::Ok);
        assert_eq!(seen(None, &[started.clone(), answered]).word, AuthWord::Timeout);
        assert_eq!(seen(None, &[started, refused]).word, AuthWord::AuthRequired);
        let lost = (EventType::ModelUsage, json!({ "status": null, "estimated": true }));
        assert_eq!(seen(Some(Outcome::Succeeded), &[lost]).word, AuthWord::Unknown, "nobody told so");
        for &class in FailureClass::ALL {
            let verdict = seen(Some(Outcome::failed(class, "x")), &[]);
            assert_ne!(verdict.word, AuthWord::Ok, "{class:?}");
        }
    }

    #[test]
    fn a_model_that_began_with_a_tool_has_taken_the_key() {
        let answered = (EventType::ModelUsage, json!({ "status": 200, "estimated": false }));
        let refused = (EventType::ModelError, json!({ "kind": "auth", "message": "401" }));
        let turns = Outcome::failed(FailureClass::Agent, "it took as many turns as it may");
        let verdict = seen(Some(turns.clone()), std::slice::from_ref(&answered));
        assert_eq!(verdict.word, AuthWord::Ok, "{}", verdict.message);
        assert_eq!(seen(Some(turns.clone()), &[]).word, AuthWord::Unknown);
        assert_eq!(seen(Some(turns), &[answered.clone(), refused]).word, AuthWord::AuthRequired);
        let killed = Outcome::failed(FailureClass::OutOfMemory, "x");
        assert_eq!(seen(Some(killed), &[answered]).word, AuthWord::Unknown, "it could not work");
    }
}
