//! What the publisher is told, and what it answers.

use serde::{Deserialize, Serialize};

use crate::raw_path::RawPath;

/// What to commit and where to push it. The whole of the publisher's knowledge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishJob {
    /// The git program.
    pub git: RawPath,
    /// The commit that the workspace was made from.
    pub base: String,
    /// A folder of objects that has it.
    pub objects: RawPath,
    /// The changes, against that commit.
    pub patch: RawPath,
    /// What the commit says.
    pub message: String,
    /// When the run was accepted, in seconds since 1970: the commit's time, so that doing it again makes the same.
    pub at_secs: u64,
    /// The folder of the broker's socket.
    pub sockets: RawPath,
    /// The repository, below the broker's path for repositories: `host.example/owner/name`.
    pub repository: String,
    /// The reference that is pushed: `refs/heads/…`.
    pub reference: String,
    /// A folder of its own, for git and for the answer.
    pub scratch: RawPath,
}

impl PublishJob {
    /// Name of the answer in the scratch folder.
    pub const ANSWER: &'static str = "published.json";
    /// The exit status if the repository does not take the commit: its branch went on, or it has rules of its own.
    pub const REJECTED: u8 = 3;
}

/// What the publisher did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishAnswer {
    /// The commit.
    pub commit: String,
    /// Whether the branch is at it.
    pub is_pushed: bool,
}
