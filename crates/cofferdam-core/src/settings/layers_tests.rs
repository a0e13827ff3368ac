use serde_json::json;

use super::super::read::read_layer;
use super::*;
use crate::policy::Mode;

fn layer(tree: &Value, origin: &Origin) -> Layer {
    read_layer(&tree.to_string(), origin).unwrap()
}

#[test]
fn a_later_layer_goes_before_an_earlier_one_key_by_key() {
    let global = Origin::Global("/g".into());
    let local = Origin::Local("/l".into());
    let effective = Effective::default()
        .under(&layer(
            &json!({
                "sandbox": {"mode": "docker", "docker": {"memory": "4g", "cpus": 2}, "policies": {"a": {"mode": "apple"}}},
                "egress": {"sets": {"x": ["a.example:1", "b.example:1"], "y": []}},
            }),
            &global,
        ))
        .under(&layer(
            &json!({
                "sandbox": {"docker": {"memory": "1g"}, "policies": {"a": {}, "b": {}}},
                "egress": {"sets": {"x": ["c.example:1"]}},
            }),
            &local,
        ));
    let sandbox = &effective.settings.sandbox;
    assert_eq!(sandbox.mode, Mode::Docker);
    assert_eq!(sandbox.docker.memory.unwrap().to_string(), "1g");
    assert_eq!(sandbox.docker.cpus.unwrap().milli(), 2000);
    assert_eq!(sandbox.policies["a"].mode, Some(Mode::Apple));
    assert!(sandbox.policies.contains_key("b"));
    assert_eq!(effective.settings.egress.sets["x"].len(), 1, "a list is one value");
    for (keys, origin) in [
        (&["sandbox", "mode"][..], &global),
        (&["sandbox", "docker", "memory"], &local),
        (&["sandbox", "docker", "cpus"], &global),
        (&["egress", "sets", "x"], &local),
        (&["egress", "sets", "y"], &global),
        (&["sandbox", "timeout_seconds"], &Origin::Default),
    ] {
        assert_eq!(effective.origin_of(keys), origin, "{keys:?}");
    }
}

#[test]
fn every_value_is_shown_with_its_origin() {
    let effective = Effective::default().under(&layer(
        &json!({"sandbox": {"timeout_seconds": 60}, "agents": {"a.b": {"provider": "codex"}}}),
        &Origin::Global("/g".into()),
    ));
    let shown: Vec<String> = effective
        .values()
        .into_iter()
        .map(|(path, value, origin)| format!("{path} = {value} ({})", origin.kind()))
        .collect();
    for line in [
        "sandbox.timeout_seconds = 60 (global)",
        "sandbox.mode = \"native\" (default)",
        "sandbox.limits.memory = \"2g\" (default)",
        "agents.\"a.b\".provider = \"codex\" (global)",
    ] {
        assert!(shown.contains(&line.to_owned()), "{line} in {shown:#?}");
    }
}
