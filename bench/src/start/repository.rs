//! Repositories of a given size: packed, checked out and in the page cache.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::user::User;

/// Files in one folder.
const PER_FOLDER: usize = 100;

/// Makes a repository of this many small files in the user's folder.
pub(super) fn make(user: &User, name: &str, files: usize) -> anyhow::Result<PathBuf> {
    let root = user.folder().join(name);
    eprintln!("making a repository of {files} files");
    let git = |arguments: &[&str]| {
        let mut command = user.command(Path::new("git"));
        command.arg("-C").arg(user.folder()).args(arguments).stdout(Stdio::null());
        command
    };
    finish(&mut git(&["init", "--quiet", name]))?;
    import(git(&["-C", name, "fast-import", "--quiet"]), files)?;
    finish(&mut git(&["-C", name, "symbolic-ref", "HEAD", "refs/heads/bench"]))?;
    finish(&mut git(&["-C", name, "reset", "--quiet", "--hard"]))?;
    Ok(root)
}

fn finish(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().context("git cannot be started")?;
    ensure!(status.success(), "git failed: {status}");
    Ok(())
}

fn import(mut git: Command, files: usize) -> anyhow::Result<()> {
    let mut child = git.stdin(Stdio::piped()).spawn().context("git cannot be started")?;
    let stdin = child.stdin.take().context("stdin was piped a line above")?;
    let mut stream = BufWriter::with_capacity(1 << 20, stdin);
    writeln!(stream, "commit refs/heads/bench\ncommitter bench <> 0 +0000\ndata 0")?;
    for number in 0..files {
        let content = format!("pub const NUMBER: usize = {number};\n");
        let folder = number / PER_FOLDER;
        writeln!(stream, "M 100644 inline source/part_{folder:04}/file_{number:06}.rs")?;
        writeln!(stream, "data {}\n{content}", content.len())?;
    }
    stream.flush()?;
    drop(stream);
    let status = child.wait()?;
    ensure!(status.success(), "git fast-import failed: {status}");
    Ok(())
}
