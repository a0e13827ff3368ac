//! What comes next, from what was said alone: so a conversation goes on in the same way after a crash as without one.

use cofferdam_core::ModelTrouble;
use serde_json::Value;

use crate::calls::Call;
use crate::settings::Settings;
use crate::structured;
use crate::turn::Turn;

/// The next step of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// The model is to answer.
    Ask,
    /// The model wants these answered.
    Call(Vec<Call>),
    /// The model stopped where it should not, and is told so.
    Tell(&'static str),
    /// It is over.
    End(End),
}

/// Why a conversation is over.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    /// The model said that it is done.
    Done,
    /// It gave the result that was asked for.
    Result(Value),
    /// It gave no result that meets the schema.
    NoResult,
    /// It took as many turns as it may.
    MaxTurns,
    /// Somebody interrupted it, and said nothing more.
    Interrupted,
    /// The model refused.
    Refused,
    /// The conversation is longer than the model's context.
    ContextFull,
    /// The model did not come to an end in the tokens that it had, several times.
    OutOfTokens,
    /// The model could not be used.
    Failed(ModelTrouble),
}

/// The model ran out of tokens.
pub(crate) const GO_ON: &str =
    "You reached the limit of one answer. Go on exactly where you stopped, without repeating anything.";
/// It said nothing that can be seen.
pub(crate) const SAY_SOMETHING: &str = "Your answer had no text in it. Please give one.";
/// It wanted to call a tool, and called none.
pub(crate) const CALL_AGAIN: &str =
    "Your answer was to call a tool, and has no call in it. Please repeat the call.";

/// How often in a row a model that runs out of tokens is told to go on.
const MOST_CONTINUATIONS: usize = 3;

/// What comes next in a run with these turns of its own.
pub(crate) fn next(settings: &Settings, own: &[Turn]) -> Step {
    let may_ask = answers(own) < settings.max_turns as usize;
    match own.last() {
        Some(Turn::Assistant { stop_reason, .. }) => after_answer(settings, own, stop_reason, may_ask),
        Some(Turn::User { interrupted: true, .. }) => Step::End(End::Interrupted),
        Some(Turn::User { .. }) | None => {
            let structured = settings.output_schema.as_ref();
            if let Some(result) = structured.and_then(|_| structured::taken(own)) {
                return Step::End(End::Result(result.clone()));
            }
            if structured.is_some() && structured::failures(own) >= structured::MOST_ATTEMPTS {
                return Step::End(End::NoResult);
            }
            if may_ask { Step::Ask } else { Step::End(End::MaxTurns) }
        }
    }
}

fn after_answer(settings: &Settings, own: &[Turn], stop_reason: &str, may_ask: bool) -> Step {
    let answer = own.last();
    let calls = answer.map(Call::all).unwrap_or_default();
    // Whatever it says of why it stopped: a call without an answer is refused by the API.
    if !calls.is_empty() {
        return Step::Call(calls);
    }
    let has_text = answer.is_some_and(|turn| !turn.text().trim().is_empty());
    match stop_reason {
        "refusal" => Step::End(End::Refused),
        "model_context_window_exceeded" => Step::End(End::ContextFull),
        "max_tokens" if told_in_a_row(own, GO_ON) < MOST_CONTINUATIONS => Step::Tell(GO_ON),
        "max_tokens" => Step::End(End::OutOfTokens),
        // The vendor's tools took long: the same conversation is sent again, and it goes on.
        "pause_turn" if may_ask => Step::Ask,
        "pause_turn" => Step::End(End::MaxTurns),
        "tool_use" if told_in_a_row(own, CALL_AGAIN) == 0 => Step::Tell(CALL_AGAIN),
        _ if settings.output_schema.is_some() => Step::Tell(structured::ASKED_FOR),
        _ if !has_text && told_in_a_row(own, SAY_SOMETHING) == 0 => Step::Tell(SAY_SOMETHING),
        _ => Step::End(End::Done),
    }
}

/// How many answers the model gave.
pub(crate) fn answers(own: &[Turn]) -> usize {
    own.iter().filter(|turn| matches!(turn, Turn::Assistant { .. })).count()
}

/// How many turns there were, as the agent SDK counts them: the prompt, and whatever the model was told after that, each
/// result of a tool for itself. That it should go on with an answer is none.
pub(crate) fn turns(own: &[Turn]) -> usize {
    let told = own.iter().skip(1).filter(|turn| matches!(turn, Turn::User { .. }) && !turn.is_only(GO_ON));
    1 + told.map(|turn| turn.content().len()).sum::<usize>()
}

/// How often the model was told this since it was told anything else.
fn told_in_a_row(own: &[Turn], text: &str) -> usize {
    let told = own.iter().rev().filter(|turn| matches!(turn, Turn::User { .. }));
    told.take_while(|turn| turn.is_only(text)).count()
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
