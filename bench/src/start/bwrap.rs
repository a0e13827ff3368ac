//! Bubblewrap with the namespaces and about the mounts of our sandbox, up to the first line it prints.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::Contestant;

pub(super) struct Bwrap {
    command: Command,
}

impl Bwrap {
    pub(super) fn find(workspace: &Path) -> Option<Self> {
        let mut command = Command::new(find_program("bwrap")?);
        command.args(["--unshare-all", "--die-with-parent", "--new-session", "--hostname", "bench"]);
        command.args(["--uid", "1000", "--gid", "1000", "--ro-bind", "/usr", "/usr"]);
        for link in ["/bin", "/sbin", "/lib", "/lib32", "/lib64"] {
            match std::fs::read_link(link) {
                Ok(target) => command.arg("--symlink").arg(target).arg(link),
                Err(_) => command.args(["--ro-bind-try", link, link]),
            };
        }
        command.args(["--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev"]);
        command.args(["--tmpfs", "/tmp", "--tmpfs", "/home"]);
        command.arg("--bind").arg(workspace).args(["/workspace", "--chdir", "/workspace"]);
        command.args(["/bin/echo", "ready"]);
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped());
        Some(Self { command })
    }

    pub(super) fn describe(&self) -> String {
        "bwrap --unshare-all …, /bin/echo".to_owned()
    }
}

impl Contestant for Bwrap {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let mut child = self.command.spawn().context("bwrap cannot be started")?;
        let stdout = child.stdout.take().context("stdout was piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let time = started.elapsed();
        let status = child.wait()?;
        ensure!(status.success() && line == "ready\n", "bwrap ended with {status} after `{line}`");
        Ok(time)
    }
}

/// A program of the `PATH`.
pub(super) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}
