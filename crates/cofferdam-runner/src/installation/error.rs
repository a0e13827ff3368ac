//! Why a CLI cannot be used, with what to type.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cofferdam_agent::profile;
use cofferdam_core::Agent;

/// Why an agent CLI cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    /// There is none on PATH.
    #[error("{} is not on PATH", program(.agent))]
    NotFound {
        /// Which one.
        agent: Agent,
        /// Where one is that is not on PATH.
        elsewhere: Option<PathBuf>,
    },
    /// What is on PATH decides only when it runs which program it starts.
    #[error("{} is a shim of {manager}, which decides only when it runs what it starts", .command.display())]
    Shim {
        /// Which one.
        agent: Agent,
        /// What is on PATH.
        command: PathBuf,
        /// Whose shim it is.
        manager: &'static str,
        /// What prints the real program; `None` if nothing does.
        which: Option<String>,
    },
    /// What is on PATH is a script whose end cannot be told by reading it.
    #[error("{} is a script, and which program it starts cannot be told by reading it", .script.display())]
    Script {
        /// Which one.
        agent: Agent,
        /// The script.
        script: PathBuf,
    },
    /// The package is there, and the program that it should hold is not.
    #[error("the package at {} has no program for this machine ({})", .package.display(), std::env::consts::ARCH)]
    Incomplete {
        /// Which one.
        agent: Agent,
        /// The package's folder.
        package: PathBuf,
    },
    /// A program for another kind of machine.
    #[error("{} is a program for {machine}, and this machine is {}", .program.display(), std::env::consts::ARCH)]
    WrongMachine {
        /// Which one.
        agent: Agent,
        /// The program.
        program: PathBuf,
        /// What it is made for.
        machine: String,
    },
    /// A program whose loader a sandbox does not show, or that is not on this machine.
    #[error("{} needs the loader {}, which is not in the system's own folders", .program.display(), .loader.display())]
    Loader {
        /// Which one.
        agent: Agent,
        /// The program.
        program: PathBuf,
        /// The loader that it names.
        loader: PathBuf,
    },
    /// It is a script, and its interpreter is not on PATH.
    #[error("{} needs {interpreter}, which is not on PATH", program(.agent))]
    NoInterpreter {
        /// Which one.
        agent: Agent,
        /// The interpreter's name.
        interpreter: &'static str,
    },
    /// Part of it lies in the repository that the agent is to work on.
    #[error("{} leads to {}, which is in the repository", program(.agent), .path.display())]
    InRepository {
        /// Which one.
        agent: Agent,
        /// What lies there.
        path: PathBuf,
    },
    /// Somebody else than root and the caller could change it.
    #[error("{} {how}, who could change what {} does", .path.display(), program(.agent))]
    Untrusted {
        /// Which one.
        agent: Agent,
        /// What could be changed.
        path: PathBuf,
        /// By whom.
        how: String,
    },
    /// It could not be looked at.
    #[error("failed to look at {}", .path.display())]
    Unreadable {
        /// Which one.
        agent: Agent,
        /// What could not be looked at.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl InstallationError {
    /// Which CLI it is about.
    #[must_use]
    pub fn agent(&self) -> Agent {
        match self {
            Self::NotFound { agent, .. }
            | Self::Shim { agent, .. }
            | Self::Script { agent, .. }
            | Self::Incomplete { agent, .. }
            | Self::WrongMachine { agent, .. }
            | Self::Loader { agent, .. }
            | Self::NoInterpreter { agent, .. }
            | Self::InRepository { agent, .. }
            | Self::Untrusted { agent, .. }
            | Self::Unreadable { agent, .. } => *agent,
        }
    }

    /// What to type, or do, about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        let install = |agent: &Agent| format!("`npm install -g {}`", profile(*agent).package);
        match self {
            Self::NotFound { elsewhere: Some(place), .. } => {
                format!("there is one at {}: put its folder on PATH", place.display())
            }
            Self::NotFound { agent, elsewhere: None } => format!("install it: {}", install(agent)),
            Self::Shim { which: Some(which), .. } => {
                format!("put the real program's folder first: `PATH=\"$(dirname \"$({which})\"):$PATH\"`")
            }
            Self::Shim { agent, which: None, .. } => format!("install it another way: {}", install(agent)),
            Self::Script { agent, .. } => {
                format!("put the folder of the {} program itself first on PATH", program(agent))
            }
            Self::Incomplete { agent, .. } | Self::WrongMachine { agent, .. } => {
                format!("install it again, with optional dependencies: {}", install(agent))
            }
            Self::Loader { agent, .. } => {
                format!("install the build for ordinary systems: {}", install(agent))
            }
            Self::NoInterpreter { interpreter, .. } => format!("install {interpreter}, or put it on PATH"),
            Self::InRepository { agent, .. } => {
                format!("install {} outside of the repository", program(agent))
            }
            Self::Untrusted { agent, path, .. } => format!(
                "if it is yours, `sudo chown \"$(id -u)\" '{path}'` and `chmod o-w '{path}'`; \
                 else install {} as yourself",
                program(agent),
                path = path.display(),
            ),
            Self::Unreadable { path, .. } => format!("look at `ls -ld '{}'`", path.display()),
        }
    }
}

/// What a person types.
fn program(agent: &Agent) -> &'static str {
    profile(*agent).program
}

/// Why a CLI's version could not be asked for.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// It could not be started, or no folder be made for it.
    #[error("failed to start {}", .program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It did not end in time.
    #[error("{} --version took longer than {} s", .program.display(), .within.as_secs())]
    Deadline {
        /// The program.
        program: PathBuf,
        /// The time that it had.
        within: Duration,
    },
    /// It ended without saying a version.
    #[error("{} --version ended with {status} and said {said:?}", .program.display())]
    Unexpected {
        /// The program.
        program: PathBuf,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The beginning of what it said.
        said: String,
    },
}
