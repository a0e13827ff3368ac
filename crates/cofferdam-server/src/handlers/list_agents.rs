//! `GET /api/v1/agents`.

use axum::Json;
use cofferdam_api::{AgentList, AgentResponse};
use cofferdam_core::{Effective, agent_names, choose_agent};

use crate::access::By;
use crate::errors::Answer;

/// The agents that can be named in `options.agent`: those of the settings, and the CLIs themselves.
#[utoipa::path(get, path = "/api/v1/agents", tag = "agents", responses(
    (status = 200, description = "The agents.", body = AgentList),
))]
pub(crate) async fn list_agents(By(actor, app): By) -> Answer<AgentList> {
    let settings = app.operations().agents_in_force(&actor).await?;
    Ok(Json(AgentList { agents: agents(&settings) }))
}

fn agents(settings: &Effective) -> Vec<AgentResponse> {
    agent_names(settings).into_iter().filter_map(|name| agent(name, settings)).collect()
}

/// `None` for an agent that cannot be chosen, such as one whose policy the settings do not have.
fn agent(name: &str, settings: &Effective) -> Option<AgentResponse> {
    let choice = choose_agent(name, settings).ok()?;
    Some(AgentResponse {
        name: name.to_owned(),
        provider: choice.provider?.as_str().to_owned(),
        model: choice.agent.and_then(|agent| agent.model.clone()),
        mode: choice.mode.value.to_string(),
        policy: choice.agent.and_then(|agent| agent.policy.as_ref()).map(ToString::to_string),
        built_in: choice.agent.is_none(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{Origin, read_layer};

    #[test]
    fn agents_of_the_settings_come_first_and_take_names() {
        let text = r#"{"agents": {"coder": {"provider": "anthropic", "sandbox_mode": "docker"},
                                  "codex": {"provider": "opencode"},
                                  "lost": {"provider": "codex", "policy": "none"}}}"#;
        let settings = Effective::default().under(&read_layer(text, &Origin::Global("/g".into())).unwrap());
        let found = agents(&settings);
        let names: Vec<_> = found.iter().map(|agent| (agent.name.as_str(), agent.built_in)).collect();
        assert_eq!(names, [("coder", false), ("codex", false), ("claude_code", true), ("opencode", true)]);
        assert_eq!((found[0].mode.as_str(), found[1].provider.as_str()), ("docker", "opencode"));
    }
}
