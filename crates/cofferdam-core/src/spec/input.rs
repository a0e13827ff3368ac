//! What a caller says of a spec, as it was written: nothing here is checked yet but the names of the fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::strict_json::{present, reads_known_fields};
use crate::text_schema::{
    AgentNameText, ModelText, PhaseText, ProjectIdText, ProjectNameText, SpecDescriptionText, SpecTitleText,
};

/// A spec that is to be made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schema(as = CreateSpecRequest)]
pub struct SpecInput {
    /// What it is called.
    #[schema(value_type = SpecTitleText)]
    pub title: String,
    /// What is wanted.
    #[schema(value_type = SpecDescriptionText)]
    pub description: String,
    /// The registered project, by id or name, whose code it is about. A spec without one cannot be executed.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ProjectNameText)]
    pub project_id: Option<String>,
}

/// What of a spec is to be changed. What is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
#[schema(as = UpdateSpecRequest)]
pub struct UpdateSpecInput {
    /// What it is called.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = SpecTitleText)]
    pub title: Option<String>,
    /// What is wanted.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = SpecDescriptionText)]
    pub description: Option<String>,
    /// The registered project, by id or name, whose code it is about.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ProjectNameText)]
    pub project_id: Option<String>,
    /// Whether it is put away.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool)]
    pub archived: Option<bool>,
}

/// What a person writes in place of what a phase brought.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schema(as = WritePhaseRequest)]
pub struct PhaseInput {
    /// The whole output of the phase. The gate of the phase judges it as it does an agent's.
    #[schema(value_type = Object)]
    pub output: Value,
}

/// How a spec is executed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
#[schema(as = ExecuteSpecRequest)]
pub struct ExecuteSpecInput {
    /// The phase that it begins at again. What this phase and those after it brought does not count any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PhaseText>)]
    pub resume_from_phase: Option<String>,
    /// The agent: one of the settings, or `claude_code`, `codex`, `opencode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AgentNameText>)]
    pub agent: Option<String>,
    /// The model, as the agent's CLI names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ModelText>)]
    pub model: Option<String>,
    /// Which sandbox is made. Specs are never executed on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(native|docker|apple)$")]
    pub mode: Option<String>,
    /// The phases that are done; those of the time before without it, and at first `explore`, `requirements`, `design`, `tasks`
    /// and `sync`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<PhaseText>>, min_items = 1)]
    pub phases: Option<Vec<String>>,
    /// Of those, the ones after which it waits for somebody's approval; those of the time before without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<PhaseText>>)]
    pub approvals: Option<Vec<String>>,
    /// What one run of it may spend at the model, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.000001, maximum = 1_000_000)]
    pub max_cost_usd: Option<f64>,
    /// Taken from callers that send it, and answered with a warning: nothing here uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_embeddings: Option<bool>,
    /// The spec's own project, by id or name; it may be left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ProjectNameText>)]
    pub project_id: Option<String>,
    /// Is gone, and refused with the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub working_directory: Option<Value>,
}

/// A spec that is to be made and executed at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schema(as = LaunchSpecRequest)]
pub struct LaunchSpecInput {
    /// What it is called.
    #[schema(value_type = SpecTitleText)]
    pub title: String,
    /// What is wanted.
    #[schema(value_type = SpecDescriptionText)]
    pub description: String,
    /// The registered project, by id or name, whose code it is about.
    #[schema(value_type = ProjectNameText)]
    pub project_id: String,
    /// Whether it is executed; it is without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_execute: Option<bool>,
    /// The agent: one of the settings, or `claude_code`, `codex`, `opencode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AgentNameText>)]
    pub agent: Option<String>,
    /// The model, as the agent's CLI names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ModelText>)]
    pub model: Option<String>,
    /// Which sandbox is made. Specs are never executed on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(native|docker|apple)$")]
    pub mode: Option<String>,
    /// The phases that are done; `explore`, `requirements`, `design`, `tasks` and `sync` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<PhaseText>>, min_items = 1)]
    pub phases: Option<Vec<String>>,
    /// Of those, the ones after which it waits for somebody's approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<PhaseText>>)]
    pub approvals: Option<Vec<String>>,
    /// What one run of it may spend at the model, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.000001, maximum = 1_000_000)]
    pub max_cost_usd: Option<f64>,
    /// Taken from callers that send it, and answered with a warning: nothing here uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_embeddings: Option<bool>,
    /// Is gone, and refused with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub working_directory: Option<Value>,
}

/// What a person says of a phase that waits for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
#[schema(as = DecideSpecRequest)]
pub struct DecideSpecInput {
    /// The phase; the one that waits without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PhaseText>)]
    pub phase: Option<String>,
    /// Why. A rejection needs one: the next try of the phase is told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 10_000, pattern = "^[^\\u0000]*$")]
    pub reason: Option<String>,
}

/// Which specs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SpecListInput {
    /// Of this project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<ProjectIdText>, inline)]
    pub project_id: Option<String>,
    /// Those that were put away, in place of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// At most so many; 50 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u32>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^[0-9]{1,18}\\.spec_[0-9a-hjkmnp-tv-z]{26}$")]
    pub cursor: Option<String>,
}

const CREATE: [&str; 3] = ["title", "description", "project_id"];
const UPDATE: [&str; 4] = ["title", "description", "project_id", "archived"];
const PHASE: [&str; 1] = ["output"];
const EXECUTE: [&str; 10] = [
    "resume_from_phase",
    "agent",
    "model",
    "mode",
    "phases",
    "approvals",
    "max_cost_usd",
    "enable_embeddings",
    "project_id",
    "working_directory",
];
const LAUNCH: [&str; 12] = [
    "title",
    "description",
    "project_id",
    "auto_execute",
    "agent",
    "model",
    "mode",
    "phases",
    "approvals",
    "max_cost_usd",
    "enable_embeddings",
    "working_directory",
];
const DECIDE: [&str; 2] = ["phase", "reason"];

reads_known_fields!(
    SpecInput: CREATE,
    UpdateSpecInput: UPDATE,
    PhaseInput: PHASE,
    ExecuteSpecInput: EXECUTE,
    LaunchSpecInput: LAUNCH,
    DecideSpecInput: DECIDE
);

impl LaunchSpecInput {
    /// The two things that it asks for.
    #[must_use]
    pub fn parts(&self) -> (SpecInput, ExecuteSpecInput) {
        let input = self.clone();
        let spec = SpecInput {
            title: input.title,
            description: input.description,
            project_id: Some(input.project_id),
        };
        let execute = ExecuteSpecInput {
            resume_from_phase: None,
            agent: input.agent,
            model: input.model,
            mode: input.mode,
            phases: input.phases,
            approvals: input.approvals,
            max_cost_usd: input.max_cost_usd,
            enable_embeddings: input.enable_embeddings,
            project_id: None,
            working_directory: input.working_directory,
        };
        (spec, execute)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;

    fn error<T: DeserializeOwned>(text: Value) -> String {
        serde_json::from_value::<T>(text).err().expect("it is refused").to_string()
    }

    #[test]
    fn a_misspelt_field_is_told_which_was_meant() {
        assert!(error::<SpecInput>(json!({ "titel": "x" })).contains("did you mean `title`?"));
        assert!(error::<SpecInput>(json!({ "title": "x" })).contains("missing field `description`"));
        assert!(error::<UpdateSpecInput>(json!({ "archive": true })).contains("did you mean `archived`?"));
        assert!(error::<UpdateSpecInput>(json!({ "title": null })).contains("invalid type: null"));
        assert!(error::<ExecuteSpecInput>(json!({ "phase": ["x"] })).contains("did you mean `phases`?"));
        assert!(error::<LaunchSpecInput>(json!({ "resume_from_phase": "x" })).contains("unknown field"));
        assert!(error::<DecideSpecInput>(json!({ "because": "x" })).contains("there are `phase`, `reason`"));
        assert!(error::<PhaseInput>(json!([1])).contains("expected an object"));
    }

    #[test]
    fn every_field_is_known_by_its_name() {
        fn keys<T: DeserializeOwned + Serialize>(full: &Value, names: &[&str]) {
            let written = serde_json::to_value(serde_json::from_value::<T>(full.clone()).unwrap()).unwrap();
            assert_eq!(&written, full);
            let mut names = names.to_vec();
            names.sort_unstable();
            assert_eq!(written.as_object().unwrap().keys().collect::<Vec<_>>(), names);
        }
        keys::<SpecInput>(&json!({ "title": "a", "description": "b", "project_id": "c" }), &CREATE);
        let update = json!({ "title": "a", "description": "b", "project_id": "c", "archived": true });
        keys::<UpdateSpecInput>(&update, &UPDATE);
        keys::<PhaseInput>(&json!({ "output": {} }), &PHASE);
        let execute = json!({
            "resume_from_phase": "design", "agent": "codex", "model": "m", "mode": "native", "phases": ["design"],
            "approvals": ["design"], "max_cost_usd": 1.5, "enable_embeddings": true, "project_id": "c",
            "working_directory": "/x"
        });
        keys::<ExecuteSpecInput>(&execute, &EXECUTE);
        let mut launch = execute;
        launch.as_object_mut().unwrap().remove("resume_from_phase");
        for (name, value) in
            [("title", json!("a")), ("description", json!("b")), ("auto_execute", json!(false))]
        {
            launch[name] = value;
        }
        keys::<LaunchSpecInput>(&launch, &LAUNCH);
        keys::<DecideSpecInput>(&json!({ "phase": "design", "reason": "x" }), &DECIDE);
    }
}
