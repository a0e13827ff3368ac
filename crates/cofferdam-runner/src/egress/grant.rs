//! What an attempt is granted: from the run's request, and from nothing that the agent could have changed.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cofferdam_broker::{GitGrant, Grant, ModelGrant};
use cofferdam_core::{
    AllowRule, AttemptRef, Gateway, Network, Policy, RunRequest, SandboxId, Source, gateway,
};
use cofferdam_operations::random_bits;

use crate::home::Home;
use crate::model_choice::ModelChoice;
use crate::workspace;

/// An attempt's way out, as both sides of it need to know it.
#[derive(Debug, Clone)]
pub(crate) struct Granted {
    /// What the broker is told.
    pub(crate) grant: Grant,
    /// The folder of its sockets, on the host.
    pub(crate) folder: PathBuf,
    /// What the worker is told, but for where the folder is inside.
    pub(crate) gateway: Gateway,
}

/// What this attempt is granted; `None` if it has no way out. Makes the folder of the sockets. The same attempt
/// is granted the same, whoever asks and however often.
pub(crate) fn granted(
    home: &Home,
    attempt: &AttemptRef,
    request: &RunRequest,
    choice: Option<ModelChoice>,
) -> io::Result<Option<Granted>> {
    let policy = &request.policy;
    if !has_way_out(policy) {
        return Ok(None);
    }
    let own = home.workspaces().join(SandboxId::of(attempt).to_string());
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&own)?;
    let placeholder = placeholder(&own.join("placeholder"))?;
    // Last, since a broker in another process takes it as a sign that all the rest is there. Open, since the
    // agent of a sandbox that root makes has an id of its own; what is above is closed.
    let folder = folder(home, attempt);
    fs::DirBuilder::new().recursive(true).mode(0o755).create(&folder)?;
    let closed = policy.network.is_closed();
    let git = closed.then(|| repository(&request.source, policy.egress.push.clone())).flatten();
    let model = policy.egress.model.then(|| ModelGrant {
        agent: request.work.agent(),
        placeholder: placeholder.clone(),
        placeholder_required: !closed,
        vendor_tools: policy.egress.vendor_tools.clone(),
        budget: policy.budget,
    });
    let grant = Grant {
        attempt: attempt.clone(),
        folder: folder.clone(),
        proxy: closed.then(|| policy.egress.allow.clone()),
        forwards: policy.egress.forwards.clone(),
        model,
        git: git.clone(),
    };
    let gateway = Gateway {
        folder: folder.display().to_string(),
        port: closed.then_some(gateway::PORT),
        forwards: policy.egress.forwards.iter().map(|forward| forward.port).collect(),
        placeholder,
        proxy: closed,
        vendor: choice.as_ref().map(|choice| choice.vendor),
        login: choice.map(|choice| choice.login).unwrap_or_default(),
        repository: git.map(|git| git.url.to_string()),
    };
    Ok(Some(Granted { grant, folder, gateway }))
}

/// What the step that publishes an attempt's changes is granted: the run's repository and its one branch, and nothing
/// else. `None` if nothing is to be published.
pub(crate) fn publishing(home: &Home, attempt: &AttemptRef, request: &RunRequest) -> Option<Publishing> {
    let publish = request.publish.as_ref()?;
    let git = repository(&request.source, Some(publish.branch.as_str().to_owned()))?;
    let grant = Grant {
        attempt: attempt.clone(),
        folder: publishing_folder(home, attempt),
        // Not even to what the agent was allowed. Which addresses count as listed is told to the broker apart.
        proxy: None,
        forwards: Vec::new(),
        model: None,
        git: Some(git),
    };
    Some(Publishing { grant, listed: request.policy.egress.allow.clone() })
}

/// The way out of the step that publishes.
#[derive(Debug, Clone)]
pub(crate) struct Publishing {
    /// What the broker is told.
    pub(crate) grant: Grant,
    /// What the run's policy lists: a repository may be at an address that is not public only if it is among these.
    pub(crate) listed: Vec<AllowRule>,
}

impl Publishing {
    /// Makes the folder of its socket, which no agent ever sees. From then on a broker in another process serves the step,
    /// and no longer the agent.
    pub(crate) fn announce(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(&self.grant.folder)
    }
}

/// Where the socket of the step that publishes is. It goes with the workspace.
pub(crate) fn publishing_folder(home: &Home, attempt: &AttemptRef) -> PathBuf {
    home.workspaces().join(SandboxId::of(attempt).to_string()).join("publish")
}

/// Where the sockets of an attempt are. It goes with the workspace.
pub(crate) fn folder(home: &Home, attempt: &AttemptRef) -> PathBuf {
    home.workspaces().join(SandboxId::of(attempt).to_string()).join("egress")
}

/// A sealed sandbox has the broker for everything, one with a network of its own for the model alone.
fn has_way_out(policy: &Policy) -> bool {
    match policy.network {
        Network::None => false,
        Network::Sealed => true,
        Network::Open => policy.egress.model,
    }
}

/// What stands in for the key. Made once for an attempt, and read by whoever goes on with it.
fn placeholder(path: &Path) -> io::Result<String> {
    if let Ok(found) = fs::read_to_string(path) {
        return Ok(found);
    }
    let made = format!("sk-cofferdam-{:032x}", random_bits());
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(made.as_bytes())?;
    fs::rename(new, path)?;
    Ok(made)
}

/// The run's own repository, if it can be served with a token: where it came from.
fn repository(source: &Source, push: Option<String>) -> Option<GitGrant> {
    let (url, origin_of) = match source {
        Source::Empty => return None,
        Source::Git { url, .. } => (url.clone(), None),
        Source::Local { path } => (workspace::origin(path)?, Some(path.clone())),
    };
    url.as_str().starts_with("https://").then_some(GitGrant { url, origin_of, push })
}
