//! Attempts and backends, side by side.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cofferdam_attacks::ATTEMPTS;
use serde_json::{Map, Value, json};

use super::verdict::{Row, Verdict};

/// What became of every attempt on every backend.
#[derive(Default)]
pub struct Table {
    columns: Vec<(&'static str, Column)>,
}

enum Column {
    Judged(Verdict),
    /// Why this backend could not be attacked here.
    Absent(&'static str),
}

impl Table {
    /// Adds a backend that was attacked.
    pub fn judged(&mut self, backend: &'static str, verdict: Verdict) {
        self.columns.push((backend, Column::Judged(verdict)));
    }

    /// Adds a backend that this machine does not have.
    pub fn absent(&mut self, backend: &'static str, why: &'static str) {
        self.columns.push((backend, Column::Absent(why)));
    }

    /// What was not as it must be, on any backend.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let judged = self.columns.iter().filter_map(|(backend, column)| match column {
            Column::Judged(verdict) => Some((backend, verdict)),
            Column::Absent(_) => None,
        });
        judged
            .flat_map(|(backend, verdict)| {
                verdict.complaints.iter().map(move |why| format!("{backend}: {why}"))
            })
            .collect()
    }

    /// For people: a row for each attempt, a column for each backend; what stopped it, and how.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{:<30}", "attempt");
        for (backend, _) in &self.columns {
            let _ = write!(text, " {backend:<30}");
        }
        for attempt in names() {
            let _ = write!(text, "\n{attempt:<30}");
            for (_, column) in &self.columns {
                let cell = match column {
                    Column::Judged(verdict) => row(verdict, attempt).map_or("-".to_owned(), Row::cell),
                    Column::Absent(why) => format!("SKIPPED: {why}"),
                };
                let _ = write!(text, " {cell:<30}");
            }
        }
        text
    }

    /// The same for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let attempt = |name: &str| {
            let cells: Map<String, Value> = self
                .columns
                .iter()
                .map(|(backend, column)| ((*backend).to_owned(), cell(column, name)))
                .collect();
            json!({ "attempt": name, "backends": cells })
        };
        json!({
            "backends": self.columns.iter().map(|(backend, _)| *backend).collect::<Vec<_>>(),
            "attempts": names().map(attempt).collect::<Vec<_>>(),
            "complaints": self.complaints(),
        })
    }

    /// Writes the JSON into `target/`, or into the temporary folder where that is not ours. Returns where.
    ///
    /// # Panics
    /// If it can be written to neither.
    #[must_use]
    pub fn write(&self, name: &str) -> PathBuf {
        let text = serde_json::to_vec_pretty(&self.json()).expect("a table is plain data");
        let target: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
        let temporary = std::env::temp_dir().join(format!("cofferdam-{}", std::process::id()));
        let places = [target.join(name), temporary.with_extension(name)];
        let written = places.into_iter().find(|path| std::fs::write(path, &text).is_ok());
        written.expect("one of the two can be written")
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    ATTEMPTS.iter().copied().flatten().map(|attempt| attempt.name)
}

fn row<'a>(verdict: &'a Verdict, attempt: &str) -> Option<&'a Row> {
    verdict.rows.iter().find(|row| row.report.name == attempt)
}

fn cell(column: &Column, attempt: &str) -> Value {
    match column {
        Column::Judged(verdict) => row(verdict, attempt).map_or(Value::Null, |row| {
            json!({
                "wall": row.wall,
                "result": row.report.result,
                "errno": row.report.errno,
                "detail": row.report.detail,
                "stopped": row.judged.is_ok(),
                "skipped": row.skipped,
            })
        }),
        Column::Absent(why) => json!({ "skipped": why }),
    }
}
