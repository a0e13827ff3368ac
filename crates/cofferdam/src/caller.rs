//! Who typed the command: environment, current folder, home. Commands are told of them by value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cofferdam_core::{RunId, with_causes};
pub(crate) use cofferdam_operations::now_ms;
use cofferdam_operations::random_bits;
use cofferdam_runner::{Home, HomeError};

use crate::exit::ExitCode;
use crate::failure::Failure;

/// Everything that a command takes from around it.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The environment.
    pub(crate) env: BTreeMap<OsString, OsString>,
    /// The current folder.
    pub(crate) current_folder: PathBuf,
}

impl Caller {
    /// The caller of this process.
    pub(crate) fn of_this_process() -> Result<Self, Failure> {
        let current_folder = std::env::current_dir().map_err(|error| {
            Failure::new(ExitCode::Usage, format!("the current folder cannot be read: {error}"))
                .hint("change to a folder that exists")
        })?;
        Ok(Self { env: std::env::vars_os().collect(), current_folder })
    }

    /// A variable that is set and not empty.
    pub(crate) fn var(&self, name: &str) -> Option<&OsString> {
        self.env.get(std::ffi::OsStr::new(name)).filter(|value| !value.is_empty())
    }

    /// The caller's home. It is never looked up in the user database: a static binary cannot.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.var("HOME").map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// The caller's PATH, as folders.
    pub(crate) fn path(&self) -> Vec<PathBuf> {
        self.var("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default()
    }

    /// Where the state folder is, whether it exists or not.
    pub(crate) fn state_folder(&self) -> Option<PathBuf> {
        match self.var("COFFERDAM_HOME") {
            Some(path) => Some(self.current_folder.join(path)),
            None => self.home().map(|home| home.join(".cofferdam")),
        }
    }

    /// Opens the state folder.
    pub(crate) fn open_state(&self) -> Result<Home, Failure> {
        let path = self.state_folder().ok_or_else(|| {
            Failure::new(
                ExitCode::Refused,
                "neither HOME nor COFFERDAM_HOME is set, so there is no state folder",
            )
            .hint("export COFFERDAM_HOME=/a/folder/of/yours")
        })?;
        Home::open(&path).map_err(|error| cannot_be_used(&path, &error))
    }

    /// The state folder to read from. Whatever decides how runs are made is read from it, so that one of somebody else's
    /// is refused, whoever they are and whether or not the command writes to it.
    pub(crate) fn state_to_read(&self) -> Result<Option<PathBuf>, Failure> {
        let Some(path) = self.state_folder() else { return Ok(None) };
        Home::check(&path).map_err(|error| cannot_be_used(&path, &error))?;
        Ok(Some(path))
    }

    /// Resolves a path that the caller typed.
    pub(crate) fn resolve(&self, path: &Path) -> PathBuf {
        self.current_folder.join(path)
    }
}

fn cannot_be_used(path: &Path, error: &HomeError) -> Failure {
    let shown = path.display();
    let message = format!("the state folder {shown} cannot be used: {}", with_causes(error));
    Failure::new(ExitCode::Refused, message).hint(error.remedy())
}

/// A new run's name.
pub(crate) fn new_run_id() -> RunId {
    RunId::new(now_ms(), random_bits())
}
