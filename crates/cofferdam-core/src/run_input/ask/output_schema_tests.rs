use serde_json::{Map, json};

use super::*;

fn check(schema: &Value) -> Result<(), OutputSchemaProblem> {
    check_output_schema(schema).map(|_| ())
}

/// Definitions `d0` … of which each is made from a reference to the next, and the last is a number.
fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
    let mut definitions = Map::new();
    for at in 0..length {
        definitions.insert(format!("d{at}"), link(json!({ "$ref": format!("#/$defs/d{}", at + 1) })));
    }
    definitions.insert(format!("d{length}"), json!({ "type": "number" }));
    json!({ "$defs": definitions, "$ref": "#/$defs/d0" })
}

#[test]
fn references_that_double_are_refused_however_short_the_schema() {
    let doubled = chain(28, |next| json!({ "anyOf": [next, next] }));
    assert!(doubled.to_string().len() < 3_000);
    assert_eq!(check(&doubled), Err(OutputSchemaProblem::TooLarge));
    for keyword in ["allOf", "oneOf"] {
        let doubled = chain(28, |next| json!({ keyword: [next, next] }));
        assert_eq!(check(&doubled), Err(OutputSchemaProblem::TooLarge), "{keyword}");
    }
    let beside = chain(28, |next| json!({ "if": next, "then": next, "not": next }));
    assert_eq!(check(&beside), Err(OutputSchemaProblem::TooLarge));
    // `unevaluatedProperties` evaluates again what is beside it.
    let unevaluated = chain(20, |next| json!({ "allOf": [next], "unevaluatedProperties": false }));
    assert_eq!(check(&unevaluated), Err(OutputSchemaProblem::TooLarge));
    assert_eq!(check(&chain(10, |next| json!({ "anyOf": [next, next] }))), Ok(()));
}

#[test]
fn a_schema_that_is_long_or_deep_is_refused() {
    let pattern = |count: usize| {
        let properties: Map<String, Value> =
            (0..count).map(|at| (format!("p{at}"), json!({ "pattern": "^a+$" }))).collect();
        json!({ "properties": properties })
    };
    assert_eq!(check(&pattern(90)), Ok(()));
    assert_eq!(check(&pattern(100)), Err(OutputSchemaProblem::TooLarge));
    let values: Vec<usize> = (0..9_000).collect();
    assert_eq!(check(&json!({ "enum": values })), Ok(()));
    assert_eq!(
        check(&json!({ "allOf": [{ "enum": values }, { "enum": values }] })),
        Err(OutputSchemaProblem::TooLarge)
    );
    assert_eq!(check(&chain(60, |next| next)), Ok(()));
    assert_eq!(check(&chain(70, |next| next)), Err(OutputSchemaProblem::TooDeep));
    let nested = (0..100).fold(json!({}), |inner, _| json!({ "not": inner }));
    assert_eq!(check(&nested), Err(OutputSchemaProblem::TooDeep));
}

#[test]
fn trees_and_lists_may_refer_to_themselves() {
    let own = json!({ "$ref": "#" });
    let expression = json!({ "$ref": "#/$defs/expression" });
    for schema in [
        json!({ "properties": { "children": { "type": "array", "items": own }, "name": { "type": "string" } } }),
        json!({ "properties": { "left": own, "right": own }, "additionalProperties": false }),
        json!({ "anyOf": [{ "type": "string" }, { "items": own }, { "additionalProperties": own }] }),
        json!({ "prefixItems": [own, own] }),
        json!({
            "$defs": {
                "expression": { "anyOf": [{ "type": "number" }, { "$ref": "#/$defs/sum" }] },
                "sum": { "properties": { "left": expression, "right": expression } },
            },
            "properties": { "first": expression, "second": expression },
        }),
    ] {
        assert_eq!(check(&schema), Ok(()), "{schema}");
    }
}

#[test]
fn what_refers_to_itself_twice_for_one_value_is_refused() {
    let own = json!({ "$ref": "#" });
    let a = json!({ "$ref": "#/$defs/a" });
    let b = json!({ "$ref": "#/$defs/b" });
    for schema in [
        own.clone(),
        json!({ "not": own }),
        json!({ "allOf": [{ "$ref": "#/allOf/0" }] }),
        // Without an end at each level of an answer: 2^depth.
        json!({ "properties": { "next": { "anyOf": [own, own] } } }),
        json!({ "properties": { "next": own }, "additionalProperties": own, "patternProperties": { "^n": own } }),
        json!({ "anyOf": [{ "items": own }, { "contains": own }] }),
        json!({ "prefixItems": [own], "items": own }),
        json!({ "properties": { "a": own, "b": { "properties": {} } }, "allOf": [{ "properties": { "a": { "items": own } } }] }),
        json!({ "$defs": { "a": { "items": b, "contains": b }, "b": { "items": a } }, "$ref": "#/$defs/a" }),
        json!({ "$defs": { "a": b, "b": a }, "$ref": "#/$defs/a" }),
        json!({ "$defs": { "a": { "properties": { "x": a } } }, "anyOf": [a, a] }),
        json!({ "items": own, "unevaluatedItems": false }),
    ] {
        assert!(
            matches!(check(&schema), Err(OutputSchemaProblem::Returns(_))),
            "{schema}: {:?}",
            check(&schema)
        );
    }
}

#[test]
fn what_a_validator_may_read_in_another_way_is_refused() {
    let refers = |to: &str| json!({ "$ref": to, "$defs": { "a": {}, "%61": {}, "b": { "$anchor": "b" } } });
    assert_eq!(check(&refers("#/$defs/a")), Ok(()));
    for to in [
        "#/$defs/c",
        "#/$defs/%61",
        "#/$defs/~0",
        "#b",
        "other.json",
        "http://json-schema.org/draft-07/schema#",
        "file:///etc/passwd",
    ] {
        assert!(matches!(check(&refers(to)), Err(OutputSchemaProblem::Reference(_))), "{to}");
    }
    for keyword in ["$dynamicRef", "$recursiveRef"] {
        assert!(
            matches!(check(&json!({ keyword: "#" })), Err(OutputSchemaProblem::Reference(_))),
            "{keyword}"
        );
    }
    let inner = json!({ "$defs": { "a": { "$id": "https://a.example" } }, "$ref": "#/$defs/a" });
    assert_eq!(check(&inner), Err(OutputSchemaProblem::Inner("$id")));
    assert_eq!(
        check(&json!({ "$schema": "http://json-schema.org/draft-04/schema#" })),
        Err(OutputSchemaProblem::Draft)
    );
    for draft in ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"] {
        assert_eq!(check(&json!({ "$schema": draft, "$id": "https://a.example/b" })), Ok(()));
    }
    for pattern in ["^(?=a)b", "(?<!a)b"] {
        assert!(
            matches!(check(&json!({ "pattern": pattern })), Err(OutputSchemaProblem::Pattern(_))),
            "{pattern}"
        );
    }
}

#[test]
fn names_of_properties_and_values_are_no_keywords() {
    let schema = json!({
        "properties": {
            "$ref": { "type": "string" }, "pattern": { "enum": ["(?=a)"] }, "$id": { "const": { "$ref": "#" } },
            "not": { "default": { "$ref": "elsewhere" } },
        },
    });
    assert_eq!(check(&schema), Ok(()));
}
