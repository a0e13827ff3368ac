//! What the fetcher is told, and what it answers.

use std::collections::BTreeMap;

use cofferdam_core::{BranchName, RepoUrl};
use serde::{Deserialize, Serialize};

use crate::raw_path::RawPath;
use crate::workspace::FetchFault;
use crate::workspace::refs::Resolved;

/// What to fetch, and what is there already. The whole of the fetcher's knowledge.
#[derive(Serialize, Deserialize)]
pub(super) struct FetchJob {
    /// The git program.
    pub(super) git: RawPath,
    /// The repository.
    pub(super) url: RepoUrl,
    /// The branch, tag or commit that is wanted.
    pub(super) reference: Option<String>,
    /// The branch that counts if it is there and no reference is given.
    pub(super) branch: Option<BranchName>,
    /// The user and the token that open the repository.
    pub(super) credential: Option<(String, String)>,
    /// The folder of the socket that leads to its host.
    pub(super) way: RawPath,
    /// Files and folders with the authorities that are trusted, by the variable that names them to git.
    pub(super) authorities: BTreeMap<String, RawPath>,
    /// A folder of objects that are here already.
    pub(super) known: Option<RawPath>,
    /// The names of the checkouts that are.
    pub(super) made: Vec<String>,
    /// What the commit may unfold to.
    pub(super) most_bytes: u64,
    /// A folder of its own, for what is fetched and for the answer.
    pub(super) scratch: RawPath,
}

impl FetchJob {
    /// Names in the scratch folder: of the answer, of what is going on, of the repository, of the checkout and its index.
    pub(super) const ANSWER: &'static str = "fetched.json";
    pub(super) const SAID: &'static str = "said";
    pub(super) const GIT: &'static str = "git";
    pub(super) const TREE: &'static str = "tree";
    pub(super) const INDEX: &'static str = "index";
}

/// What the fetcher found. It has read a stranger's bytes: none of it is believed because it says so.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Fetched {
    Commit {
        resolved: Resolved,
        /// The reference of the default branch.
        head: Option<String>,
        /// Whether the scratch folder has the checkout.
        has_tree: bool,
    },
    /// There is no such branch, tag or commit, but these.
    NotFound(Vec<String>),
    /// The commit unfolds to more than it may.
    TooLarge,
    DiskFull,
    /// Git failed, and said this.
    Failed {
        fault: FetchFault,
        message: String,
    },
}
