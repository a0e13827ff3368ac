//! Git that listens to nobody: a repository made by hand, and an environment without anybody's
//! configuration.
//!
//! The attack: git reads programs to run from the configuration of the repository it works on
//! (`core.fsmonitor`, `diff.external`, filters, text conversions, hooks) and which files they apply to
//! from `.gitattributes`. Whoever runs git on a folder that an agent wrote runs the agent's programs on
//! the host. So git never sees such a folder as a repository; it sees one that we made.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::programs::Git;

/// Makes an empty repository with no configuration beyond what git insists on.
pub(crate) fn init(git_dir: &Path) -> io::Result<()> {
    fs::create_dir_all(git_dir.join("objects/info"))?;
    fs::create_dir_all(git_dir.join("refs/heads"))?;
    fs::create_dir_all(git_dir.join("info"))?;
    // The branch does not exist: without a HEAD commit there is no tree to read attributes from.
    fs::write(git_dir.join("HEAD"), "ref: refs/heads/none\n")?;
    fs::write(git_dir.join("config"), bare_config(false))
}

/// The configuration of a repository whose objects have names of 40 digits, or of 64.
pub(crate) fn bare_config(is_sha256: bool) -> &'static str {
    match is_sha256 {
        false => "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
        true => {
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n"
        }
    }
}

/// A git command on a repository of ours: no configuration, no attributes, no hooks, no prompts.
pub(crate) fn command(git: &Git, git_dir: &Path) -> Command {
    let mut command = git.command_without_environment();
    command
        .env("GIT_DIR", git_dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("HOME", git_dir)
        .env("LC_ALL", "C");
    for setting in [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.attributesFile=/dev/null",
        "core.excludesFile=/dev/null",
        "core.fsync=none",
        "core.protectHFS=true",
        "core.protectNTFS=true",
        "gc.auto=0",
        "maintenance.auto=false",
        "submodule.recurse=false",
    ] {
        command.args(["-c", setting]);
    }
    command.stdin(Stdio::null()).current_dir("/");
    command
}

/// Runs a command to its end and returns what it printed; a failure carries the end of its stderr.
pub(crate) fn output(command: &mut Command, what: &str) -> io::Result<Vec<u8>> {
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(failure(what, output.status, &output.stderr))
}

/// An error that repeats what git said.
pub(crate) fn failure(what: &str, status: std::process::ExitStatus, stderr: &[u8]) -> io::Error {
    let said = String::from_utf8_lossy(stderr);
    io::Error::other(format!("{what} ended with {status}: {}", said.trim_end()))
}
