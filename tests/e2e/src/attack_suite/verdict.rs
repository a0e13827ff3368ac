//! What became of each attempt.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cofferdam_attacks::{ATTEMPTS, Ending, Report, find};
use serde_json::json;

/// Every attempt, judged.
pub struct Verdict {
    rows: Vec<Row>,
    /// What was not as it must be; empty is a sealed sandbox.
    pub complaints: Vec<String>,
}

struct Row {
    report: Report,
    judged: Result<(), String>,
    skipped: Option<&'static str>,
}

impl Verdict {
    /// Judges the reports. `skipped` names attempts that could not be set up, with the reason; `exact` the
    /// one error that counts where an attempt itself allows several.
    #[must_use]
    pub fn of(
        reports: &[Report],
        skipped: &BTreeMap<&'static str, &'static str>,
        exact: &[(&'static str, &'static str)],
    ) -> Self {
        let mut rows = Vec::new();
        let mut complaints = Vec::new();
        for attempt in ATTEMPTS.iter().copied().flatten() {
            let mut own = reports.iter().filter(|report| report.name == attempt.name);
            let (Some(report), None) = (own.next(), own.next()) else {
                complaints.push(format!("{}: not reported exactly once", attempt.name));
                continue;
            };
            let skipped = skipped.get(attempt.name).copied();
            let judged = if skipped.is_some() {
                Ok(())
            } else {
                attempt.judge(report).and_then(|()| judge_exactly(report, exact))
            };
            complaints.extend(judged.clone().err());
            rows.push(Row { report: report.clone(), judged, skipped });
        }
        let unknown = reports.iter().filter(|report| find(&report.name).is_none());
        complaints.extend(unknown.map(|report| format!("{}: no such attempt", report.name)));
        Self { rows, complaints }
    }

    /// Attempt, wall, error and verdict, for people.
    #[must_use]
    pub fn table(&self, backend: &str) -> String {
        let mut table = format!("{:<30} {:<18} {:<13} {backend}\n", "attempt", "wall", "error");
        for Row { report, judged, skipped } in &self.rows {
            let error = report.errno.as_deref().unwrap_or("-");
            let verdict = match (judged, skipped, report.result) {
                (Err(why), _, _) => format!("NOT STOPPED: {why}"),
                (Ok(()), Some(why), _) => format!("SKIPPED: {why}"),
                (Ok(()), None, Ending::NotPossible) => format!("nothing to attack: {}", report.detail),
                (Ok(()), None, _) => "stopped".to_owned(),
            };
            let _ = writeln!(table, "{:<30} {:<18} {error:<13} {verdict}", report.name, report.wall.name());
        }
        table
    }

    /// Writes the same as JSON into `target/`, or into the temporary folder where that is not ours.
    ///
    /// # Panics
    /// If it can be written to neither.
    pub fn write(&self, name: &str) {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| json!({ "report": row.report, "stopped": row.judged.is_ok(), "skipped": row.skipped }))
            .collect();
        let text = serde_json::to_vec_pretty(&json!({ "attempts": rows, "complaints": self.complaints }))
            .expect("a verdict is plain data");
        let target: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
        let temporary = std::env::temp_dir().join(format!("cofferdam-{}", std::process::id()));
        let places = [target.join(name), temporary.with_extension(name)];
        let written = places.iter().find(|path| std::fs::write(path, &text).is_ok());
        println!("written to {}", written.expect("one of the two can be written").display());
    }
}

fn judge_exactly(report: &Report, exact: &[(&'static str, &'static str)]) -> Result<(), String> {
    let wanted = exact.iter().find(|(name, _)| *name == report.name);
    match (wanted, report.result) {
        (Some((name, wanted)), Ending::Stopped) if report.errno.as_deref() != Some(wanted) => {
            Err(format!("{name}: stopped, but not with {wanted} as this backend does: {}", report.detail))
        }
        _ => Ok(()),
    }
}
