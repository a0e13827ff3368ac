//! `GET /system/agents`.

use axum::Json;
use cofferdam_api::{AgentState, NodeAgents, NodeAgentsList};
use cofferdam_operations::Answered;

use crate::access::By;
use crate::errors::Answer;

/// Which CLIs and which keys or logins every node has for the agents that can be named. Nothing is started, and no model is asked:
/// `GET /system/{claude,codex,opencode}/auth` does that.
#[utoipa::path(get, path = "/system/agents", tag = "system", responses(
    (status = 200, description = "What each node has.", body = NodeAgentsList),
))]
pub(crate) async fn look_at_agents(By(actor, app): By) -> Answer<NodeAgentsList> {
    let answers = app.operations().look_at_agents(&actor).await?;
    Ok(Json(NodeAgentsList { nodes: answers.into_iter().map(node).collect() }))
}

/// A node of another version, whose answer is not understood, is as one that gave none.
fn node(answered: Answered) -> NodeAgents {
    let agents: Option<Vec<AgentState>> =
        answered.answer.and_then(|answer| serde_json::from_value(answer).ok());
    let status = if agents.is_some() { "ok" } else { "unavailable" }.to_owned();
    let (id, name, host) = (answered.node, answered.name, answered.host);
    NodeAgents { id, name, host, status, agents: agents.unwrap_or_default() }
}
