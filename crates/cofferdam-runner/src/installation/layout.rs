//! How an agent's files lie once a program or a package of it is found.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::elf::Elf;
use super::error::InstallationError;
use super::machine::this_machine;
use cofferdam_agent::{Bundle, profile};
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
    let program = program.to_owned();
    let bundle = profile(agent).installed.bundle.as_ref();
    Ok(match bundle.and_then(|bundle| Some((bundle, root_of(bundle, &program)?))) {
        Some((bundle, root)) => {
            let folders = bundle.path_entries.iter().map(|name| root.join(name));
            let path_entries = folders.filter(|folder| folder.is_dir()).collect();
            Layout { program, binds: vec![root], path_entries }
        }
        None => Layout { binds: vec![program.clone()], program, path_entries: Vec::new() },
    })
}

/// The folder of the CLI's own package that a file is in.
pub(super) fn package_of(agent: Agent, file: &Path) -> Option<PathBuf> {
    let folders = file.ancestors().skip(1).take(4);
    let is_package =
        |folder: &&Path| manifest_name(folder).is_some_and(|name| name == profile(agent).package);
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

/// The folder that holds a program with all that it brings along, if there is one.
fn root_of(bundle: &Bundle, program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    let is_known = bundle.program_folders.iter().any(|name| folder.ends_with(name));
    let root = folder.parent().filter(|_| is_known)?;
    let is_bundle =
        root.ends_with(this_machine().triple) || bundle.marks.iter().any(|mark| root.join(mark).is_dir());
    is_bundle.then(|| root.to_owned())
}

fn programs_of(agent: Agent, package: &Path) -> Vec<PathBuf> {
    let (installed, machine) = (&profile(agent).installed, this_machine());
    let below = (installed.programs)(&machine);
    let mut programs = Vec::new();
    for name in (installed.platform_packages)(&machine) {
        for folder in package.ancestors().map(|folder| folder.join("node_modules").join(&name)) {
            programs.extend(below.iter().map(|below| folder.join(below)));
        }
    }
    programs.extend((installed.own_programs)(&machine).iter().map(|below| package.join(below)));
    programs
}

fn manifest_name(folder: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(folder.join("package.json")).ok()?.take(MAX_MANIFEST_BYTES).read_to_string(&mut text).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&text).ok()?;
    manifest.get("name")?.as_str().map(str::to_owned)
}
