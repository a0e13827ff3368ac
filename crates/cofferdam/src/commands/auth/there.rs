//! The same asked of a service, whose nodes try it.

use cofferdam_agent::profile;
use cofferdam_api::{AuthQuery, Client};
use cofferdam_core::{Agent, Environment};
use cofferdam_runner::auth::AuthStatus;

use crate::failure::{Failure, UsageError};
use crate::records::client_failure;

/// Asks for each CLI that was named, or for all.
pub(super) async fn ask(
    client: &Client,
    environment: Option<Environment>,
    names: &[String],
) -> Result<Vec<AuthStatus>, Failure> {
    let agents: Vec<Agent> = match names {
        [] => Agent::ALL.to_vec(),
        names => names.iter().map(|name| agent_of(name)).collect::<Result<_, _>>()?,
    };
    let query = AuthQuery { environment: environment.map(|one| one.as_str().to_owned()) };
    let mut found = Vec::new();
    for agent in agents {
        let name = profile(agent).program;
        let status = client.check_auth(name, &query).await.map_err(|error| client_failure(&error))?;
        // The same fields: what a node says goes over the wire as it is.
        let status = serde_json::to_value(status).and_then(serde_json::from_value);
        found.push(status.map_err(|error| Failure::internal("the service is of another version", &error))?);
    }
    Ok(found)
}

fn agent_of(name: &str) -> Result<Agent, UsageError> {
    name.parse().map_err(|_| {
        UsageError::new(
            format!("a service tries the CLIs themselves, and `{name}` is none"),
            format!("type {}", Agent::choice("--agent ")),
        )
    })
}
