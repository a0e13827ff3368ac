//! One complete output of each phase, of one and the same spec. Prompts show them, and tests play them.

use serde_json::Value;

use super::Phase;

/// An output that passes the gate of its phase with every point, given the examples of the phases before it. `implement`
/// has none, which is `null`.
#[must_use]
pub fn example(phase: Phase) -> Value {
    example_text(phase).map_or(Value::Null, |text| serde_json::from_str(text).expect("the examples are JSON"))
}

/// The example as it is written, with its fields in the order in which people read them.
pub(super) fn example_text(phase: Phase) -> Option<&'static str> {
    match phase {
        Phase::Explore => Some(include_str!("examples/explore.json")),
        Phase::Prd => Some(include_str!("examples/prd.json")),
        Phase::Requirements => Some(include_str!("examples/requirements.json")),
        Phase::Design => Some(include_str!("examples/design.json")),
        Phase::Tasks => Some(include_str!("examples/tasks.json")),
        Phase::Sync => Some(include_str!("examples/sync.json")),
        Phase::Implement => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::spec::{check_shape, gate};

    #[test]
    fn each_example_passes_its_gate_with_every_point() {
        let mut before = BTreeMap::new();
        for &phase in Phase::ALL.iter().filter(|phase| phase.is_judged()) {
            let output = example(phase);
            assert_eq!(check_shape(phase, &output), Ok(()), "{phase}");
            let gate = gate(phase, &output, &before);
            assert_eq!(gate.reasons, Vec::<String>::new(), "{phase}");
            assert!(gate.passed && (gate.score - 1.0).abs() < f64::EPSILON, "{phase}: {}", gate.score);
            before.insert(phase, output);
        }
        assert_eq!(example(Phase::Implement), Value::Null);
    }
}
