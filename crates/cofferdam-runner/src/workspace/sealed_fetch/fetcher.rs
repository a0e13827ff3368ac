//! The fetcher: a role of our binary that fetches a stranger's repository and checks its commit out, in a sealed sandbox of its own.
//!
//! Whoever hosts the repository chooses every byte that git reads here. A git with a hole would be theirs; a pack of some
//! thousand bytes can be a file of gigabytes that git makes in memory. So it has the limits of a sandbox, sees nothing of the
//! node, and reaches one host.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use cofferdam_broker::GitCredential;

use super::job::{FetchJob, Fetched};
use crate::pristine_git;
use crate::programs::Git;
use crate::workspace::checkout::name_of;
use crate::workspace::fetching_git::foreign_git;
use crate::workspace::follow_git::run;
use crate::workspace::refs::{Asked, Bare, resolve};
use crate::workspace::unfolded::unfolds_within;
use crate::workspace::{Error, FetchFault, Progress};

/// The fetcher's role, with the job as JSON at stdin: a token may be in it, and arguments are everybody's to read. `open_gateway`
/// puts the socket of a folder on a port of the loopback, where git can reach it.
pub fn fetcher_main(open_gateway: impl FnOnce(&Path) -> io::Result<u16>) -> ExitCode {
    let job: FetchJob = match serde_json::from_reader(io::stdin()) {
        Ok(job) => job,
        Err(error) => {
            eprintln!("the fetcher's job is malformed: {error}");
            return ExitCode::FAILURE;
        }
    };
    let fetched = open_gateway(job.way.as_ref())
        .map_err(|error| Error::Io {
            action: "reach the host through",
            path: job.way.0.clone(),
            source: error,
        })
        .and_then(|port| fetch(&job, port));
    let answer = match fetched {
        Ok(fetched) => fetched,
        Err(Error::Fetch { fault, message, .. }) => Fetched::Failed { fault, message },
        Err(Error::DiskFull { .. }) => Fetched::DiskFull,
        Err(error) => {
            let message = cofferdam_core::with_causes(&error);
            Fetched::Failed { fault: FetchFault::Host, message }
        }
    };
    match write(&job, FetchJob::ANSWER, &serde_json::to_vec(&answer).unwrap_or_default()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the answer could not be written: {error}");
            ExitCode::FAILURE
        }
    }
}

fn fetch(job: &FetchJob, port: u16) -> Result<Fetched, Error> {
    let mut tell = |text: String| {
        // Nobody has to read it.
        let _ = write(job, FetchJob::SAID, text.as_bytes());
    };
    let mut progress = Progress::new(&mut tell, &|| false);
    let git = Git::in_tool(&job.git.0);
    let git_dir = job.scratch.0.join(FetchJob::GIT);
    let failed = |error: io::Error| Error::writing(&git_dir, error);
    // Whether its objects have the longer names has to be known before there is a repository to fetch into.
    let listed =
        ask(job, &git, port, &["ls-remote", "--symref", "--", job.url.as_str(), "HEAD"], &mut progress)?;
    let head = listed.lines().find_map(|line| line.strip_prefix("ref: ")?.strip_suffix("\tHEAD"));
    let is_sha256 = listed.lines().filter_map(|line| line.strip_suffix("\tHEAD")).any(|id| id.len() == 64);
    make_repository(job, &git_dir, is_sha256, head).map_err(failed)?;
    let path = git_dir.display().to_string();
    let arguments = [
        "--git-dir",
        &path,
        "fetch",
        "--progress",
        "--no-recurse-submodules",
        "--no-write-fetch-head",
        "--no-auto-maintenance",
        "--",
        job.url.as_str(),
        "+refs/*:refs/*",
    ];
    ask(job, &git, port, &arguments, &mut progress)?;
    let bare = Bare { git: &git, path: &git_dir };
    pristine_git::output(pristine_git::command(&git, &git_dir).args(["pack-refs", "--all"]), "git pack-refs")
        .map_err(failed)?;
    let asked = Asked { reference: job.reference.as_deref(), branch: job.branch.as_ref() };
    let resolved = match resolve(bare, asked) {
        Ok(resolved) => resolved,
        Err(near) => return Ok(Fetched::NotFound(near)),
    };
    let head = head.map(str::to_owned);
    if job.made.contains(&name_of(&resolved)) {
        return Ok(Fetched::Commit { resolved, head, has_tree: false });
    }
    if !unfolds_within(bare, &resolved.commit, job.most_bytes).map_err(failed)? {
        return Ok(Fetched::TooLarge);
    }
    progress.tell(format!("checking out {}", &resolved.commit[..12.min(resolved.commit.len())]));
    check_out(job, &git, &git_dir, &resolved.commit).map_err(failed)?;
    Ok(Fetched::Commit { resolved, head, has_tree: true })
}

/// Runs git on what the host says, and returns what it printed.
fn ask(
    job: &FetchJob,
    git: &Git,
    port: u16,
    arguments: &[&str],
    progress: &mut Progress<'_>,
) -> Result<String, Error> {
    let credential = job
        .credential
        .as_ref()
        .map(|(user, token)| GitCredential { user: user.clone(), token: token.clone() });
    let mut command = foreign_git(git, &job.url, credential.as_ref());
    command.env("https_proxy", format!("http://127.0.0.1:{port}"));
    command.envs(job.authorities.iter().map(|(name, path)| (name, &path.0)));
    for setting in ["protocol.ssh.allow=never", "protocol.git.allow=never", "http.followRedirects=initial"] {
        command.args(["-c", setting]);
    }
    command.args(arguments);
    // How much it writes is measured from outside.
    run(command, &job.url, job.scratch.as_ref(), &|| Ok(()), progress)
}

/// An empty repository, which borrows the objects that are here already.
fn make_repository(job: &FetchJob, git_dir: &Path, is_sha256: bool, head: Option<&str>) -> io::Result<()> {
    pristine_git::init(git_dir)?;
    fs::write(git_dir.join("config"), pristine_git::bare_config(is_sha256))?;
    if let Some(known) = &job.known {
        let known = [known.0.as_os_str().as_bytes(), b"\n"].concat();
        fs::write(git_dir.join("objects/info/alternates"), known)?;
    }
    head.map_or(Ok(()), |head| fs::write(git_dir.join("HEAD"), format!("ref: {head}\n")))
}

/// Writes a commit's files. No filter is defined: an attribute can name one and nothing runs.
fn check_out(job: &FetchJob, git: &Git, git_dir: &Path, commit: &str) -> io::Result<()> {
    let tree = job.scratch.0.join(FetchJob::TREE);
    fs::create_dir(&tree)?;
    let mut command = pristine_git::command(git, git_dir);
    command.env("GIT_WORK_TREE", &tree).env("GIT_INDEX_FILE", job.scratch.0.join(FetchJob::INDEX));
    command.current_dir(&tree).args(["read-tree", "--reset", "-u", commit]);
    pristine_git::output(&mut command, "git read-tree").map(drop)
}

/// Written under another name first: half of it must not look like the whole.
fn write(job: &FetchJob, name: &str, content: &[u8]) -> io::Result<()> {
    let (path, partial) = (job.scratch.0.join(name), job.scratch.0.join("partial"));
    fs::write(&partial, content)?;
    fs::rename(partial, path)
}
