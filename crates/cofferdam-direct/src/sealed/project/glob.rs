//! Listing files by a pattern of their names.

use std::path::PathBuf;

use globset::GlobBuilder;
use serde::{Deserialize, Serialize};

use super::Project;
use super::walk::{Next, Walked, list};

/// Files that are listed.
const MOST: usize = 200;

/// Which files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GlobJob {
    /// The pattern, such as `**/*.rs`, from the folder on.
    pub pattern: String,
    /// The folder; the root without one.
    pub path: Option<String>,
}

/// The files, in the order of their names.
pub(in crate::sealed) fn glob(project: &Project, job: &GlobJob) -> Result<String, String> {
    let pattern = GlobBuilder::new(&job.pattern).literal_separator(true).build();
    let pattern = pattern.map_err(|error| format!("the pattern is wrong: {error}"))?.compile_matcher();
    let folder = project.start(job.path.as_deref())?;
    let mut found: Vec<PathBuf> = Vec::new();
    let walked = project.each(&folder, |file| {
        let below = file.strip_prefix(&folder).unwrap_or(file);
        if pattern.is_match(below) {
            found.push(file.to_owned());
        }
        if found.len() > MOST { Next::Stop } else { Next::Go }
    })?;
    let has_more = found.len() > MOST;
    found.truncate(MOST);
    let mut text = list(&found);
    match (has_more, walked, found.is_empty()) {
        (true, _, _) => text.push_str("(there are more; use a narrower pattern)\n"),
        (false, Walked::Part, _) => {
            text.push_str("(the project is too large to be looked at whole; name a folder)\n");
        }
        (false, Walked::Whole, true) => text.push_str("No files found\n"),
        (false, Walked::Whole, false) => {}
    }
    Ok(text)
}
