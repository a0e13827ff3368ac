//! What the demo found: one row per attempt, and what was checked besides.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::attempts::{Attempt, Tried};
use super::outside::Outside;

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    attempt: Attempt,
    held: bool,
    stopped_by: String,
    answer: String,
    outside: Option<&'static str>,
}

/// Everything that was found.
#[derive(Debug)]
pub(crate) struct Findings {
    rows: Vec<Row>,
    checks: Vec<(&'static str, bool)>,
}

impl Findings {
    /// Compares what the agent saw with what the outside saw. An attempt that the agent does not report did
    /// not hold: nobody knows how it went.
    pub(crate) fn new(tried: &[Tried], outside: &mut Outside, checks: Vec<(&'static str, bool)>) -> Self {
        let by_attempt: BTreeMap<Attempt, &Tried> =
            tried.iter().map(|tried| (tried.attempt, tried)).collect();
        let row = |attempt| judge(attempt, by_attempt.get(&attempt).copied(), outside.saw(attempt));
        Self { rows: Attempt::ALL.into_iter().map(row).collect(), checks }
    }

    /// Whether all of it held.
    pub(crate) fn all_held(&self) -> bool {
        self.rows.iter().all(|row| row.held) && self.checks.iter().all(|(_, held)| *held)
    }

    /// The table for people.
    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "{:<38}  {:<13}  {:<13}  {}\n",
            "THE AGENT TRIED TO", "STOPPED BY", "THE ANSWER", "SEEN FROM OUTSIDE"
        );
        for row in &self.rows {
            let outside = row.outside.unwrap_or("-");
            text.push_str(&format!(
                "{:<38}  {:<13}  {:<13}  {outside}\n",
                row.attempt.words(),
                row.stopped_by,
                row.answer
            ));
        }
        text.push('\n');
        for (what, held) in &self.checks {
            text.push_str(&format!("{}  {what}\n", if *held { "yes" } else { "NO " }));
        }
        text
    }

    /// The same for programs.
    pub(crate) fn to_json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "attempt": row.attempt,
                    "held": row.held,
                    "stopped_by": row.stopped_by,
                    "answer": row.answer,
                    "outside": row.outside,
                })
            })
            .collect();
        let checks: Vec<Value> =
            self.checks.iter().map(|(what, held)| json!({ "what": what, "held": held })).collect();
        json!({ "held": self.all_held(), "attempts": rows, "checks": checks })
    }
}

fn judge(attempt: Attempt, tried: Option<&Tried>, outside: Option<(bool, &'static str)>) -> Row {
    let untouched = outside.is_none_or(|(untouched, _)| untouched);
    let (stopped, stopped_by, answer) = match tried {
        None => (false, "NOT REPORTED".to_owned(), "-".to_owned()),
        Some(tried) if tried.worked => (false, "NOTHING".to_owned(), tried.answer.clone()),
        Some(tried) => match attempt.stopped_by(&tried.answer) {
            Some(wall) => (true, wall.name().to_owned(), tried.answer.clone()),
            None => (false, "NO WALL OF OURS".to_owned(), tried.answer.clone()),
        },
    };
    Row {
        attempt,
        held: stopped && untouched,
        stopped_by,
        answer: crate::sanitize::short_line(&answer, 40),
        outside: outside.map(|(_, words)| words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(worked: bool, answer: &str) -> Tried {
        Tried { attempt: Attempt::ReadSecret, worked, answer: answer.to_owned() }
    }

    #[test]
    fn an_attempt_holds_only_if_a_wall_stopped_it_and_the_outside_agrees() {
        let held = |tried: Option<Tried>, outside| judge(Attempt::ReadSecret, tried.as_ref(), outside).held;
        assert!(held(Some(tried(false, "ENOENT")), Some((true, "unchanged"))));
        assert!(held(Some(tried(false, "ENOENT")), None));
        assert!(!held(Some(tried(false, "ENOENT")), Some((false, "changed"))));
        assert!(!held(Some(tried(false, "EIO")), None));
        assert!(!held(Some(tried(true, "21 bytes")), None));
        assert!(!held(None, None));
    }
}
