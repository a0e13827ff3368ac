//! The gate after each phase: how much of what the phase is asked for its output has. The same output has the same score
//! everywhere, since it is reckoned in whole numbers and the order of lists makes no difference.
//!
//! Outputs are written by agents, so anything may be in them: each judgement takes time in proportion to the output, and
//! the reasons are few and short.

mod check;
mod must;
mod reasons;
mod special;
mod tables;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{GATE_TO_PASS, Phase};
use check::{Judged, WHOLE};
pub(super) use must::must_haves;
use reasons::{Path, Reasons};
pub(super) use tables::criteria;

/// What a gate says of a phase's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Gate {
    /// From 0 to 1.
    pub score: f64,
    /// Whether the next phase may start.
    pub passed: bool,
    /// What to do for each point that is missing, and for what does not pass whatever the score is. 40 at most, and the
    /// one or two that decide first.
    pub reasons: Vec<String>,
}

/// One thing that a phase is asked for.
#[derive(Debug)]
pub(super) struct Criterion {
    /// The field that it looks at.
    pub(super) field: &'static str,
    /// How much it counts, in percent.
    pub(super) weight: u32,
    /// What to write, in words that follow "you are asked to".
    pub(super) asks: &'static str,
    check: check::Check,
}

/// Judges the output of a phase, given those of the phases before it.
///
/// `implement` has no output to judge, so nothing passes as one.
#[must_use]
pub fn gate(phase: Phase, output: &Value, before: &BTreeMap<Phase, Value>) -> Gate {
    let mut reasons = Reasons::default();
    let judged = Judged::of(output, before);
    let holds = must_haves(phase).iter().filter(|must| !(must.holds)(&judged, &mut reasons)).count() == 0;
    let points = points(phase, &judged, &mut reasons);
    let score = f64::from(points) / f64::from(WHOLE);
    Gate { score, passed: holds && score >= GATE_TO_PASS, reasons: reasons.finish() }
}

/// The score in hundredths of a percent.
fn points(phase: Phase, judged: &Judged<'_>, reasons: &mut Reasons) -> u32 {
    let criteria = criteria(phase);
    let total: u32 = criteria.iter().map(|criterion| criterion.weight).sum();
    let earned = criteria.iter().map(|criterion| {
        let value = judged.output.get(criterion.field);
        let path = Path::Field(&Path::Output, criterion.field);
        let missing = value.is_none_or(Value::is_null);
        if missing {
            reasons.add(|| format!("`{}` is missing: {}", criterion.field, criterion.asks));
            // What an output does not have may count for a part all the same.
            return criterion.weight * criterion.check.of_missing();
        }
        criterion.weight * criterion.check.share(value, &path, judged, reasons)
    });
    earned.sum::<u32>() / total.max(1)
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "gate_properties.rs"]
mod properties;
