//! What became of each attempt.

use std::collections::BTreeMap;

use cofferdam_attacks::{ATTEMPTS, Ending, Report, find};
use cofferdam_core::Wall;

/// How a wall answers here, where an attempt leaves that open, or where another wall than usual stands first.
#[derive(Debug, Clone, Copy)]
pub struct Exact {
    /// The attempt.
    pub attempt: &'static str,
    /// What must stop it on this backend.
    pub wall: Wall,
    /// The name of the one error that counts.
    pub errno: &'static str,
}

/// Every attempt on one backend, judged.
pub struct Verdict {
    /// In the order of the attempts.
    pub rows: Vec<Row>,
    /// What was not as it must be; empty is a sealed sandbox.
    pub complaints: Vec<String>,
}

/// One attempt, judged.
pub struct Row {
    /// What the hostile program said.
    pub report: Report,
    /// The wall that had to stop it on this backend.
    pub wall: Wall,
    /// Whether it did, or what went wrong.
    pub judged: Result<(), String>,
    /// Why the attempt could not be set up.
    pub skipped: Option<&'static str>,
}

impl Verdict {
    /// Judges the reports. `skipped` names attempts that could not be set up, with the reason.
    #[must_use]
    pub fn of(reports: &[Report], skipped: &BTreeMap<&'static str, &'static str>, exact: &[Exact]) -> Self {
        let mut rows = Vec::new();
        let mut complaints = Vec::new();
        for attempt in ATTEMPTS.iter().copied().flatten() {
            let mut own = reports.iter().filter(|report| report.name == attempt.name);
            let (Some(report), None) = (own.next(), own.next()) else {
                complaints.push(format!("{}: not reported exactly once", attempt.name));
                continue;
            };
            let skipped = skipped.get(attempt.name).copied();
            let exact = exact.iter().find(|exact| exact.attempt == attempt.name);
            let judged = if skipped.is_some() {
                Ok(())
            } else {
                attempt.judge(report).and_then(|()| judge_exactly(report, exact))
            };
            complaints.extend(judged.clone().err());
            let wall = exact.map_or(attempt.wall, |exact| exact.wall);
            rows.push(Row { report: report.clone(), wall, judged, skipped });
        }
        let unknown = reports.iter().filter(|report| find(&report.name).is_none());
        complaints.extend(unknown.map(|report| format!("{}: no such attempt", report.name)));
        let without = exact.iter().filter(|exact| find(exact.attempt).is_none());
        complaints.extend(without.map(|exact| format!("{}: no such attempt", exact.attempt)));
        Self { rows, complaints }
    }
}

impl Row {
    /// For people: the wall and its answer, or what went wrong.
    #[must_use]
    pub fn cell(&self) -> String {
        match (&self.judged, self.skipped, self.report.result) {
            (Err(why), _, _) => format!("NOT STOPPED: {why}"),
            (Ok(()), Some(_), _) => "SKIPPED".to_owned(),
            (Ok(()), None, Ending::NotPossible) => "nothing to attack".to_owned(),
            (Ok(()), None, _) => {
                format!("{} ({})", self.wall.name(), self.report.errno.as_deref().unwrap_or("measured"))
            }
        }
    }
}

fn judge_exactly(report: &Report, exact: Option<&Exact>) -> Result<(), String> {
    match (exact, report.result) {
        (Some(Exact { attempt, errno, .. }), Ending::Stopped) if report.errno.as_deref() != Some(errno) => {
            Err(format!("{attempt}: stopped, but not with {errno} as this backend does: {}", report.detail))
        }
        _ => Ok(()),
    }
}
