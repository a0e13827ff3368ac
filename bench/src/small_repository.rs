//! The repository that whole runs work on.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

/// Makes a small repository with one commit; `git` is a command that is ready but for its arguments.
pub(crate) fn make(path: &Path, git: impl Fn() -> Command) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(path)?;
    for number in 0..20 {
        std::fs::write(path.join(format!("file-{number}.txt")), format!("line {number}\n"))?;
    }
    for words in [
        &["init", "--quiet"][..],
        &["add", "--all"],
        &["-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "--quiet", "-m", "base"],
    ] {
        let status = git().current_dir(path).args(words).status()?;
        ensure!(status.success(), "git failed: {status}");
    }
    Ok(path.to_owned())
}
