//! Tools that belong to no sandbox: for what has to be done with a stranger's bytes before there is one.

use std::path::{Path, PathBuf};

use cofferdam_core::SandboxId;

use crate::backend::{CreateError, Tool, ToolAccess, ToolFolder, ToolOutput, ToolSource};
use crate::errors::failed;
use crate::folder::Folder;
use crate::linux::ids;
use crate::local::give;
use crate::local::run_command::after;
use crate::local::tool::{self, Found, Whose};
use crate::options::Options;
use crate::remove::remove_tree;
use crate::trials;

/// Runs tools in sandboxes of their own.
#[derive(Debug, Clone)]
pub struct Tools {
    options: Options,
}

impl Tools {
    /// Tools of a node that is set up like this.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// Where a tool finds one of its folders.
    #[must_use]
    pub fn path(&self, folder: &ToolFolder) -> PathBuf {
        tool::path(folder)
    }

    /// Runs a tool for a sandbox that is yet to be made. What it wrote belongs to the caller when this returns. It is killed as soon
    /// as `until` says why.
    ///
    /// # Errors
    /// [`CreateError`] if it could not be started; how it ended is in the output.
    pub async fn run(
        &self,
        id: &SandboxId,
        tool: &Tool,
        until: impl Future<Output = String>,
    ) -> Result<ToolOutput, CreateError> {
        let step = |step: &'static str| move |error| failed(id, step, &error);
        let state = &self.options.state;
        let path = trials::new_folder(state, "tool").map_err(step("make the tool's folder"))?;
        let place = Place { path, state, id };
        let folder = Folder::new(&place.path, id);
        folder.create().map_err(step("make the tool's folder"))?;
        let root = rustix::process::geteuid().is_root();
        let ids = root.then(|| ids::take(&state.join("ids"), id)).transpose().map_err(step("take ids"))?;
        let either = async {
            tokio::select! {
                why = until => why,
                why = after(tool.deadline) => why,
            }
        };
        let whose = Whose { ids, agent: None };
        let output = tool::run(&self.options, &folder, tool, whose, source, either).await?;
        if ids.is_some() {
            let own = rustix::process::geteuid().as_raw();
            for folder in tool.folders.iter().filter(|folder| folder.access == ToolAccess::Write) {
                if let Found::At(path) = source(folder) {
                    give(path, own).map_err(step("take what the tool wrote"))?;
                }
            }
        }
        Ok(output)
    }
}

fn source(folder: &ToolFolder) -> Found<'_> {
    match &folder.source {
        ToolSource::Node(path) => Found::At(path),
        ToolSource::Layers(layers) => Found::In(layers),
        // No agent has left anything: there is nothing to mount, and the tool is not started.
        ToolSource::Changes => Found::At(Path::new("/proc/self/nothing")),
    }
}

/// What was made for one tool, and goes with it. What stays behind all the same is swept with other trials.
struct Place<'a> {
    path: PathBuf,
    state: &'a Path,
    id: &'a SandboxId,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let _ = ids::release(&self.state.join("ids"), self.id);
        let _ = remove_tree(&self.path);
    }
}
