//! What a benchmark found, against what it should have.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::table;

/// A number with its bound.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) is: f64,
    pub(crate) bound: Bound,
}

/// What a number should be.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// Whatever it is: it explains the others.
    Free,
}

impl Target {
    pub(crate) fn is_missed(&self) -> bool {
        match self.bound {
            Bound::AtMost(most) => self.is > most,
            Bound::AtLeast(least) => self.is < least,
            Bound::Free => false,
        }
    }

    fn row(&self) -> Vec<String> {
        let (bound, verdict) = match (self.bound, self.is_missed()) {
            (Bound::AtMost(most), missed) => (format!("<= {most:.2}"), if missed { "MISSED" } else { "met" }),
            (Bound::AtLeast(least), missed) => {
                (format!(">= {least:.2}"), if missed { "MISSED" } else { "met" })
            }
            (Bound::Free, _) => (String::new(), ""),
        };
        vec![self.name.clone(), format!("{:.2}", self.is), bound, verdict.to_owned()]
    }

    fn json(&self) -> Value {
        let (at_most, at_least) = match self.bound {
            Bound::AtMost(most) => (Some(most), None),
            Bound::AtLeast(least) => (None, Some(least)),
            Bound::Free => (None, None),
        };
        json!({
            "name": self.name, "is": self.is, "at_most": at_most, "at_least": at_least, "missed": self.is_missed(),
        })
    }
}

/// Prints the targets as a table, and writes them as JSON with the details of this benchmark.
pub(crate) fn tell(bench: &str, targets: &[Target], details: &Value, output: &Path) -> anyhow::Result<()> {
    let heading = ["", "is", "target", ""].map(String::from).to_vec();
    let rows: Vec<_> = std::iter::once(heading).chain(targets.iter().map(Target::row)).collect();
    print!("{}", table::render(&rows));
    let content = json!({
        "bench": bench,
        "kernel": rustix::system::uname().release().to_string_lossy(),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "targets": targets.iter().map(Target::json).collect::<Vec<_>>(),
        "details": details,
    });
    if let Some(folder) = output.parent() {
        fs::create_dir_all(folder)?;
    }
    let text = serde_json::to_string_pretty(&content)? + "\n";
    fs::write(output, text).with_context(|| format!("failed to write {}", output.display()))?;
    eprintln!("written to {}", output.display());
    Ok(())
}
