//! What a coding agent needs besides its workspace: its own program, and a way to its model.

use std::path::{Path, PathBuf};

use cofferdam_agent::profile;
use cofferdam_broker::OpenError;
use cofferdam_core::{Agent, FailureClass, Outcome, RunRequest, SandboxId, Work, inside, with_causes};
use cofferdam_sandbox::{Exchange, Shown};
use cofferdam_store::Claimed;

use super::Stop;
use crate::egress::{AccessError, Granted, granted};
use crate::home::Home;
use crate::installation::{self, Installation};
use crate::model_choice::{ModelChoice, NoModel};
use crate::node::Node;

/// An agent's own program.
#[derive(Debug, Clone)]
pub(super) enum Program {
    /// The caller's, as a sandbox shows it.
    Installed { installation: Installation, shown: Vec<Shown> },
    /// The image's, found by its name.
    OfImage(Agent),
}

/// Finds the CLI of a coding agent, on the caller's PATH or in the image; `None` for a plain command.
pub(super) fn find_program(node: &Node, request: &RunRequest) -> Result<Option<Program>, Stop> {
    let Some(agent) = request.work.agent() else { return Ok(None) };
    if request.policy.mode.is_container() {
        return Ok(Some(Program::OfImage(agent)));
    }
    let installation = installation::find(agent, &node.caller.search(&request.source)).map_err(|error| {
        let hint = "`cofferdam sandbox doctor` lists the agents that it finds";
        Stop::outcome(Outcome::failed_with_hint(FailureClass::AgentMissing, with_causes(&error), hint))
    })?;
    let shown = installation.binds.iter().enumerate().map(|(number, source)| Shown {
        source: source.clone(),
        target: Path::new(inside::AGENT)
            .join(number.to_string())
            .join(source.file_name().unwrap_or_default()),
    });
    Ok(Some(Program::Installed { shown: shown.collect(), installation }))
}

impl Program {
    pub(super) fn shown(&self) -> &[Shown] {
        match self {
            Self::Installed { shown, .. } => shown,
            Self::OfImage(_) => &[],
        }
    }

    /// What is started inside: the program, and its script if it is an interpreter.
    pub(super) fn argv(&self, exchange: &dyn Exchange) -> Vec<String> {
        match self {
            Self::Installed { installation, .. } => {
                let parts = [Some(&installation.program), installation.script.as_ref()];
                parts.into_iter().flatten().map(|path| self.inside(exchange, path)).collect()
            }
            Self::OfImage(agent) => vec![profile(*agent).program.to_owned()],
        }
    }

    /// Folders that its CLI expects on PATH.
    pub(super) fn path_entries(&self, exchange: &dyn Exchange) -> Vec<String> {
        match self {
            Self::Installed { installation, .. } => {
                installation.path_entries.iter().map(|path| self.inside(exchange, path)).collect()
            }
            Self::OfImage(_) => Vec::new(),
        }
    }

    fn inside(&self, exchange: &dyn Exchange, path: &Path) -> String {
        let below = |shown: &Shown| -> Option<PathBuf> {
            let rest = path.strip_prefix(&shown.source).ok()?;
            let target = exchange.path_inside(&shown.source, &shown.target);
            Some(if rest.as_os_str().is_empty() { target } else { target.join(rest) })
        };
        let inside = self.shown().iter().find_map(below).unwrap_or_else(|| path.to_owned());
        inside.display().to_string()
    }
}

/// Where a coding agent without a wall keeps its own files: in folders of the attempt, so that it neither finds the
/// caller's login nor leaves its sessions in the caller's home. In a sandbox the whole home is its own.
pub(super) fn private_folders(home: &Home, id: &SandboxId) -> std::io::Result<Vec<(String, String)>> {
    let root = home.workspaces().join(id.to_string()).join("agent");
    let common = [
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_CACHE_HOME", "cache"),
    ];
    let of_agents = Agent::ALL.into_iter().flat_map(|agent| profile(agent).folders).copied();
    let make = |(variable, name): (&str, &str)| {
        let path = root.join(name);
        std::fs::create_dir_all(&path)?;
        Ok((variable.to_owned(), path.display().to_string()))
    };
    common.into_iter().chain(of_agents).map(make).collect()
}

/// Opens the attempt's way out; `None` if it has none.
pub(super) async fn open_way_out(node: &Node, claimed: &Claimed) -> Result<Option<Granted>, Stop> {
    let choice = choose_model(node, &claimed.request.work)?;
    let Some(granted) = find_way_out(node, claimed, choice)? else { return Ok(None) };
    node.broker.open(&node.store, &granted).await.map_err(|error| {
        // The address is the caller's, and says nothing about this node.
        let class = match error {
            AccessError::Open(OpenError::Git { .. }) => FailureClass::Repository,
            _ => FailureClass::Sandbox,
        };
        Stop::outcome(Outcome::failed(class, with_causes(&error)))
    })?;
    Ok(Some(granted))
}

/// The attempt's way out, without opening it.
pub(super) fn find_way_out(
    node: &Node,
    claimed: &Claimed,
    choice: Option<ModelChoice>,
) -> Result<Option<Granted>, Stop> {
    granted(&node.home, &claimed.attempt, &claimed.request, choice).map_err(|error| {
        let message = format!("the way to the broker could not be made: {error}");
        Stop::outcome(Outcome::failed(FailureClass::Sandbox, message))
    })
}

/// Whose model the agent talks to. Without a key or a login the agent would only find out after minutes of retries.
fn choose_model(node: &Node, work: &Work) -> Result<Option<ModelChoice>, Stop> {
    (node.models)(work).map_err(|NoModel { message, hint }| {
        tracing::warn!(provider = work.provider(), %message, "a run has no model, and is not started");
        Stop::outcome(Outcome::failed_with_hint(FailureClass::Auth, message, hint))
    })
}
