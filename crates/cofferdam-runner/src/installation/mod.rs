//! Where an agent CLI is installed, and what of it a sandbox must show.
//!
//! [`find`] follows what is on the caller's PATH to the native program behind it by reading links, packages
//! and launch scripts; nothing is executed. [`version`] is the only thing here that starts the program, in
//! an empty folder and without an environment. A launcher that decides only when it runs what it starts
//! (mise, volta, asdf) is refused with what to type: its answer may depend on the folder it is asked in.
//!
//! The attacks: a repository that brings its own `claude`, through a PATH entry that leads into it; another
//! user of the machine who may change the program, or a folder on the way to it (`trust`).

mod elf;
mod error;
mod follow;
mod layout;
mod machine;
mod script;
mod search;
mod trust;
mod version;

use std::path::{Path, PathBuf};

use cofferdam_agent::profile;
use cofferdam_core::Agent;

pub use error::{InstallationError, VersionError};
pub(crate) use search::{first_on_path, is_in_repository};
pub use version::version;

/// Where to look for a CLI.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// The caller's PATH, as folders. Relative and empty entries are not searched.
    pub path: &'a [PathBuf],
    /// The caller's home: only used to say where a CLI is that is not on PATH.
    pub home: Option<&'a Path>,
    /// The repository, which may not supply a program.
    pub exclude: Option<&'a Path>,
}

/// An agent CLI on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// Which one.
    pub agent: Agent,
    /// As it was found on PATH.
    pub command: PathBuf,
    /// What is started: the real path of the native program, or of the interpreter of [`Self::script`].
    pub program: PathBuf,
    /// The first argument of [`Self::program`], if that is an interpreter.
    pub script: Option<PathBuf>,
    /// What a sandbox must show, read-only and at the same paths; real paths, as few as possible.
    pub binds: Vec<PathBuf>,
    /// Folders below [`Self::binds`] with programs that the CLI expects on PATH.
    pub path_entries: Vec<PathBuf>,
}

/// Finds a CLI on PATH and follows it to what is really started.
///
/// The first one on PATH is meant, as in a shell: if that one cannot be used, this says so and does not
/// try the next.
///
/// # Errors
/// If there is none, or if it cannot or should not be used; the message says what to type.
pub fn find(agent: Agent, search: &Search<'_>) -> Result<Installation, InstallationError> {
    let Some(command) = first_on_path(profile(agent).program, search) else {
        return Err(InstallationError::NotFound { agent, elsewhere: search::elsewhere(agent, search.home) });
    };
    let installation = resolve(agent, command, search)?;
    let used = installation.binds.iter().chain([&installation.program]).chain(&installation.script);
    for path in used {
        search::refuse_in_repository(agent, path, search)?;
        trust::check_chain(agent, path)?;
    }
    for folder in installation.binds.iter().filter(|path| path.is_dir()) {
        trust::check_tree(agent, folder)?;
    }
    Ok(installation)
}

/// The CLI as it is on PATH, without following it to what it starts: for whoever starts it outside of a sandbox, as its
/// owner does.
///
/// # Errors
/// If there is none, or if somebody else could have put it there.
pub fn on_path(agent: Agent, search: &Search<'_>) -> Result<PathBuf, InstallationError> {
    let Some(command) = first_on_path(profile(agent).program, search) else {
        return Err(InstallationError::NotFound { agent, elsewhere: search::elsewhere(agent, search.home) });
    };
    let real = command.canonicalize().map_err(|source| InstallationError::Unreadable {
        agent,
        path: command.clone(),
        source,
    })?;
    search::refuse_in_repository(agent, &real, search)?;
    trust::check_chain(agent, &real)?;
    Ok(command)
}

fn resolve(agent: Agent, command: PathBuf, search: &Search<'_>) -> Result<Installation, InstallationError> {
    let launched = follow::follow(agent, &command, search)?;
    let installation = |program: PathBuf, script, binds, path_entries| Installation {
        agent,
        command: command.clone(),
        program,
        script,
        binds,
        path_entries,
    };
    match launched {
        follow::Launched::Native(layout) => {
            Ok(installation(layout.program, None, layout.binds, layout.path_entries))
        }
        follow::Launched::Script { script, package, interpreter } => {
            let node = interpreter_of(agent, interpreter, search)?;
            let binds = vec![package, node.clone()];
            Ok(installation(node, Some(script), binds, Vec::new()))
        }
    }
}

/// The interpreter's real program. It is followed as the CLI is: a shim of a version manager is refused.
fn interpreter_of(
    agent: Agent,
    name: &'static str,
    search: &Search<'_>,
) -> Result<PathBuf, InstallationError> {
    let found =
        first_on_path(name, search).ok_or(InstallationError::NoInterpreter { agent, interpreter: name })?;
    follow::follow_interpreter(agent, name, &found, search)
}

#[cfg(test)]
mod tests;
