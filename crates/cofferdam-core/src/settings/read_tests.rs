use serde_json::json;

use super::super::reference::reference;
use super::super::value_table::{rows, tree};
use super::*;

fn read(text: &str) -> Result<Settings, String> {
    read_layer(text, &Origin::Default).map(|layer| layer.alone()).map_err(|error| error.to_string())
}

#[test]
fn every_key_takes_its_good_values_and_refuses_the_bad_ones_with_what_to_type() {
    let schema = jsonschema::validator_for(&schema()).expect("the schema is one");
    for row in rows() {
        let path = KeyPath::new(row.keys.iter().copied()).to_string();
        for value in &row.good {
            let tree = tree(&row.keys, value);
            assert!(read(&tree.to_string()).is_ok(), "{path} = {value}: {:?}", read(&tree.to_string()));
            assert!(schema.is_valid(&tree), "{path} = {value} against the schema");
        }
        for (value, said) in &row.bad {
            let text = serde_json::to_string_pretty(&tree(&row.keys, value)).unwrap();
            let error = read_layer(&text, &Origin::Default).expect_err(&path);
            assert_eq!(error.path.to_string(), path, "{error}");
            assert!(error.problem.contains(said), "{path} = {value}: {error}");
            let shown: String =
                text.lines().nth(error.line - 1).unwrap().chars().skip(error.column - 1).collect();
            let first: String = value.to_string().trim_start_matches('[').chars().take(2).collect();
            assert!(shown.starts_with(&first) || shown.starts_with('['), "{path}: {error} is at {shown}");
        }
    }
}

#[test]
fn the_table_above_has_every_key() {
    let page = reference();
    let described = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let mut described: Vec<String> = described.map(str::to_owned).collect();
    let mut tried: Vec<String> = rows()
        .iter()
        .map(|row| {
            let names = ["strict", "corp", "npm", "my-model", "coder", "db", "https://git/acme/*"];
            let keys = row
                .keys
                .iter()
                .map(|key| if names.contains(key) && row.keys[0] != "roles" { "NAME" } else { key });
            keys.collect::<Vec<_>>().join(".")
        })
        .filter(|key| key != "$schema")
        .collect();
    described.sort();
    tried.sort();
    tried.dedup();
    assert_eq!(described, tried);
}

#[test]
fn the_settings_of_other_tools_load_as_they_are() {
    let settings = read(
        r#"{
  "sandbox": {
    "mode": "host",
    "timeout_seconds": 600,
    "max_attempts": 3,
    "max_concurrency": 0,
    "env_allowlist": ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
    "path_mapping_mode": "mapped",
    "docker": {
      "image": "tinyclaw/agent-runner:latest",
      "network": "default",
      "memory": "2g",
      "cpus": "1.0",
      "pids_limit": 256
    },
    "apple": {
      "runtime_command": "apple-container",
      "image": "tinyclaw/agent-runner:latest",
      "network": "default",
      "memory": "2g",
      "cpus": "1.0"
    }
  }
}
"#,
    )
    .unwrap();
    let sandbox = settings.sandbox;
    assert_eq!(sandbox.mode, crate::Mode::Host);
    assert_eq!((sandbox.timeout_seconds.count(), sandbox.max_attempts.count()), (600, 3));
    assert_eq!(sandbox.max_concurrency.count(), 0);
    assert_eq!(sandbox.env_allowlist.len(), 2);
    assert_eq!(sandbox.apple.runtime_command.as_str(), "apple-container");
    let settings = read(
        r#"{
  "agents": {
    "coder": {
      "name": "Coder",
      "provider": "openai",
      "model": "gpt-5.3-codex",
      "working_directory": "/Users/me/tinyclaw-workspace/coder",
      "sandbox_mode": "docker"
    }
  }
}
"#,
    )
    .unwrap();
    let coder = &settings.agents["coder"];
    assert_eq!((coder.provider, coder.sandbox_mode), (crate::Agent::Codex, Some(crate::Mode::Docker)));
}

#[test]
fn an_error_says_where_and_what_was_meant() {
    let mut wrong = Vec::new();
    for (text, said) in [
        (
            "{\n  \"sandbox\": {\n    \"docker\": { \"memry\": \"2g\" }\n  }\n}",
            "line 3, column 17: sandbox.docker.memry: this key is not known; did you mean `memory`?",
        ),
        ("{\"sandbx\": {}}", "line 1, column 2: sandbx: this key is not known; did you mean `sandbox`?"),
        (
            "{\"sandbox\": {\"docker\": {\"privileged\": true}}}",
            "line 1, column 25: sandbox.docker.privileged: this key is not known; the keys here are cpus, host",
        ),
        (
            "{\"agents\": {\"coder\": {\"provider\": \"codex\", \"modle\": \"x\"}}}",
            "line 1, column 44: agents.coder.modle: this key is not known; did you mean `model`?",
        ),
        (
            "{\"sandbox\": {\"policies\": {\"a\": {\"limit\": {}}}}}",
            "line 1, column 33: sandbox.policies.a.limit: this key is not known; did you mean `limits`?",
        ),
        (
            "{\"sandbox\": {\n  \"mode\": \"docker\",\n  \"mode\": \"host\"}}",
            "line 3, column 3: sandbox.mode: this key is there twice, first on line 2; leave one of them out",
        ),
        (
            "{\"agents\": {\n \"../x\": {\"provider\": \"codex\"}}}",
            "line 2, column 2: agents.\"../x\": `../x` is not the name of an agent; type letters",
        ),
        ("{\"agents\": {\"a\": {}}}", "line 1, column 18: agents.a: there is no `provider`"),
        ("{\"sandbox\": []}", "line 1, column 13: sandbox: this is a list; type an object"),
        ("{\"sandbox\": [\"host\", 600, 3]}", "line 1, column 13: sandbox: this is a list; type an object"),
        (
            "{\"agents\": {\"a\": [\"x\", \"codex\"]}}",
            "line 1, column 18: agents.a: this is a list; type an object",
        ),
        ("{\"roles\": {\"worker\": []}}", "line 1, column 22: roles.worker: this is a list; type an object"),
        ("{\"sandbox\": {\"network\": null}}", "line 1, column 25: sandbox.network: `null` is no value here"),
        ("{\n  \"sandbox\": {},\n}", "line 3, column 1: this is not JSON: trailing comma"),
        ("{\"a\": 1", "line 1, column 7: this is not JSON: EOF while parsing an object"),
        ("", "line 1, column 1: this is not JSON: EOF while parsing a value"),
        ("{} {}", "line 1, column 4: this is not JSON: trailing characters"),
        ("[]", "line 1, column 1: this is a list; type an object"),
        (
            "{\"egress\": {\"sets\": {\"ä\": [\"b.example:1\",\n\"a.example\"]}}}",
            "line 2, column 1: egress.sets.\"ä\": `a.example` names no port",
        ),
    ] {
        let error = read(text).expect_err(text);
        if !error.starts_with(said) {
            wrong.push(format!("{text}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_editors_of_other_systems_put_in_front_is_read_over() {
    assert!(read("\u{feff}{\"sandbox\": {\"mode\": \"docker\"}}").is_ok());
}

#[test]
fn no_text_makes_the_reader_fall_over() {
    for text in [
        "{\"a\":".repeat(200),
        "[".repeat(100_000),
        format!("{{\"{}\": 1}}", "x".repeat(100_000)),
        "{\"sandbox\": {\"mode\": \"\\ud800\"}}".to_owned(),
        "{\"sandbox\": {\"timeout_seconds\": 1e999}}".to_owned(),
        json!({"sandbox": {"policies": {"x".repeat(100): {}}}}).to_string(),
    ] {
        assert!(read(&text).is_err(), "{}", &text[..40.min(text.len())]);
    }
}
