//! What reads the bytes of strangers: pages, and the files of a project. It runs as a role of the binary in a sealed process of
//! its own for each call, which may panic, hang or be turned against us without harm; [`sealed_main`] is that role.
//!
//! Outside is [`SealedTools`], which starts it. The two meet in a [`Job`] and its answer, an [`Answer`].

mod limits;
mod page;
mod project;
mod role;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use page::{Page, PageJob};
pub use project::{GlobJob, GrepJob, GrepOutput, ReadJob};
pub use role::{sealed_main, work};

/// Starts sealed processes.
#[async_trait]
pub trait SealedTools: Send + Sync {
    /// An empty file for what a process is to read, such as the body of a page. It is gone when it is dropped.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be made.
    fn new_input(&self) -> Result<Input, Fault>;

    /// Has one job done in a process of its own. Dropping the future ends the process.
    ///
    /// # Errors
    /// [`Fault`] if the process could not be started, or ended without an answer.
    async fn run(&self, job: Job, input: Option<Input>) -> Result<Answer, Fault>;
}

/// A file of the attempt's that a sealed process reads.
#[derive(Debug)]
pub struct Input {
    folder: PathBuf,
}

impl Input {
    /// The name of the file in its folder, which is the folder that the process sees.
    pub const FILE: &'static str = "input";

    /// An input in this folder, which is new, and goes with it.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.folder.join(Self::FILE)
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // What is left goes with the attempt.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What a sealed process is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "snake_case")]
pub enum Job {
    /// Turn the input, which a server sent, into text.
    Page(PageJob),
    /// Read a file of the project.
    Read(ReadJob),
    /// Search the project's files.
    Grep(GrepJob),
    /// List the project's files by their names.
    Glob(GlobJob),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// A page.
    Page(Page),
    /// A text for the model.
    Text {
        /// The text.
        text: String,
    },
    /// It cannot be done, for a reason that the model is told.
    Refused {
        /// Why.
        reason: String,
    },
}

/// Why a sealed process gave no answer. The model is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);

/// Where a sealed process finds what it works on. All of it is made up by whoever starts it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SealedCall {
    /// What it is to do.
    #[serde(flatten)]
    pub job: Job,
    /// The input, if there is one.
    pub input: Option<PathBuf>,
    /// The project's root, if there is one.
    pub project: Option<PathBuf>,
    /// The folder that it answers in.
    pub out: PathBuf,
}

impl SealedCall {
    /// The role's name.
    pub const ROLE: &'static str = "sealed-tool";
    /// The file of the answer.
    pub const ANSWER: &'static str = "answer.json";
    /// The most memory that the process takes for itself.
    pub const MEMORY_BYTES: u64 = 1 << 30;
    /// How long it may take, which is also the most processor time that it gets.
    pub const SECONDS: u64 = 15;
    /// The longest answer.
    pub const ANSWER_BYTES: u64 = 4 << 20;
}
