//! How a conversation ended.

use cofferdam_core::{ModelTrouble, TroubleKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::calls::Call;
use crate::settings::Settings;
use crate::step::{self, End};
use crate::structured::MOST_ATTEMPTS;
use crate::tool::Tools;
use crate::turn::Turn;
use crate::usage::Usage;

/// How a conversation ended. Its last entry has the same as `agent.finished`.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// What it came to.
    pub report: Report,
    /// How the model failed, if that is why.
    pub trouble: Option<ModelTrouble>,
}

/// What a conversation came to: the fields of the agent SDK's `result` that the conversation itself knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// In which way it ended.
    pub subtype: Subtype,
    /// Whether it failed.
    pub is_error: bool,
    /// What the model said last, or what went wrong with it.
    pub result: Option<String>,
    /// Why the model stopped, if it ever did.
    pub stop_reason: Option<String>,
    /// How many turns there were.
    pub num_turns: u32,
    /// What all turns cost together.
    pub usage: Usage,
    /// The tools that the model called and may not.
    pub permission_denials: Vec<Denial>,
    /// The result that meets the schema that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Value>,
    /// What kept the model from ending, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// The status with which the model's server failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_error_status: Option<u16>,
}

/// In which way a conversation ended, in the words of the agent SDK. As there, a model that refused or could not be used
/// is a `success` whose `is_error` is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subtype {
    /// The model was not kept from ending.
    Success,
    /// Somebody interrupted it.
    ErrorDuringExecution,
    /// It took as many turns as it may.
    ErrorMaxTurns,
    /// It spent as much as it may. A direct run has no other budget than money.
    ErrorMaxBudgetUsd,
    /// It was asked for a result that meets a schema, and gave none.
    ErrorMaxStructuredOutputRetries,
}

/// A tool that the model called and may not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Denial {
    /// The tool.
    pub tool_name: String,
    /// Which call.
    pub tool_use_id: String,
    /// What the model wanted of it.
    pub tool_input: Value,
}

impl Ended {
    /// What a run with these turns of its own came to.
    pub(crate) fn of(end: End, settings: &Settings, tools: &Tools, own: &[Turn]) -> Self {
        let mut trouble = None;
        let mut report = Report {
            subtype: Subtype::Success,
            is_error: true,
            result: None,
            stop_reason: own.iter().rev().find_map(stop_reason),
            num_turns: u32::try_from(step::turns(own)).unwrap_or(u32::MAX),
            usage: Usage::default(),
            permission_denials: denials(tools, own),
            structured_output: None,
            errors: Vec::new(),
            api_error_status: None,
        };
        own.iter().for_each(|turn| report.usage += turn.usage());
        let answer = own.last().map(Turn::text).unwrap_or_default();
        match end {
            End::Done => {
                report.is_error = false;
                report.result = Some(answer);
            }
            End::Result(result) => {
                report.is_error = false;
                report.result = Some(result.to_string());
                report.structured_output = Some(result);
            }
            End::NoResult => {
                let error =
                    format!("the model gave no result that meets the schema in {MOST_ATTEMPTS} attempts");
                report.fail(Subtype::ErrorMaxStructuredOutputRetries, error);
            }
            End::MaxTurns => {
                // The one that it wanted and did not get is counted, as the agent SDK does.
                report.num_turns = settings.max_turns.saturating_add(1);
                let error = format!("the conversation took as many turns as it may ({})", settings.max_turns);
                report.fail(Subtype::ErrorMaxTurns, error);
            }
            End::Interrupted => {
                report.fail(Subtype::ErrorDuringExecution, "the turn was interrupted".to_owned());
            }
            End::Refused if answer.is_empty() => {
                report.result = Some("the model refused to answer".to_owned());
            }
            End::Refused => report.result = Some(format!("the model refused to answer: {answer}")),
            End::ContextFull => {
                report.result = Some("the conversation is longer than the model's context window".to_owned());
            }
            End::OutOfTokens => {
                let most = settings.max_output_tokens;
                let text =
                    format!("the model's answers ended at their limit of {most} tokens, several times");
                report.result = Some(text);
            }
            End::Failed(failed) => {
                if failed.kind == TroubleKind::Budget {
                    report.fail(Subtype::ErrorMaxBudgetUsd, failed.message.clone());
                } else {
                    report.result = Some(failed.message.clone());
                    report.api_error_status = failed.status;
                }
                trouble = Some(failed);
            }
        }
        Self { report, trouble }
    }
}

impl Report {
    fn fail(&mut self, subtype: Subtype, error: String) {
        self.subtype = subtype;
        self.errors.push(error);
    }
}

fn stop_reason(turn: &Turn) -> Option<String> {
    match turn {
        Turn::Assistant { stop_reason, .. } => Some(stop_reason.clone()),
        Turn::User { .. } => None,
    }
}

fn denials(tools: &Tools, own: &[Turn]) -> Vec<Denial> {
    let calls = own.iter().flat_map(Call::all).filter(|call| tools.forbidden.contains(&call.name));
    calls
        .map(|Call { id, name, input }| Denial { tool_name: name, tool_use_id: id, tool_input: input })
        .collect()
}
