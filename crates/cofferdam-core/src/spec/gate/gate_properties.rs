//! Random outputs: complete ones with fields taken out, in any order, and any JSON.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::spec::example;

fn judged_phase() -> impl Strategy<Value = Phase> {
    let phases: Vec<_> = Phase::ALL.iter().copied().filter(|phase| phase.is_judged()).collect();
    prop::sample::select(phases)
}

fn examples() -> BTreeMap<Phase, Value> {
    Phase::ALL.iter().filter(|phase| phase.is_judged()).map(|&phase| (phase, example(phase))).collect()
}

fn before(phase: Phase) -> BTreeMap<Phase, Value> {
    examples().into_iter().filter(|(other, _)| *other < phase).collect()
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["TSK-001", "TSK-002", "TKT-001", "REQ-EXPORT-API-001", "SHALL", "x"])
            .prop_map(Value::from),
    ]
}

/// Any JSON, with the names of fields that gates look at.
fn any_json() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "id",
        "tasks",
        "tickets",
        "requirements",
        "dependencies",
        "depends_on",
        "blocks",
        "parent_ticket",
        "estimated_hours",
        "total_estimated_hours",
        "requirements_addressed",
        "critical_path",
        "text",
        "goals",
        "acceptance_criteria",
        "key_files",
        "overview",
        "components",
        "coverage_matrix",
        "spec_summary",
        "other",
    ]);
    leaf().prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()
            )),
        ]
    })
}

/// Where objects have fields: the object's JSON pointer and the field's name.
fn fields(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| fields(item, &format!("{at}/{index}"), found));
        }
        Value::Object(object) => {
            for (name, value) in object {
                found.push((at.to_owned(), name.clone()));
                let step = name.replace('~', "~0").replace('/', "~1");
                fields(value, &format!("{at}/{step}"), found);
            }
        }
        _ => {}
    }
}

/// Takes a field out, if its object is still there.
fn take(output: &mut Value, (object, field): &(String, String)) -> Option<Value> {
    output.pointer_mut(object)?.as_object_mut()?.remove(field)
}

/// Turns every list around by as much.
fn rotate(value: &mut Value, by: usize) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(|item| rotate(item, by));
            if !items.is_empty() {
                let by = by % items.len();
                items.rotate_left(by);
                if by % 2 == 1 {
                    items.reverse();
                }
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(|value| rotate(value, by)),
        _ => {}
    }
}

fn is_sound(gate: &Gate) -> bool {
    (0.0..=1.0).contains(&gate.score)
        && (!gate.passed || gate.score >= GATE_TO_PASS)
        && (gate.score >= 1.0 || !gate.reasons.is_empty())
        && (gate.passed || !gate.reasons.is_empty())
        && gate.reasons.len() <= 40
        && gate.reasons.iter().all(|reason| reason.chars().count() <= 401 && !reason.contains('\n'))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn adding_a_required_field_never_lowers_a_score(
        phase in judged_phase(), taken in prop::collection::vec(any::<Index>(), 0..12), last in any::<Index>(),
        other in prop::option::of(any_json()),
    ) {
        let mut output = example(phase);
        let before = before(phase);
        let mut places = Vec::new();
        fields(&output, "", &mut places);
        for index in taken {
            take(&mut output, index.get(&places));
        }
        let place = last.get(&places);
        let Some(value) = take(&mut output, place) else { return Ok(()) };
        let without = gate(phase, &output, &before);
        prop_assert!(is_sound(&without), "{without:?}");
        // Whatever is added: what was there, or anything else.
        let object = output.pointer_mut(&place.0).unwrap();
        object[place.1.as_str()] = other.unwrap_or(value);
        let with = gate(phase, &output, &before);
        prop_assert!(with.score >= without.score, "{place:?}: {with:?} {without:?}");
    }

    #[test]
    fn taking_a_field_out_of_a_complete_output_costs_points_only_where_it_is_asked_for(
        phase in judged_phase(), which in any::<Index>(),
    ) {
        let mut output = example(phase);
        let mut places = Vec::new();
        fields(&output, "", &mut places);
        let place = which.get(&places);
        take(&mut output, place);
        let gate = gate(phase, &output, &before(phase));
        let is_asked = criteria(phase).iter().any(|criterion| criterion.field == place.1) && place.0.is_empty();
        prop_assert!(!is_asked || gate.score < 1.0, "{place:?} {gate:?}");
    }

    #[test]
    fn the_order_of_lists_makes_no_difference(
        phase in judged_phase(), taken in prop::collection::vec(any::<Index>(), 0..8), by in 0..7_usize,
        hostile in prop::option::of((any::<Index>(), any_json())),
    ) {
        let mut output = example(phase);
        let mut places = Vec::new();
        fields(&output, "", &mut places);
        for index in taken {
            take(&mut output, index.get(&places));
        }
        if let Some((index, value)) = hostile {
            let (object, field) = index.get(&places);
            if let Some(Value::Object(object)) = output.pointer_mut(object) {
                object.insert(field.clone(), value);
            }
        }
        let mut before = before(phase);
        let one = gate(phase, &output, &before);
        rotate(&mut output, by);
        before.values_mut().for_each(|output| rotate(output, by));
        let other = gate(phase, &output, &before);
        prop_assert_eq!(one.score, other.score);
        prop_assert_eq!(one.passed, other.passed);
    }

    #[test]
    fn any_json_has_a_score(phase in prop::sample::select(Phase::ALL), output in any_json(), other in any_json()) {
        let before = Phase::ALL.iter().map(|&phase| (phase, other.clone())).collect();
        let one = gate(phase, &output, &before);
        prop_assert!(is_sound(&one), "{one:?}");
        prop_assert_eq!(one, gate(phase, &output, &before));
    }
}
