//! From what is on PATH to what is really started: links are followed name by name, launch scripts read.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::elf::Elf;
use super::error::InstallationError;
use super::layout::{self, Layout};
use super::{Search, script, search, trust};
use crate::ownership;
use cofferdam_agent::profile;
use cofferdam_core::Agent;

/// What stands at the end.
pub(super) enum Launched {
    /// A native program.
    Native(Layout),
    /// A script that an interpreter runs.
    Script { script: PathBuf, package: PathBuf, interpreter: &'static str },
}

/// A launch script that leads to a launch script that … is no longer one that somebody installed.
const MAX_SCRIPTS: usize = 5;
/// Launch scripts have a kilobyte or two. Of a longer file, the head says what it is.
const MAX_SCRIPT_BYTES: u64 = 64 << 10;

/// Follows a CLI's command to its end.
pub(super) fn follow(
    agent: Agent,
    command: &Path,
    search: &Search<'_>,
) -> Result<Launched, InstallationError> {
    let mut path = command.to_owned();
    for _ in 0..MAX_SCRIPTS {
        let real = real_path(agent, &path, search)?;
        refuse_shim(agent, profile(agent).program, &path, &real)?;
        let unreadable = |source| InstallationError::Unreadable { agent, path: real.clone(), source };
        if let Some(elf) = Elf::read(&real).map_err(unreadable)? {
            return layout::native(agent, &real, &elf).map(Launched::Native);
        }
        let text = read_script(&real).map_err(unreadable)?;
        if let Some(package) = layout::package_of(agent, &real) {
            return in_package(agent, real, package, &text);
        }
        if let Some(manager) = script::version_manager(&text) {
            return Err(shim(agent, profile(agent).program, &path, manager));
        }
        let Some(next) = script::target(&text, &path, search.home) else {
            return Err(InstallationError::Script { agent, script: path });
        };
        path = next;
    }
    Err(InstallationError::Script { agent, script: command.to_owned() })
}

/// Follows an interpreter's command to its program.
pub(super) fn follow_interpreter(
    agent: Agent,
    name: &'static str,
    command: &Path,
    search: &Search<'_>,
) -> Result<PathBuf, InstallationError> {
    let real = real_path(agent, command, search)?;
    refuse_shim(agent, name, command, &real)?;
    let unreadable = |source| InstallationError::Unreadable { agent, path: real.clone(), source };
    if let Some(elf) = Elf::read(&real).map_err(unreadable)? {
        layout::check_runs_here(agent, &real, &elf)?;
        return Ok(real);
    }
    let text = read_script(&real).map_err(unreadable)?;
    match script::version_manager(&text) {
        Some(manager) => Err(shim(agent, name, command, manager)),
        None => Err(InstallationError::Script { agent, script: command.to_owned() }),
    }
}

fn in_package(
    agent: Agent,
    real: PathBuf,
    package: PathBuf,
    text: &str,
) -> Result<Launched, InstallationError> {
    if let Some(layout) = layout::in_package(agent, &package)? {
        return Ok(Launched::Native(layout));
    }
    match script::interpreter(text) {
        Some(interpreter) if profile(agent).installed.may_be_script => {
            Ok(Launched::Script { script: real, package, interpreter })
        }
        // A script that only starts a program, which is not there.
        Some(_) | None => Err(InstallationError::Incomplete { agent, package }),
    }
}

/// The real path of a file, as `realpath` has it. Whoever could change a link or a folder on the way could
/// choose what is started, so each that was passed is checked.
fn real_path(agent: Agent, path: &Path, search: &Search<'_>) -> Result<PathBuf, InstallationError> {
    let way = ownership::walk(path).map_err(|doubt| trust::about(agent, doubt))?;
    for passed in &way.passed {
        search::refuse_in_repository(agent, passed, search)?;
        ownership::check(passed).map_err(|doubt| trust::about(agent, doubt))?;
    }
    Ok(way.real)
}

/// Refuses programs that stand for many others and decide by the name they are called by.
fn refuse_shim(agent: Agent, name: &str, path: &Path, real: &Path) -> Result<(), InstallationError> {
    let manager = match real.file_name().and_then(|name| name.to_str()) {
        Some("mise" | "rtx") => "mise",
        Some("volta-shim" | "volta") => "volta",
        Some("asdf") => "asdf",
        Some("snap") => "snap",
        _ if path.parent().is_some_and(|folder| folder.ends_with(".proto/shims")) => "proto",
        _ => return Ok(()),
    };
    Err(shim(agent, name, path, manager))
}

fn shim(agent: Agent, name: &str, command: &Path, manager: &'static str) -> InstallationError {
    let which = match manager {
        "snap" | "proto" => None,
        manager => Some(format!("{manager} which {name}")),
    };
    InstallationError::Shim { agent, command: command.to_owned(), manager, which }
}

fn read_script(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_SCRIPT_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
