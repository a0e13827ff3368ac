//! The same of a service: every node looks at its own machine.

use cofferdam_api::{AgentState, Client, NodeAgents};
use serde_json::json;

use super::{AgentsCommand, list, show};
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::records::client_failure;
use crate::{sanitize, terminal};

/// Asks, and shows what each node has.
pub(super) async fn run(command: &AgentsCommand, client: &Client) -> Result<ExitCode, Failure> {
    let mut nodes = client.node_agents().await.map_err(|error| client_failure(&error))?.nodes;
    let json = match command {
        AgentsCommand::List(args) => args.json,
        AgentsCommand::Show(args) => {
            for node in &mut nodes {
                node.agents.retain(|agent| agent.agent == args.name);
            }
            if nodes.iter().all(|node| node.agents.is_empty()) {
                let problem = format!("no node knows an agent `{}`", sanitize::line(&args.name));
                return Err(UsageError::new(problem, "type `cofferdam agents list --server URL`").into());
            }
            args.json
        }
    };
    let table = |agents: &[AgentState]| match command {
        AgentsCommand::List(_) => list::table(agents),
        AgentsCommand::Show(_) => agents.iter().map(|agent| show::rows(&show::of_state(agent))).collect(),
    };
    terminal::write_answer(json, || json!(nodes), || nodes.iter().map(|node| text(node, &table)).collect())?;
    Ok(ExitCode::Succeeded)
}

fn text(node: &NodeAgents, table: &dyn Fn(&[AgentState]) -> String) -> String {
    let said = match node.status.as_str() {
        "ok" => table(&node.agents),
        _ => "it did not answer in time\n".to_owned(),
    };
    format!("node {} on {}\n{said}", sanitize::line(&node.name), sanitize::line(&node.host))
}
