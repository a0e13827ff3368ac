//! The publisher: a role of our binary that makes a commit of a patch and pushes it, in a sealed sandbox of its own.
//!
//! It reads what a hostile agent wrote, and talks to a server that may be hostile too. So it sees neither the agent's
//! `.git` nor anybody's configuration; the commit is made in a repository of our own, without a work tree, which leaves
//! nothing for hooks, filters and attributes to act on. It has no credential: the broker adds it, for one branch.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use cofferdam_core::gateway;

use super::job::{PublishAnswer, PublishJob};
use crate::pristine_git;
use crate::programs::Git;

/// Whose commits these are. It is nobody's address: nobody is to be taken for their author.
const NAME: &str = "Cofferdam";
const EMAIL: &str = "cofferdam@localhost";

/// How much of git's words is repeated.
const MAX_SAID: usize = 2000;

/// Why a commit is not on its branch.
#[derive(Debug, thiserror::Error)]
enum PublishFault {
    /// The job cannot be read.
    #[error("the publisher's job is malformed: {0}")]
    Job(#[from] serde_json::Error),
    /// A step failed.
    #[error("failed to {action}: {source}")]
    Io { action: &'static str, source: io::Error },
    /// The repository answered that it does not take it.
    #[error("{0}")]
    Rejected(String),
    /// The repository was not reached, or broke off.
    #[error("the push failed: {0}")]
    Push(String),
}

/// The publisher's role: one argument, the [`PublishJob`] as JSON. `open_gateway` puts the socket of a folder on a port
/// of the loopback, where git can reach it. The answer is in the scratch folder as soon as there is a commit.
pub fn publisher_main(
    mut args: impl Iterator<Item = OsString>,
    open_gateway: impl FnOnce(&Path) -> io::Result<u16>,
) -> ExitCode {
    let job = args.next().unwrap_or_default();
    let job = serde_json::from_slice(job.as_encoded_bytes()).map_err(PublishFault::Job);
    match job.and_then(|job| publish(&job, open_gateway)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{fault}");
            match fault {
                PublishFault::Rejected(_) => ExitCode::from(PublishJob::REJECTED),
                PublishFault::Job(_) | PublishFault::Io { .. } | PublishFault::Push(_) => ExitCode::FAILURE,
            }
        }
    }
}

fn publish(
    job: &PublishJob,
    open_gateway: impl FnOnce(&Path) -> io::Result<u16>,
) -> Result<(), PublishFault> {
    let on = |action: &'static str| move |source| PublishFault::Io { action, source };
    let git_dir = job.scratch.0.join("git");
    make_repository(job, &git_dir).map_err(on("make a repository"))?;
    let commit = commit(job, &git_dir)?;
    answer(job, &commit, false).map_err(on("write the answer"))?;
    let port = open_gateway(job.sockets.as_ref()).map_err(on("reach the broker"))?;
    push(job, &git_dir, &commit, port)?;
    answer(job, &commit, true).map_err(on("write the answer"))
}

/// An empty repository that borrows the objects of the one which the workspace came from.
fn make_repository(job: &PublishJob, git_dir: &Path) -> io::Result<()> {
    pristine_git::init(git_dir)?;
    fs::write(git_dir.join("config"), pristine_git::bare_config(job.base.len() == 64))?;
    let objects = [job.objects.0.as_os_str().as_bytes(), b"\n"].concat();
    fs::write(git_dir.join("objects/info/alternates"), objects)
}

/// Makes the commit. The same job makes the same one.
fn commit(job: &PublishJob, git_dir: &Path) -> Result<String, PublishFault> {
    let on = |action: &'static str| move |source| PublishFault::Io { action, source };
    let git = || {
        let mut command = pristine_git::command(&Git::in_tool(&job.git.0), git_dir);
        command.env("GIT_INDEX_FILE", job.scratch.0.join("index"));
        command
    };
    let word = |mut command: Command, what: &'static str| {
        let printed = pristine_git::output(&mut command, what)?;
        Ok(String::from_utf8_lossy(&printed).trim().to_owned())
    };
    let mut read_tree = git();
    read_tree.args(["read-tree", &job.base]);
    word(read_tree, "git read-tree").map_err(on("read the commit that the run began with"))?;
    let mut apply = git();
    // To the index alone: nothing is written as a file, so nothing is converted.
    apply.args(["apply", "--cached", "--whitespace=nowarn", "--"]).arg(&job.patch.0);
    word(apply, "git apply").map_err(on("put the changes on the commit that the run began with"))?;
    let mut write_tree = git();
    write_tree.arg("write-tree");
    let tree = word(write_tree, "git write-tree").map_err(on("write the tree"))?;
    let mut commit_tree = git();
    let date = format!("{} +0000", job.at_secs);
    for who in ["AUTHOR", "COMMITTER"] {
        commit_tree.env(format!("GIT_{who}_NAME"), NAME).env(format!("GIT_{who}_EMAIL"), EMAIL);
        commit_tree.env(format!("GIT_{who}_DATE"), &date);
    }
    commit_tree.args([
        "-c",
        "commit.gpgSign=false",
        "commit-tree",
        &tree,
        "-p",
        &job.base,
        "-m",
        &job.message,
    ]);
    word(commit_tree, "git commit-tree").map_err(on("make the commit"))
}

/// Pushes the commit, and only forwards: a branch that went on is left as it is.
fn push(job: &PublishJob, git_dir: &Path, commit: &str, port: u16) -> Result<(), PublishFault> {
    let url = format!("http://127.0.0.1:{port}{}/{}", gateway::GIT, job.repository);
    let mut command = pristine_git::command(&Git::in_tool(&job.git.0), git_dir);
    for setting in [
        "protocol.allow=never",
        "protocol.http.allow=always",
        "http.followRedirects=false",
        "http.proxy=",
        "credential.helper=",
        "push.followTags=false",
        "push.gpgSign=false",
    ] {
        command.args(["-c", setting]);
    }
    command.args(["push", "--porcelain", "--no-verify", "--no-progress", "--recurse-submodules=no", "--"]);
    command.arg(url).arg(format!("{commit}:{}", job.reference));
    let ended = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output();
    let ended = ended.map_err(|source| PublishFault::Io { action: "start git", source })?;
    if ended.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&ended.stdout);
    if let Some(rejected) = printed.lines().find_map(|line| line.strip_prefix("!\t")) {
        let why = rejected.rsplit('\t').next().unwrap_or_default();
        return Err(PublishFault::Rejected(format!("the repository did not take {}: {why}", job.reference)));
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let said: String = said.trim().chars().take(MAX_SAID).collect();
    Err(PublishFault::Push(if said.is_empty() { ended.status.to_string() } else { said }))
}

/// Written under another name first: a half-written answer must not look like one.
fn answer(job: &PublishJob, commit: &str, is_pushed: bool) -> io::Result<()> {
    let answer = PublishAnswer { commit: commit.to_owned(), is_pushed };
    let partial = job.scratch.0.join("published.partial");
    fs::write(&partial, serde_json::to_vec(&answer).map_err(io::Error::from)?)?;
    fs::rename(partial, job.scratch.0.join(PublishJob::ANSWER))
}
