//! What every backend is set up with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cofferdam_core::Mode;
use serde::{Deserialize, Serialize};

/// What every backend is set up with. What only one of them has is told to that one.
#[derive(Debug, Clone)]
pub struct Options {
    /// The state folder. Sandboxes are below it, and the record of the ids that they use.
    pub state: PathBuf,
    /// Our own binary.
    pub binary: PathBuf,
    /// Who starts the runs.
    pub caller: Caller,
    /// What is looked for in an image.
    pub agents: Vec<ImageAgent>,
    pub(crate) without: Without,
}

impl Options {
    /// Options with every wall.
    #[must_use]
    pub fn new(state: PathBuf, binary: PathBuf, caller: Caller) -> Self {
        Self { state, binary, caller, agents: Vec::new(), without: Without::default() }
    }

    /// The same, looking for these agents in an image.
    #[must_use]
    pub fn with_agents(self, agents: Vec<ImageAgent>) -> Self {
        Self { agents, ..self }
    }

    /// The same without these walls, to show that they would be missed.
    #[cfg(feature = "failpoints")]
    #[must_use]
    pub fn without(self, walls: Vec<String>) -> Self {
        Self { without: Without { walls }, ..self }
    }

    /// The folder of all sandboxes of a mode.
    pub(crate) fn sandboxes(&self, mode: Mode) -> PathBuf {
        self.state.join("sandboxes").join(mode.to_string())
    }
}

/// An agent that an image may have. A sandbox knows none by itself.
#[derive(Debug, Clone, Copy)]
pub struct ImageAgent {
    /// The name of its finding, and of its layer in our own image.
    pub name: &'static str,
    /// Its command.
    pub program: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Its package on npm.
    pub package: &'static str,
}

/// What a backend is told about the caller, whose environment only the binary reads.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The caller's home.
    pub home: Option<PathBuf>,
    /// The caller's PATH, as folders.
    pub path: Vec<PathBuf>,
    /// Variables that say nothing private and that programs work badly without, such as `LANG`.
    pub locale: BTreeMap<String, String>,
}

/// Walls that a test takes away, to see whether the seal notices. There are none in a release.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "failpoints", serde(transparent))]
pub(crate) struct Without {
    #[cfg(feature = "failpoints")]
    walls: Vec<String>,
}

impl Without {
    /// Whether this wall is left out.
    pub(crate) fn has(&self, wall: &str) -> bool {
        #[cfg(feature = "failpoints")]
        return self.walls.iter().any(|name| name == wall);
        #[cfg(not(feature = "failpoints"))]
        {
            let _ = wall;
            false
        }
    }
}
