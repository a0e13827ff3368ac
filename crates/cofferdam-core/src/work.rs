//! What a run does.

use serde::{Deserialize, Serialize};

use crate::direct::DirectSetup;
use crate::permission::PermissionMode;
use crate::settings::Agent;
use crate::spec::{PhasePlan, SpecSetup};

/// What a run does: a closed set. Whoever tells its kinds apart matches all of them, so that the compiler names every
/// place that a new kind has to be thought of.
///
/// It is written flat, under the key `agent` of a request and of a job: `{"provider": "codex", "prompt": …}`, or
/// `{"provider": "command", "argv": […]}`, or `{"provider": "direct", "prompt": …, "model": …}`, or
/// `{"provider": "spec", "id": …, "agent": "codex", "phases": […]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "provider", expecting = "an agent with its prompt, or a program with its arguments")]
pub enum Work {
    /// Any program. It is started as it is, never through a shell.
    #[serde(rename = "command")]
    Program {
        /// Program and arguments; not empty.
        argv: Vec<String>,
    },
    /// A conversation with a model that we hold ourselves. No process is started for it.
    #[serde(rename = "direct")]
    Direct(Box<DirectSetup>),
    /// Phases of a spec, one after the other, each with a coding agent.
    #[serde(rename = "spec")]
    Spec(Box<SpecSetup>),
    /// A coding agent, with a task.
    #[serde(untagged)]
    Agent {
        /// Which one.
        #[serde(rename = "provider")]
        agent: Agent,
        /// What it is asked to do.
        #[serde(flatten)]
        setup: PromptSetup,
    },
}

/// What a coding agent is asked to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptSetup {
    /// The task.
    pub prompt: String,
    /// The model, as the CLI names it; its own default without one.
    pub model: Option<String>,
    /// Added to the CLI's own system prompt.
    pub system_prompt: Option<String>,
    /// How many turns of the model the agent may take, where its CLI can count them.
    pub max_turns: Option<u32>,
    /// What the CLI lets the model do.
    #[serde(default, skip_serializing_if = "PermissionMode::is_default")]
    pub permission_mode: PermissionMode,
    /// Stands in place of the CLI's own system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_system_prompt: Option<String>,
    /// The only tools that the model has, as the CLI names them; all of the mode's without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Tools the model may not use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
}

impl Work {
    /// The name of what does it, as it is written.
    #[must_use]
    pub fn provider(&self) -> &'static str {
        match self {
            Self::Program { .. } => "command",
            Self::Direct(_) => "direct",
            Self::Spec(_) => "spec",
            Self::Agent { agent, .. } => agent.as_str(),
        }
    }

    /// One try of a phase of a spec: the work of a coding agent, like any other.
    #[must_use]
    pub fn of_phase(spec: &SpecSetup, plan: &PhasePlan, prompt: String) -> Self {
        let setup = PromptSetup {
            prompt,
            model: spec.model.clone(),
            max_turns: Some(plan.max_turns),
            ..PromptSetup::default()
        };
        Self::Agent { agent: spec.agent, setup }
    }

    /// Which agent's CLI does it; `None` for a program and for us.
    #[must_use]
    pub fn agent(&self) -> Option<Agent> {
        match self {
            Self::Program { .. } | Self::Direct(_) => None,
            Self::Spec(setup) => Some(setup.agent),
            Self::Agent { agent, .. } => Some(*agent),
        }
    }

    /// What a direct run is asked; `None` where a process does the work.
    #[must_use]
    pub fn direct(&self) -> Option<&DirectSetup> {
        match self {
            Self::Direct(setup) => Some(setup),
            Self::Program { .. } | Self::Spec(_) | Self::Agent { .. } => None,
        }
    }

    /// Which phases of which spec it is; `None` for anything else.
    #[must_use]
    pub fn spec(&self) -> Option<&SpecSetup> {
        match self {
            Self::Spec(setup) => Some(setup),
            Self::Program { .. } | Self::Direct(_) | Self::Agent { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn work_is_written_as_it_always_was() {
        let program = Work::Program { argv: vec!["make".to_owned(), "test".to_owned()] };
        assert_eq!(
            serde_json::to_string(&program).unwrap(),
            r#"{"provider":"command","argv":["make","test"]}"#
        );
        let setup = PromptSetup { prompt: "Fix it".to_owned(), max_turns: Some(3), ..PromptSetup::default() };
        for (agent, name) in Agent::ALL.into_iter().zip(["claude_code", "codex", "opencode"]) {
            let work = Work::Agent { agent, setup: setup.clone() };
            let text = serde_json::to_string(&work).unwrap();
            let expected = format!(
                r#"{{"provider":"{name}","prompt":"Fix it","model":null,"system_prompt":null,"max_turns":3}}"#
            );
            assert_eq!(text, expected);
            assert_eq!(serde_json::from_str::<Work>(&text).unwrap(), work);
        }
        assert_eq!(serde_json::from_value::<Work>(serde_json::to_value(&program).unwrap()).unwrap(), program);
    }

    #[test]
    fn a_stretch_of_a_spec_names_its_agent_inside() {
        let written = json!({
            "provider": "spec",
            "id": "spec_00000000000000000000000001",
            "project": "prj_00000000000000000000000001",
            "agent": "codex",
            "title": "Accept coupons",
            "description": "At the till.",
            "phases_version": 1,
            "phases": [{ "phase": "explore", "seconds": 180, "max_turns": 20 }],
        });
        let work: Work = serde_json::from_value(written.clone()).unwrap();
        assert_eq!((work.provider(), work.agent()), ("spec", Some(Agent::Codex)));
        assert_eq!(work.spec().map(|setup| setup.title.as_str()), Some("Accept coupons"));
        assert!(work.direct().is_none());
        assert_eq!(serde_json::to_value(&work).unwrap(), written);
    }

    #[test]
    fn what_is_no_work_is_refused() {
        for text in [
            json!({ "provider": "gemini", "prompt": "x" }),
            json!({ "provider": "command" }),
            json!({ "provider": "codex", "argv": ["true"] }),
            json!({ "provider": "spec", "agent": "codex" }),
            json!({ "prompt": "x" }),
        ] {
            let error = serde_json::from_value::<Work>(text.clone()).unwrap_err().to_string();
            assert!(error.contains("an agent with its prompt, or a program"), "{text}: {error}");
        }
    }
}
