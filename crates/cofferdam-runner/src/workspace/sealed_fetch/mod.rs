//! Fetching for somebody who is not the user of this machine: everything that a stranger's host says is read in a sealed sandbox,
//! by the [`fetcher`], and only packs, names of references and a tree come out of it.

mod fetcher;
mod job;
mod keep;
mod tunnel;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use cofferdam_core::{HostPort, Limits, Policy, RepoUrl, SandboxId};
use cofferdam_sandbox::{Tool, ToolAccess, ToolFolder, ToolOutput, ToolSource, ToolSystem, remove_tree};
use tokio::time::{Instant, sleep};

use self::job::{FetchJob, Fetched};
use self::tunnel::Tunnel;
use super::checked_fetch::CheckedFetch;
use super::checkout::{in_use, make_git_folder, not_found, place_of, put};
use super::disk_use::bytes_of;
use super::follow_git::{CHECK_EVERY, DEADLINE, MEASURE_EVERY};
use super::mirror::Mirror;
use super::refs::{Asked, Resolved};
use super::{CheckedOut, Error, FetchFault, Progress, Remote};
use crate::confined::ConfinedFolder;
use crate::home::Home;
use crate::raw_path::RawPath;

pub use self::fetcher::fetcher_main;

/// Memory that git may use: it holds the largest file that came as a difference to another one.
const MEMORY: u64 = 2 << 30;
/// What names the authorities that git trusts.
const AUTHORITIES: [&str; 4] = ["SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"];
/// The longest answer, and the longest word of what is going on.
const MOST_ANSWER: u64 = 1 << 20;
const MOST_SAID: u64 = 4 << 10;

/// One fetch.
pub(super) struct SealedFetch<'a> {
    pub(super) home: &'a Home,
    /// The workspace's own folder, and the sandbox that is to have it.
    pub(super) own: &'a Path,
    pub(super) id: &'a SandboxId,
    pub(super) url: &'a RepoUrl,
    pub(super) host: HostPort,
    pub(super) asked: Asked<'a>,
    pub(super) remote: Remote<'a>,
    pub(super) checked: &'a CheckedFetch,
}

impl SealedFetch<'_> {
    /// Fetches the repository and checks out what was asked for, or finds it checked out.
    pub(super) fn checkout(&self, progress: &mut Progress<'_>) -> Result<(PathBuf, CheckedOut), Error> {
        let mirror = Mirror::lock(self.home, self.url, self.remote, progress)?;
        // A full commit that is checked out needs no network.
        if let Some(commit) = self.asked.reference.filter(|name| keep::is_object(name)) {
            let resolved = Resolved { commit: commit.to_owned(), branch: None };
            let path = place_of(self.home, &mirror, &resolved)?;
            if path.exists() && mirror.path().exists() {
                return in_use(self.own, &mirror, path, &resolved);
            }
        }
        let scratch = self.own.join("fetch");
        let fetched = self.fetch(&mirror, &scratch, progress).and_then(|fetched| match fetched {
            Fetched::Commit { resolved, head, has_tree } => match keep::checked(resolved, head) {
                Some(found) => self.take(&mirror, &scratch, &found, has_tree),
                None => Err(self.failed(FetchFault::Host, "git has found no commit".to_owned())),
            },
            Fetched::NotFound(near) => Err(not_found(self.url, self.asked, keep::names(near))),
            Fetched::TooLarge => Err(self.checked.too_large(self.url)),
            Fetched::DiskFull => Err(Error::DiskFull { path: scratch.clone() }),
            Fetched::Failed { fault, message } => Err(self.failed(fault, message)),
        });
        // The first error is the one to tell; what stays goes with the workspace.
        let _ = remove_tree(&scratch);
        fetched
    }

    fn failed(&self, fault: FetchFault, message: String) -> Error {
        Error::Fetch { url: self.url.to_string(), fault, message }
    }

    /// Has the fetcher do it.
    fn fetch(&self, mirror: &Mirror, scratch: &Path, progress: &mut Progress<'_>) -> Result<Fetched, Error> {
        let writing = |error: io::Error| Error::writing(scratch, error);
        let way = self.own.join("fetch-way");
        for folder in [scratch, &way] {
            remove_tree(folder).map_err(writing)?;
        }
        DirBuilder::new().mode(0o700).create(scratch).map_err(writing)?;
        let tunnel = Tunnel::open(self.checked, self.host.clone(), &way).map_err(writing)?;
        let tool = self.tool(mirror, scratch, &way).map_err(writing)?;
        let output = self.run(&tool, mirror, scratch, progress)?;
        // What the tunnel saw is the cause of what git says.
        if let Some((fault, message)) = tunnel.trouble() {
            return Err(self.failed(fault, message));
        }
        let answer = ConfinedFolder::open(scratch)
            .and_then(|scratch| scratch.read_small(Path::new(FetchJob::ANSWER), MOST_ANSWER))
            .map_err(writing)?;
        match answer.and_then(|answer| serde_json::from_slice(&answer).ok()) {
            Some(fetched) => Ok(fetched),
            None => {
                let why = match output.message.as_str() {
                    "" => format!("git did not get to its end within {} MiB of memory", MEMORY >> 20),
                    said => said.to_owned(),
                };
                Err(self.failed(FetchFault::Address, why))
            }
        }
    }

    fn tool(&self, mirror: &Mirror, scratch: &Path, way: &Path) -> io::Result<Tool> {
        let tools = &self.checked.tools;
        let mut folders = Vec::new();
        let mut show = |name: &str, path: &Path, access: ToolAccess| {
            let folder =
                ToolFolder { name: name.to_owned(), source: ToolSource::Node(path.to_owned()), access };
            let shown = RawPath(tools.path(&folder));
            folders.push(folder);
            shown
        };
        let mut authorities = BTreeMap::new();
        for name in AUTHORITIES {
            let path = std::env::var_os(name).and_then(|path| PathBuf::from(path).canonicalize().ok());
            if let Some(path) = path {
                authorities.insert(name.to_owned(), show(name, &path, ToolAccess::ReadCaller));
            }
        }
        let objects = mirror.path().join("objects");
        let known = objects.exists().then(|| show("known", &objects, ToolAccess::ReadCaller));
        let job = FetchJob {
            git: self.checked.git.as_path().into(),
            url: self.url.clone(),
            reference: self.asked.reference.map(str::to_owned),
            branch: self.asked.branch.cloned(),
            credential: self.remote.credential.map(|found| (found.user.clone(), found.token.clone())),
            way: show("way", way, ToolAccess::Connect),
            authorities,
            known,
            made: names_in(&self.home.checkouts().join(&mirror.key))?,
            most_bytes: self.checked.most_bytes,
            scratch: show("scratch", scratch, ToolAccess::Write),
        };
        let limits = Limits { memory_bytes: MEMORY, ..Limits::default() };
        Ok(Tool {
            arguments: vec!["fetch-repository".to_owned()],
            input: serde_json::to_vec(&job)?,
            folders,
            system: ToolSystem::Programs,
            policy: Policy { limits, ..Policy::default() },
            deadline: DEADLINE,
        })
    }

    /// Runs it until it has ended, has had its time, has written too much, or nobody waits any more.
    fn run(
        &self,
        tool: &Tool,
        mirror: &Mirror,
        scratch: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<ToolOutput, Error> {
        let before = bytes_of(mirror.path());
        let mut ended = None;
        let until = async {
            let (mut told, mut measured) = (Vec::new(), Instant::now());
            loop {
                sleep(CHECK_EVERY).await;
                let in_size = if measured.elapsed() < MEASURE_EVERY {
                    Ok(())
                } else {
                    measured = Instant::now();
                    self.check_size(before, scratch)
                };
                if let Err(error) = in_size.and_then(|()| progress.check()) {
                    ended = Some(error);
                    return String::new();
                }
                let said = ConfinedFolder::open(scratch)
                    .and_then(|scratch| scratch.read_small(Path::new(FetchJob::SAID), MOST_SAID));
                if let Ok(Some(said)) = said
                    && said != told
                {
                    progress.tell(String::from_utf8_lossy(&said).trim().to_owned());
                    told = said;
                }
            }
        };
        let started = Instant::now();
        let output = self.checked.runtime.block_on(self.checked.tools.run(self.id, tool, until));
        match (ended, output) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(Error::Sealed(error)),
            (None, Ok(ToolOutput { code: None, .. })) if started.elapsed() >= DEADLINE => {
                Err(Error::FetchDeadline { url: self.url.to_string(), within: DEADLINE })
            }
            (None, Ok(output)) => self.check_size(before, scratch).map(|()| output),
        }
    }

    /// What is fetched, with what was here before, may be so large and no larger; and so may what is checked out of it, with as much
    /// again for what files and folders take beside what is in them.
    fn check_size(&self, before: u64, scratch: &Path) -> Result<(), Error> {
        let repository = before.saturating_add(bytes_of(&scratch.join(FetchJob::GIT)));
        let most = self.checked.most_bytes;
        match repository > most || bytes_of(scratch) > most.saturating_mul(3) {
            true => Err(self.checked.too_large(self.url)),
            false => Ok(()),
        }
    }

    /// Takes over what was fetched: the objects and references into the mirror, the tree as a checkout.
    fn take(
        &self,
        mirror: &Mirror,
        scratch: &Path,
        found: &keep::Checked,
        has_tree: bool,
    ) -> Result<(PathBuf, CheckedOut), Error> {
        let too_large = || self.checked.too_large(self.url);
        keep::into_mirror(mirror, scratch, found)
            .map_err(|error| Error::writing(mirror.path(), error))?
            .ok_or_else(too_large)?;
        let resolved = &found.resolved;
        let path = place_of(self.home, mirror, resolved)?;
        if has_tree && !path.exists() {
            put(&path, |partial| {
                fs::rename(scratch.join(FetchJob::TREE), partial)?;
                // A tree that git made has none.
                remove_tree(&partial.join(".git"))?;
                make_git_folder(mirror, &keep::branches_and_tags(mirror)?, self.url, resolved, partial)?;
                keep::file(scratch, FetchJob::INDEX, &partial.join(".git/index"))
            })?;
        }
        match path.exists() {
            true => in_use(self.own, mirror, path, resolved),
            false => Err(self.failed(FetchFault::Host, "git has not checked it out".to_owned())),
        }
    }
}

fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => Ok(entries?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()),
    }
}
