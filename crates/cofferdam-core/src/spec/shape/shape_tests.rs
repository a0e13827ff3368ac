use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::spec::example;

fn judged() -> impl Iterator<Item = Phase> {
    Phase::ALL.iter().copied().filter(|phase| phase.is_judged())
}

#[test]
fn what_is_missing_or_of_another_type_is_told_with_its_place() {
    let mut output = example(Phase::Requirements);
    output["requirements"][1]["acceptance_criteria"][0] = json!(7);
    output["requirements"][2].as_object_mut().unwrap().remove("id");
    output["assumptions"] = json!("one");
    output["out_of_scope"] = Value::Null;
    let errors = check_shape(Phase::Requirements, &output).unwrap_err();
    assert_eq!(
        errors,
        [
            "`requirements[1].acceptance_criteria[0]` is a number; it must be a text",
            "`requirements[2].id` is missing; it must be a text",
            "`assumptions` is a text; it must be a list of texts",
        ]
    );
    assert_eq!(
        check_shape(Phase::Explore, &json!([])),
        Err(vec!["the output is a list; it must be an object".into()])
    );
    assert_eq!(
        check_shape(Phase::Sync, &json!({"ready_for_execution": null})),
        Err(vec!["`ready_for_execution` is null; it must be true or false".into()])
    );
}

#[test]
fn either_of_two_forms_is_taken() {
    let with = |dependencies: Value| {
        check_shape(Phase::Tasks, &json!({"tasks": [{"id": "TSK-001", "dependencies": dependencies}]}))
    };
    assert_eq!(with(json!(["TSK-002"])), Ok(()));
    assert_eq!(with(json!({"depends_on": ["TSK-002"], "blocks": []})), Ok(()));
    assert_eq!(
        with(json!("TSK-002")),
        Err(vec!["`tasks[0].dependencies` is a text; it must be a list of texts or an object".into()])
    );
    assert_eq!(
        with(json!([1])),
        Err(vec!["`tasks[0].dependencies[0]` is a number; it must be a text".into()])
    );
}

#[test]
fn an_output_has_bounds() {
    let nested = |levels: usize| {
        let inner = (0..levels).fold(json!(1), |inner, _| Value::Array(vec![inner]));
        json!({"codebase_summary": "x", "notes": inner})
    };
    assert_eq!(check_shape(Phase::Explore, &nested(MOST_DEPTH - 1)), Ok(()));
    for levels in [MOST_DEPTH, 500] {
        let errors = check_shape(Phase::Explore, &nested(levels)).unwrap_err();
        assert_eq!(errors, ["the output is nested too deeply; use at most 32 levels"]);
    }
    let long = |length: usize| json!({"codebase_summary": "x".repeat(length)});
    let around = long(0).to_string().len();
    assert_eq!(check_shape(Phase::Explore, &long(MOST_PHASE_BYTES - around)), Ok(()));
    assert!(
        check_shape(Phase::Explore, &long(MOST_PHASE_BYTES - around + 1)).unwrap_err()[0]
            .contains("too long")
    );
    let errors = check_shape(Phase::Tasks, &json!({"tasks": vec![1; 10_000]})).unwrap_err();
    assert_eq!(errors.len(), MOST_ERRORS);
}

#[test]
fn implement_has_no_output() {
    assert!(check_shape(Phase::Implement, &json!({})).is_err());
    assert_eq!(schema(Phase::Implement), json!(false));
}

#[test]
fn every_known_field_is_in_the_example() {
    fn compare(shape: &Shape, value: &Value, path: &str) {
        match (shape, value) {
            (Shape::Object(fields), Value::Object(object)) => {
                for field in *fields {
                    let value =
                        object.get(field.name).unwrap_or_else(|| panic!("{path} has no {}", field.name));
                    compare(&field.shape, value, &format!("{path}.{}", field.name));
                }
            }
            (Shape::List(shape), Value::Array(items)) => {
                items.iter().for_each(|item| compare(shape, item, path));
            }
            _ => {}
        }
    }
    for phase in judged() {
        compare(&Shape::Object(tables::of(phase).unwrap()), &example(phase), phase.as_str());
    }
}

/// Any JSON, not deep.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z ]{0,10}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The paths of everything in a value, as JSON pointers.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| pointers(item, &format!("{at}/{index}"), found));
        }
        Value::Object(fields) => {
            fields.iter().filter(|(name, _)| !name.contains(['/', '~'])).for_each(|(name, value)| {
                pointers(value, &format!("{at}/{name}"), found);
            });
        }
        _ => {}
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_check_says_what_the_schema_says(
        which in any::<prop::sample::Index>(), place in any::<prop::sample::Index>(), value in any_json(),
    ) {
        let phases: Vec<_> = judged().collect();
        let phase = *which.get(&phases);
        let mut output = example(phase);
        let mut places = Vec::new();
        pointers(&output, "", &mut places);
        let at: &String = place.get(&places);
        let changed = output.pointer_mut(at).unwrap();
        *changed = value;
        let validator = jsonschema::validator_for(&schema(phase)).unwrap();
        let by_schema = validator.is_valid(&output);
        let by_check = check_shape(phase, &output).is_ok();
        // The one difference: an optional field may be null, which the schema does not advertise.
        prop_assert!(by_schema == by_check || (by_check && has_null(&output)), "{phase} {output:#}");
    }
}
