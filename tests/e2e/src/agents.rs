//! The real agent CLIs, as `./dev test` installs them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder with the launchers of the real agent CLIs: `claude`, `codex` and `opencode`.
#[derive(Debug, Clone)]
pub struct Agents {
    folder: PathBuf,
}

impl Agents {
    /// The agents that `COFFERDAM_AGENTS` names. Without them a test says on stderr that it is skipped, and
    /// returns; in CI, where they must be, it fails.
    ///
    /// # Panics
    /// If there are none in CI, or one of the three is missing where `COFFERDAM_AGENTS` points.
    #[must_use]
    pub fn find() -> Option<Self> {
        let named = std::env::var_os("COFFERDAM_AGENTS").filter(|folder| !folder.is_empty());
        let Some(folder) = named.map(PathBuf::from) else {
            let in_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false");
            assert!(!in_ci, "there are no agent CLIs: {WHAT_TO_DO}");
            eprintln!("skipped: there are no agent CLIs; {WHAT_TO_DO}");
            return None;
        };
        for name in ["claude", "codex", "opencode"] {
            let path = folder.join(name);
            assert!(path.exists(), "{} does not exist; {WHAT_TO_DO}", path.display());
        }
        Some(Self { folder })
    }

    /// The folder with the launchers.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The npm prefix that the launchers' folder is in.
    ///
    /// # Panics
    /// If the folder is the root.
    #[must_use]
    pub fn prefix(&self) -> &Path {
        self.folder.parent().expect("launchers are in the folder bin of a prefix")
    }

    /// A launcher: `claude`, `codex` or `opencode`.
    #[must_use]
    pub fn launcher(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A `PATH` that finds the agents first, and then what the system has.
    ///
    /// # Panics
    /// If the folder's name holds a colon.
    #[must_use]
    pub fn path(&self) -> OsString {
        let system = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        let folders = std::iter::once(self.folder.clone()).chain(std::env::split_paths(&system));
        std::env::join_paths(folders).expect("folders without colons")
    }
}

const WHAT_TO_DO: &str =
    "run ./dev test, or set COFFERDAM_AGENTS to a folder with claude, codex and opencode";
