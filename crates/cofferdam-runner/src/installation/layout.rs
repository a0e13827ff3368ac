//! How each CLI's files lie once a program or a package of it is found.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::cli::{TRIPLE, platform_packages};
use super::elf::Elf;
use super::error::InstallationError;
use cofferdam_core::Agent;

/// A native program with what belongs to it.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) program: PathBuf,
    pub(super) binds: Vec<PathBuf>,
    pub(super) path_entries: Vec<PathBuf>,
}

/// Every sandbox shows these, and a program's loader must be in one of them.
const LOADERS: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];
/// A manifest is some kilobytes; whatever is longer is none.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// The layout around a native program with this real path.
pub(super) fn native(agent: Agent, program: &Path, elf: &Elf) -> Result<Layout, InstallationError> {
    check_runs_here(agent, program, elf)?;
    let root = match agent {
        Agent::Codex => codex_root(program),
        Agent::ClaudeCode | Agent::OpenCode => None,
    };
    let program = program.to_owned();
    Ok(match root {
        Some(root) => {
            let folders = ["codex-path", "path"].map(|name| root.join(name));
            let path_entries = folders.into_iter().filter(|folder| folder.is_dir()).collect();
            Layout { program, binds: vec![root], path_entries }
        }
        None => Layout { binds: vec![program.clone()], program, path_entries: Vec::new() },
    })
}

/// The folder of the CLI's own package that a file is in.
pub(super) fn package_of(agent: Agent, file: &Path) -> Option<PathBuf> {
    let folders = file.ancestors().skip(1).take(4);
    let is_package = |folder: &&Path| manifest_name(folder).is_some_and(|name| name == agent.package());
    folders.into_iter().find(is_package).map(Path::to_owned)
}

/// The native program that belongs to the CLI's own package: in it, or in a package for this platform that
/// node would find from it.
pub(super) fn in_package(agent: Agent, package: &Path) -> Result<Option<Layout>, InstallationError> {
    let mut refused = None;
    for program in programs_of(agent, package) {
        let Ok(program) = program.canonicalize() else { continue };
        let Ok(Some(elf)) = Elf::read(&program) else { continue };
        match native(agent, &program, &elf) {
            Ok(layout) => return Ok(Some(layout)),
            // A build for another libc or machine; another one may run here.
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    refused.map_or(Ok(None), Err)
}

/// Refuses a program that this machine, or a sandbox on it, could not start.
pub(super) fn check_runs_here(agent: Agent, program: &Path, elf: &Elf) -> Result<(), InstallationError> {
    let program = program.to_owned();
    if !elf.is_for_this_machine() {
        return Err(InstallationError::WrongMachine { agent, program, machine: elf.machine() });
    }
    match &elf.loader {
        Some(loader) if !(loader.is_file() && LOADERS.iter().any(|folder| loader.starts_with(folder))) => {
            Err(InstallationError::Loader { agent, program, loader: loader.clone() })
        }
        _ => Ok(()),
    }
}

/// Codex brings programs that it looks for beside itself; the folder that holds them all, if there is one.
fn codex_root(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    let root = folder.parent().filter(|_| folder.ends_with("bin") || folder.ends_with("codex"))?;
    let parts = ["codex-path", "codex-resources", "path"];
    let is_vendored = root.ends_with(TRIPLE) || parts[..2].iter().any(|part| root.join(part).is_dir());
    is_vendored.then(|| root.to_owned())
}

fn programs_of(agent: Agent, package: &Path) -> Vec<PathBuf> {
    let below: &[String] = &match agent {
        Agent::ClaudeCode => vec!["claude".to_owned()],
        Agent::Codex => vec![format!("vendor/{TRIPLE}/bin/codex"), format!("vendor/{TRIPLE}/codex/codex")],
        Agent::OpenCode => vec!["bin/opencode".to_owned()],
    };
    let mut programs = Vec::new();
    for name in platform_packages(agent) {
        for folder in package.ancestors().map(|folder| folder.join("node_modules").join(&name)) {
            programs.extend(below.iter().map(|below| folder.join(below)));
        }
    }
    // Codex came in one package for all platforms once.
    if agent == Agent::Codex {
        programs.extend(below.iter().map(|below| package.join(below)));
        programs.push(package.join(format!("bin/codex-{TRIPLE}")));
    }
    programs
}

fn manifest_name(folder: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(folder.join("package.json")).ok()?.take(MAX_MANIFEST_BYTES).read_to_string(&mut text).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&text).ok()?;
    manifest.get("name")?.as_str().map(str::to_owned)
}
