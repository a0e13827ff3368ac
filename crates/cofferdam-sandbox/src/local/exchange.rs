//! What goes into a sandbox of this machine and comes out of it: by mounts.

use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use async_trait::async_trait;
use cofferdam_core::inside;
use rustix::fs::{Mode, OFlags};

use super::handed_over;
use super::identity::Identity;
use super::layers::Layers;
use super::run_command::{after, run_command};
use super::tool::{self, Found, Whose};
use crate::backend::{Changes, CreateError, Exchange, OpenError, Tool, ToolFolder, ToolOutput, ToolSource};
use crate::errors::failed;
use crate::folder::{Folder, Record};
use crate::linux::plan::{LaunchPlan, Owner};
use crate::options::Options;

/// The exchange with a sandbox whose folders are mounted.
#[derive(Debug, Clone)]
pub(crate) struct LocalExchange {
    pub(crate) folder: Folder,
    pub(crate) layers: Layers,
    pub(crate) agent: Agent,
    pub(crate) options: Options,
}

/// Who an agent is, among the users of this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Agent {
    /// Whoever starts it: there is no wall, and nothing is mounted.
    Caller,
    /// The one user of a user namespace, whose ids the launcher's plan has.
    Namespace,
    /// The user of a container; `None` if it was never planned.
    Container(Option<Identity>),
}

impl LocalExchange {
    /// The exchange with a sandbox that was never planned: there is nothing but a folder to remove.
    pub(crate) fn unplanned(folder: Folder, agent: Agent, options: &Options) -> Self {
        let layers = Layers::Folder { path: folder.path().join("workspace") };
        Self { folder, layers, agent, options: options.clone() }
    }

    fn source<'a>(&'a self, folder: &'a ToolFolder) -> Found<'a> {
        match &folder.source {
            ToolSource::Node(path) => Found::At(path),
            ToolSource::Layers(layers) => Found::In(layers),
            ToolSource::Changes => Found::At(self.layers.written()),
        }
    }

    /// Whose files a tool reads.
    fn whose(&self) -> io::Result<Whose> {
        Ok(match self.agent {
            Agent::Caller => Whose { ids: None, agent: None },
            // The agent's files belong to the agent's ids, so the tool has the same.
            Agent::Namespace => {
                let plan: Option<LaunchPlan> = self.folder.read(Record::Plan)?;
                Whose { ids: plan.and_then(|plan| plan.ids), agent: None }
            }
            Agent::Container(who) => Whose {
                ids: who.and_then(|who| who.ids),
                agent: who.map(|who| Owner { uid: who.uid, gid: who.gid }),
            },
        })
    }
}

#[async_trait]
impl Exchange for LocalExchange {
    fn working_directory(&self, target: &Path) -> PathBuf {
        self.path_inside(self.layers.written(), target)
    }

    fn path_inside(&self, source: &Path, target: &Path) -> PathBuf {
        match self.agent {
            Agent::Caller => source.to_owned(),
            Agent::Namespace | Agent::Container(_) => target.to_owned(),
        }
    }

    async fn connect_egress(&self, sockets: &Path) -> Result<PathBuf, OpenError> {
        // Mounted when the sandbox was made.
        Ok(self.path_inside(sockets, Path::new(inside::EGRESS)))
    }

    async fn changes(&self) -> Changes {
        match &self.layers {
            Layers::Folder { path } if handed_over::is_as_recorded(&self.folder, path) => Changes::None,
            Layers::Folder { .. } => Changes::Tree,
            Layers::Overlay { upper, .. } if handed_over::is_empty(upper) => Changes::None,
            Layers::Overlay { .. } => Changes::Layer,
        }
    }

    fn tool_path(&self, folder: &ToolFolder) -> PathBuf {
        match self.source(folder) {
            Found::At(path) => self.path_inside(path, &tool::path(folder)),
            Found::In(_) => tool::path(folder),
        }
    }

    async fn run_tool(&self, tool: &Tool) -> Result<ToolOutput, CreateError> {
        let id = self.folder.id();
        if tool.folders.iter().any(|folder| folder.source == ToolSource::Changes) {
            open_to_owner(self.layers.written())
                .map_err(|error| failed(id, "open the workspace to its owner", &error))?;
        }
        if let Agent::Caller = self.agent {
            // Without mounts nothing would hide what the upper layers hide.
            if tool.folders.iter().any(|folder| matches!(folder.source, ToolSource::Layers(_))) {
                return Err(failed(id, "show layers to a tool", &io::ErrorKind::Unsupported.into()));
            }
            let mut command = Command::new(&self.options.binary);
            command.args(&tool.arguments).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
            return run_command(id, command, tool.input.clone(), after(tool.deadline)).await;
        }
        let whose = self.whose().map_err(|error| failed(id, "read the plan", &error))?;
        tool::run(
            &self.options,
            &self.folder,
            tool,
            whose,
            |folder| self.source(folder),
            after(tool.deadline),
        )
        .await
    }
}

/// An agent that closes its workspace to itself (`chmod 000 .`) would close it to the tools.
fn open_to_owner(folder: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty())?;
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&folder)?.st_mode & 0o777);
    // Through the descriptor, which no link can have replaced.
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    Ok(rustix::fs::chmod(path, mode | Mode::RUSR | Mode::XUSR)?)
}
