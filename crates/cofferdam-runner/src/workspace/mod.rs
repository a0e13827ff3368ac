//! Makes the workspace of an attempt from a local repository, a git address or nothing.
//!
//! [`prepare`] is the entrance. The original is never written: it is the lower layer of an overlay, or it
//! is copied. What is hidden from the agent (the mask, credentials in git's configuration) is hidden by a
//! layer of our own. [`Base`] is what the diff is taken against later, also by another process.
//!
//! A repository is hostile: its file names, its `.git` file, its configuration. Nothing here runs a
//! program that a repository names.

mod base;
mod checked_fetch;
mod checkout;
mod copy;
mod direct;
mod disk_use;
mod error;
mod fetching_git;
mod find;
mod follow_git;
mod git_config;
mod git_folders;
mod handover;
mod kept;
mod local;
mod manifest;
mod mask;
mod mirror;
mod origin;
mod owner;
mod progress;
mod refs;
mod remove;
mod sealed_fetch;
mod survey;
mod target;
mod unfolded;
mod veil;
mod view;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use cofferdam_broker::GitCredential;
use cofferdam_core::{BranchName, Policy, SandboxId, Source, inside};
use cofferdam_sandbox::{Companion, Workspace};
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::raw_path::RawPath;

use self::refs::Asked;
use self::sealed_fetch::SealedFetch;

pub use base::Base;
pub use checked_fetch::CheckedFetch;
pub use direct::check_direct;
pub use error::{Error, FetchFault};
pub use find::find_repository;
pub use handover::Handover;
pub use kept::{Cleared, Keep, clear};
pub(crate) use manifest::Manifest;
pub(crate) use mask::Matcher;
pub use origin::origin;
pub(crate) use owner::RepositoryOwner;
pub use progress::Progress;
pub use remove::remove;
pub use sealed_fetch::fetcher_main;
pub(crate) use survey::masked_paths;
pub use target::check_target;

/// A workspace that is ready for a sandbox.
#[derive(Debug)]
pub struct Prepared {
    /// What the agent works on.
    pub workspace: Workspace,
    /// Folders beside it that are written through overlays of their own.
    pub companions: Vec<Companion>,
    /// Folders that must be visible at their own paths.
    pub read_only: Vec<PathBuf>,
    /// Where the workspace is on the host.
    pub alias: Option<PathBuf>,
    /// Where it is inside.
    pub target: PathBuf,
    /// Files that are hidden from the agent.
    pub hidden: Vec<String>,
    /// Credentials that were taken out of git's configuration: file and key.
    pub stripped: Vec<String>,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// What the diff is taken against.
    pub base: Base,
    /// The commit that it was made from, if it was fetched.
    pub checked_out: Option<CheckedOut>,
}

impl Prepared {
    fn new(workspace: Workspace, base: Base) -> Self {
        Self {
            workspace,
            companions: Vec::new(),
            read_only: Vec::new(),
            alias: None,
            target: inside::WORKSPACE.into(),
            hidden: Vec::new(),
            stripped: Vec::new(),
            warnings: Vec::new(),
            base,
            checked_out: None,
        }
    }
}

/// Every sandbox that has a workspace.
///
/// # Errors
/// If the state folder cannot be read.
pub fn list(home: &Home) -> Result<Vec<SandboxId>, Error> {
    let folder = home.workspaces();
    let entries = fs::read_dir(&folder).map_err(|error| Error::reading(&folder, error))?;
    let names = entries.flatten().map(|entry| entry.file_name());
    Ok(names.filter_map(|name| name.to_str()?.parse().ok()).collect())
}

/// How the original is kept apart from what the agent writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layering {
    /// As the lower layer of an overlay, unless it is known that this cannot work.
    Overlay,
    /// As a copy: an overlay was tried, and the kernel refused it.
    Copy,
    /// Not at all: the agent works in the folder itself. Only a local path can be worked in.
    Direct,
}

/// What is known of a git address besides the address.
#[derive(Clone, Copy, Default)]
pub struct Remote<'a> {
    /// What opens it, if its host asks.
    pub credential: Option<&'a GitCredential>,
    /// The branch to work on if it is there, where the source names no other.
    pub branch: Option<&'a BranchName>,
    /// How it is fetched for somebody who is not the user of this machine; `None` for that user.
    pub checked: Option<&'a CheckedFetch>,
}

/// The commit that a workspace was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedOut {
    /// Its name.
    pub commit: String,
    /// The folder of objects that has it with its whole history.
    pub objects: RawPath,
}

/// Prepares the workspace of a sandbox. Left-overs of an earlier try for the same sandbox are removed.
///
/// # Errors
/// [`Error`]; nothing is left behind then.
pub fn prepare(
    home: &Home,
    id: &SandboxId,
    source: &Source,
    policy: &Policy,
    layering: Layering,
    remote: Remote<'_>,
    progress: &mut Progress<'_>,
) -> Result<Prepared, Error> {
    remove(home, id)?;
    let own = home.workspaces().join(id.to_string());
    make_folder(&own)?;
    let prepared = match source {
        Source::Empty => prepare_empty(&own),
        Source::Local { path } if layering == Layering::Direct => direct::prepare_direct(&own, path, policy),
        Source::Local { path } => local::prepare_local(home, &own, path, policy, layering, progress)
            .map(|prepared| Prepared { target: target::of(policy, path), ..prepared }),
        Source::Git { url, reference } => {
            let asked = Asked { reference: reference.as_deref(), branch: remote.branch };
            let made = match (remote.checked, url.https_host()) {
                (Some(checked), Some(host)) => {
                    let fetch = SealedFetch { home, own: &own, id, url, host, asked, remote, checked };
                    fetch.checkout(progress)
                }
                (_, _) => checkout::checkout(home, &own, url, asked, remote, progress),
            };
            made.and_then(|(root, from)| {
                let prepared = local::prepare_local(home, &own, &root, policy, layering, progress)?;
                // Nothing was ever built at the checkout's path, so nothing can refer to it.
                Ok(Prepared { alias: None, checked_out: Some(from), ..prepared })
            })
        }
    };
    let prepared = prepared.and_then(|prepared| Handover::of(&prepared).store(&own).map(|()| prepared));
    if prepared.is_err() {
        // The first error is the one to tell.
        let _ = remove(home, id);
    }
    prepared
}

fn prepare_empty(own: &Path) -> Result<Prepared, Error> {
    let (tree, base) = (own.join("tree"), own.join("base"));
    make_folder(&tree)?;
    make_folder(&base)?;
    let base = Base {
        layers: vec![RawPath(base)],
        manifest: None,
        index: None,
        exclude: None,
        handed_over_ns: base::now_ns(),
    };
    Ok(Prepared::new(Workspace::Folder { path: tree }, base))
}

fn make_folder(path: &Path) -> Result<(), Error> {
    fs::DirBuilder::new().mode(0o700).create(path).map_err(|error| Error::writing(path, error))
}
