//! Who starts the runs: this process's user or, besides root, one without any right.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

/// `nobody`, on every system.
const NOBODY: u32 = 65_534;

/// A user with a folder of their own, which holds their repositories, their home and their state.
#[derive(Debug, Clone)]
pub(super) struct User {
    folder: PathBuf,
    prefix: Vec<String>,
    is_root: bool,
}

impl User {
    pub(super) fn of_this_process(folder: &Path) -> anyhow::Result<Self> {
        make(folder)?;
        let is_root = rustix::process::geteuid().is_root();
        Ok(Self { folder: folder.to_owned(), prefix: Vec::new(), is_root })
    }

    /// A user without any right; only root can become one. `None` if the program for it is missing.
    pub(super) fn nobody(folder: &Path) -> anyhow::Result<Option<Self>> {
        if super::bwrap::find_program("setpriv").is_none() {
            return Ok(None);
        }
        make(folder)?;
        chown(folder, Some(NOBODY), Some(NOBODY))?;
        let id = NOBODY.to_string();
        let prefix = ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups", "--inh-caps=-all"];
        Ok(Some(Self { folder: folder.to_owned(), prefix: prefix.map(String::from).into(), is_root: false }))
    }

    pub(super) fn is_root(&self) -> bool {
        self.is_root
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// A command that this user starts, with a home of its own and nobody's configuration.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut words = self.prefix.iter().map(String::as_str).chain(program.to_str());
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", &self.folder).env("COFFERDAM_HOME", self.state()).current_dir(&self.folder);
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }
}

fn make(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir(folder).with_context(|| format!("failed to make {}", folder.display()))
}

/// Lets every user pass through a folder.
pub(super) fn open_to_all(folder: &Path) -> anyhow::Result<()> {
    Ok(fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?)
}
