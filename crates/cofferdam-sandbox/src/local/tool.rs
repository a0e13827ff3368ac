//! Running a role of our own binary in a sandbox of its own: on what an agent has left, or for a workspace that is yet to be made.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cofferdam_core::{Network, WallPlan, inside};

use super::identity::give;
use super::run_command::run_command;
use crate::backend::{CreateError, Tool, ToolAccess, ToolFolder, ToolOutput, ToolSystem};
use crate::errors::failed;
use crate::folder::{Folder, Record};
use crate::linux::launcher::{LaunchStatus, NOT_LAUNCHED};
use crate::linux::plan::{Access, Entry, IdRange, LaunchPlan, Owner};
use crate::linux::{Holder, cgroup, covers, holder, limits_of, refusal, system};
use crate::machine_name::machine_name;
use crate::options::{Caller, Options, Without};
use crate::remove::remove_tree;

/// How much of what a tool says is repeated.
const MOST_SAID: u64 = 64 << 10;

/// Whose files a tool reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whose {
    /// The ids that the tool gets, if root starts it.
    pub(crate) ids: Option<IdRange>,
    /// Who owns the agent's files, if that is none of those ids.
    pub(crate) agent: Option<Owner>,
}

/// Where what a tool sees is on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found<'a> {
    At(&'a Path),
    /// In these folders together, the topmost first.
    In(&'a [PathBuf]),
}

/// Where a tool finds one of its folders.
pub(crate) fn path(folder: &ToolFolder) -> PathBuf {
    Path::new("/tool").join(&folder.name)
}

/// The walls around a tool.
fn walls(tool: &Tool) -> WallPlan {
    let written = tool.folders.iter().filter(|folder| folder.access == ToolAccess::Write);
    WallPlan {
        no_new_privileges: true,
        seccomp: true,
        landlock_writable: Some(written.map(|folder| path(folder).display().to_string()).collect()),
        open_files: Some(tool.policy.limits.open_files),
        ..WallPlan::none()
    }
}

/// Runs a tool to its end, or until somebody says why not.
pub(crate) async fn run<'a>(
    options: &Options,
    sandbox: &Folder,
    tool: &'a Tool,
    whose: Whose,
    source: impl Fn(&'a ToolFolder) -> Found<'a>,
    until: impl Future<Output = String>,
) -> Result<ToolOutput, CreateError> {
    let id = sandbox.id();
    // The launcher finds everything in a folder that has the sandbox's name.
    let folder = Folder::new(&sandbox.path().join("tools"), id);
    remove_tree(folder.path()).map_err(|error| failed(id, "clear the tool's folder", &error))?;
    folder.create().map_err(|error| failed(id, "make the tool's folder", &error))?;
    let plan =
        plan(options, &folder, tool, whose, source).map_err(|error| failed(id, "plan the tool", &error))?;
    if let Some(group) = &plan.cgroup {
        // A process that died while its tool ran has left the group, and it has the sandbox's name.
        cgroup::end(group).map_err(|error| failed(id, "clear the tool's cgroup", &error))?;
        cgroup::create(group, &plan.limits).map_err(|error| failed(id, "make the tool's cgroup", &error))?;
    }
    folder.write(Record::Plan, &plan).map_err(|error| failed(id, "write the tool's plan", &error))?;
    let mut command = std::process::Command::new(&options.binary);
    command.env_clear().arg("launcher").arg(folder.path()).arg(std::process::id().to_string());
    let ended = run_command(id, command, tool.input.clone(), until).await;
    let mut said = Vec::new();
    // A tool that was taken over by what it read could write there without end.
    let _ =
        fs::File::open(folder.worker_errors()).and_then(|file| file.take(MOST_SAID).read_to_end(&mut said));
    if let Some(group) = &plan.cgroup {
        cgroup::end(group).map_err(|error| failed(id, "remove the tool's cgroup", &error))?;
    }
    let _ = remove_tree(folder.path());
    let ended = ended?;
    match serde_json::from_str(ended.message.lines().next().unwrap_or_default()) {
        Ok(LaunchStatus::Error(error)) if ended.code == Some(NOT_LAUNCHED.into()) => {
            Err(refusal::explain(id, &error))
        }
        Ok(_) => {
            Ok(ToolOutput { code: ended.code, message: String::from_utf8_lossy(&said).trim().to_owned() })
        }
        Err(_) => Ok(ended),
    }
}

fn plan<'a>(
    options: &Options,
    own: &Folder,
    tool: &'a Tool,
    whose: Whose,
    source: impl Fn(&'a ToolFolder) -> Found<'a>,
) -> io::Result<LaunchPlan> {
    let Whose { ids, agent } = whose;
    let limits = limits_of(&tool.policy);
    let cgroup = match holder(&machine_name(&options.state, own.id()), &limits) {
        Holder::Group(group) => Some(group),
        Holder::Scope(_) | Holder::Nobody(_) => None,
    };
    let mut entries = vec![Entry::Proc { path: "/proc".into() }];
    entries.extend(system::kernel_facts());
    match tool.system {
        ToolSystem::Programs => entries.extend(system::entries(&Caller::default(), Network::None)),
        ToolSystem::Nothing => {}
    }
    for private in options.caller.home.iter().chain([&options.state]) {
        entries.extend(covers(&entries, private));
    }
    entries.push(Entry::bind(&options.binary, inside::BINARY, Access::ReadOnly));
    for folder in &tool.folders {
        entries.push(match source(folder) {
            Found::At(path) => {
                if let (ToolAccess::Write | ToolAccess::ReadOwn, Some(ids)) = (folder.access, ids) {
                    give(path, ids.host(inside::UID))?;
                }
                bind(folder, path, agent)?
            }
            Found::In(layers) => overlay(folder, layers, own, ids)?,
        });
    }
    let mut arguments =
        vec!["enter-walls".to_owned(), serde_json::to_string(&walls(tool))?, inside::BINARY.to_owned()];
    arguments.extend(tool.arguments.iter().cloned());
    Ok(LaunchPlan {
        id: own.id().clone(),
        network: Network::None,
        ids,
        entries,
        arguments,
        cgroup,
        limits,
        limits_note: None,
        workspace_bytes: tool.policy.limits.workspace_bytes,
        fixed_size: false,
        without: Without::default(),
    })
}

fn bind(folder: &ToolFolder, source: &Path, agent: Option<Owner>) -> io::Result<Entry> {
    let (source, target) = (source.to_owned(), path(folder));
    let (access, owner) = match folder.access {
        ToolAccess::ReadCaller => (Access::ReadOnly, Some(Owner::of(&source)?)),
        ToolAccess::ReadAgent => (Access::ReadOnly, agent),
        ToolAccess::ReadOwn | ToolAccess::Connect => (Access::ReadOnly, None),
        ToolAccess::Write => (Access::ReadWrite, None),
    };
    Ok(Entry::Bind { source, target, access, owner })
}

/// What an agent would see of the layers. What it could write goes to a folder of the tool's own, and Landlock lets it write
/// nothing there.
fn overlay(folder: &ToolFolder, layers: &[PathBuf], own: &Folder, ids: Option<IdRange>) -> io::Result<Entry> {
    let lowest = layers.last().ok_or(io::ErrorKind::InvalidInput)?;
    let make = |part: &str| {
        let path = own.make(format!("{part}-{}", folder.name))?;
        ids.map_or(Ok(()), |ids| give(&path, ids.host(inside::UID)))?;
        Ok::<_, io::Error>(path)
    };
    Ok(Entry::Overlay {
        upper: make("upper")?,
        work: make("work")?,
        layers: layers.to_vec(),
        target: path(folder),
        owner: Some(Owner::of(lowest)?),
        access: Access::ReadWrite,
    })
}
