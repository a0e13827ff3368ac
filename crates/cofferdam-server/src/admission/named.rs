//! Whether what a request names is there.

use cofferdam_api::{CreateRunRequest, ErrorCode};
use cofferdam_core::{Effective, Provider};
use serde_json::json;

use crate::errors::ApiError;

/// Refuses agents and policies that the settings do not have.
pub(super) fn check(body: &CreateRunRequest, settings: &Effective) -> Result<(), ApiError> {
    let (agents, policies) = (&settings.settings.agents, &settings.settings.sandbox.policies);
    if let Some(agent) = &body.options.agent
        && !agents.contains_key(agent.as_str())
        && agent.parse::<Provider>().is_err()
    {
        let own = Provider::ALL.map(Provider::as_str);
        let known: Vec<&str> = agents.keys().map(|name| name.as_str()).chain(own).collect();
        return Err(missing(ErrorCode::AgentNotFound, "options.agent", agent, "an agent", &known));
    }
    if let Some(policy) = &body.options.policy
        && !policies.contains_key(policy.as_str())
    {
        let known: Vec<&str> = policies.keys().map(|name| name.as_str()).collect();
        return Err(missing(ErrorCode::PolicyNotFound, "options.policy", policy, "a policy", &known));
    }
    Ok(())
}

fn missing(code: ErrorCode, field: &str, name: &str, what: &str, known: &[&str]) -> ApiError {
    let hint = match known.is_empty() {
        true => "leave it out: the settings have none".to_owned(),
        false => format!("write one of: {}", known.join(", ")),
    };
    ApiError::new(code, format!("{field}: `{name}` is not {what} of this service"))
        .with(json!({ "field": field, "hint": hint }))
}
