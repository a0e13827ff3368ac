//! Fuzzers of everything that reads what strangers write: each target takes any bytes and panics if a promise
//! does not hold.
//!
//! There are two drivers of the same targets. `./dev fuzz` runs libFuzzer, which is guided by coverage
//! (`main.rs`); the tests take the seeds and change them at random a fixed number of times ([`mutate`]).

pub mod mutate;
mod pieces;
mod targets;

use std::path::{Path, PathBuf};

/// Something that is fed with any bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, also that of its folder of seeds and its file of words.
    pub name: &'static str,
    /// Reads the bytes, and panics if a promise does not hold.
    pub feed: fn(&[u8]),
}

/// Every target.
pub const TARGETS: [Target; 11] = [
    Target { name: "host_parser", feed: targets::host_parser::feed },
    Target { name: "broker_head", feed: targets::broker_head::feed },
    Target { name: "model_request", feed: targets::model_request::feed },
    Target { name: "meter", feed: targets::meter::feed },
    Target { name: "git_push", feed: targets::git_push::feed },
    Target { name: "worker_protocol", feed: targets::worker_protocol::feed },
    Target { name: "claude_code", feed: targets::adapter::feed_claude_code },
    Target { name: "codex", feed: targets::adapter::feed_codex },
    Target { name: "opencode", feed: targets::adapter::feed_opencode },
    Target { name: "redactor", feed: targets::redactor::feed },
    Target { name: "container_values", feed: targets::container_values::feed },
];

impl Target {
    /// The target of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }

    /// The folder of its seeds: inputs that get far.
    #[must_use]
    pub fn seeds(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(self.name)
    }

    /// The words of its language, in libFuzzer's form: one in quotes on each line.
    #[must_use]
    pub fn words(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("words").join(self.name).with_extension("dict")
    }
}
