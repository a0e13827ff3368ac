//! Where the agents' CLIs keep their logins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cofferdam_agent::{LoginFile, profile};
use cofferdam_core::Agent;

/// The files that logins may be in; the first with a usable credential counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginPlaces {
    files: BTreeMap<Agent, Vec<PathBuf>>,
}

impl LoginPlaces {
    /// The usual places below a home, and what variables say instead. `var` gives absolute paths.
    #[must_use]
    pub fn of(home: Option<&Path>, var: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let place = |file: &LoginFile| {
            let set = file.variables.iter().find_map(|name| var(name));
            Some(set.or_else(|| Some(home?.join(file.folder)))?.join(file.name))
        };
        let files = |agent| {
            let mut files: Vec<PathBuf> = profile(agent).login.files.iter().filter_map(place).collect();
            files.dedup();
            (agent, files)
        };
        Self { files: Agent::ALL.into_iter().map(files).collect() }
    }

    /// The files of an agent.
    #[must_use]
    pub fn files(&self, agent: Agent) -> &[PathBuf] {
        self.files.get(&agent).map_or(&[], Vec::as_slice)
    }
}
