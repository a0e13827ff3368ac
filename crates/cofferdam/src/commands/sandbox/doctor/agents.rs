//! The agent CLIs on this machine.

use std::path::{Path, PathBuf};

use cofferdam_agent::profile;
use cofferdam_core::{Agent, with_causes};
use cofferdam_runner::installation::{Search, find, version};
use cofferdam_sandbox::{Finding, Status};

use crate::caller::Caller;
use crate::failure::Failure;
use crate::known_agents::repository_around;

/// Every CLI that we know, found as a run from the current folder would find it. Their versions are asked
/// for at the same time: one of them needs a second.
pub(super) async fn agents(caller: &Caller) -> Result<Vec<Finding>, Failure> {
    let scratch = tempfile::tempdir().map_err(|error| {
        Failure::internal("no folder can be made to ask agents for their version in", &error)
    })?;
    let asked = Agent::ALL.map(|one| agent(one, caller, scratch.path()));
    Ok(futures_util::future::join_all(asked).await)
}

async fn agent(agent: Agent, caller: &Caller, scratch: &Path) -> Finding {
    let path: Vec<PathBuf> =
        caller.var("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
    let (home, repository) = (caller.home(), repository_around(&caller.current_folder));
    let search = Search { path: &path, home: home.as_deref(), exclude: repository.as_deref() };
    let (name, facts) = (agent.as_str(), profile(agent));
    let weak = |detail: String, remedy: &str| Finding::new(name, Status::Weak, &detail, remedy);
    let installation = match find(agent, &search) {
        Ok(installation) => installation,
        Err(error) => return weak(with_causes(&error), &error.remedy()),
    };
    let program = installation.program.display();
    match version(&installation, scratch).await {
        Ok(version) => Finding::ok(name, format!("{} {version} ({program})", facts.title)),
        Err(error) => {
            let again = format!(
                "look at what `{} --version` says; install it again: `npm install -g {}`",
                facts.program, facts.package
            );
            weak(with_causes(&error), &again)
        }
    }
}
