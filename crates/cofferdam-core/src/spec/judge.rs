//! The one judgement of what a try of a phase brought. It is made inside the sandbox and again outside.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Gate, Phase, check_shape, gate};

/// Judges an output: what cannot be read by what follows does not pass, and has no score.
#[must_use]
pub fn judge_output(phase: Phase, output: &Value, before: &BTreeMap<Phase, Value>) -> Gate {
    match check_shape(phase, output) {
        Ok(()) => gate(phase, output, before),
        Err(reasons) => Gate { score: 0.0, passed: false, reasons },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::spec::example;

    #[test]
    fn a_good_output_passes_and_one_of_another_shape_has_no_score() {
        let before = BTreeMap::new();
        let good = example(Phase::Explore);
        assert!(judge_output(Phase::Explore, &good, &before).passed);
        for bad in [json!([]), json!(null), json!({ "codebase_summary": 7 })] {
            let judged = judge_output(Phase::Explore, &bad, &before);
            assert!(
                !judged.passed && !judged.reasons.is_empty() && judged.score < 0.001,
                "{bad}: {judged:?}"
            );
        }
        assert!(!judge_output(Phase::Implement, &good, &before).passed);
    }
}
