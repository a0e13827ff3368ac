//! `cofferdam init` and `cofferdam agents`: from a home with nothing in it to agents that can be named.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use cofferdam_e2e::{Finished, Fixture, binary};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

/// A fixture without agents, engines, keys or logins of whoever runs the tests.
fn bare() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.set_env("PATH", "/usr/bin:/bin");
    fixture.set_env("DOCKER_HOST", &format!("unix://{}", fixture.path("no.sock").display()));
    for name in ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY"] {
        fixture.set_env(name, "");
    }
    fixture
}

fn settings(fixture: &Fixture) -> String {
    fs::read_to_string(fixture.state().join("settings.json")).expect("settings were written")
}

/// `cofferdam init` on a terminal, with these lines typed.
fn typed(fixture: &Fixture, lines: &str) -> Finished {
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command"]).arg(format!("{} init", binary().display()));
    command.arg("/dev/null").current_dir(fixture.repository());
    let own = fixture.command();
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))));
    let started = std::time::Instant::now();
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.expect("script is part of util-linux");
    let mut stdin = child.stdin.take().expect("it was piped");
    stdin.write_all(lines.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    Finished {
        code: output.status.code(),
        stderr: String::from_utf8_lossy(&output.stdout).into_owned(),
        stdout: output.stdout,
        took: started.elapsed(),
    }
}

#[once]
#[test]
fn without_a_terminal_init_says_what_to_type_and_writes_nothing() {
    let fixture = bare();
    let ended = fixture.cofferdam(["init"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("cofferdam init --yes"), "{}", ended.stderr);
    assert!(!fixture.state().join("settings.json").exists());
}

#[once]
#[test]
fn the_defaults_are_written_once_and_change_nothing_later() {
    let mut fixture = bare();
    fixture.set_env("OPENAI_API_KEY", "sk-not-shown-0123456789");
    let first = fixture.cofferdam(["init", "--yes"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let printed = format!("{}{}", String::from_utf8_lossy(&first.stdout), first.stderr);
    assert!(printed.contains("the key in OPENAI_API_KEY") && !printed.contains("sk-not-shown"), "{printed}");
    assert!(printed.contains("cofferdam sandbox doctor"), "{printed}");
    let written = settings(&fixture);
    let value: Value = serde_json::from_str(&written).expect("settings are JSON");
    assert_eq!(value, json!({ "sandbox": { "mode": "native" } }), "no agent is installed here");
    let again = fixture.cofferdam(["init", "--yes"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(again.stderr.contains("stays as it is"), "{}", again.stderr);
    assert_eq!(settings(&fixture), written);
}

#[once]
#[test]
fn what_is_there_is_kept_byte_for_byte() {
    let fixture = bare();
    fs::create_dir_all(fixture.state()).expect("a new folder");
    let before = "{\n  \"sandbox\": { \"mode\": \"docker\" },\n  \"agents\": { \"mine\": { \"provider\": \"openai\" } }\n}\n";
    fs::write(fixture.state().join("settings.json"), before).expect("a new file");
    assert_eq!(fixture.cofferdam(["init", "--yes"]).code, Some(0));
    assert_eq!(settings(&fixture), before);
    fs::write(fixture.state().join("settings.json"), "{ \"sandbx\": 1 }").expect("a new file");
    let ended = fixture.cofferdam(["init", "--yes"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert_eq!(settings(&fixture), "{ \"sandbx\": 1 }", "what cannot be read is not written over");
}

#[once]
#[test]
fn answers_on_a_terminal_become_settings() {
    let fixture = bare();
    let ended = typed(&fixture, "dcoker\ndocker\ncodex\nhelper\nyes\n");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("type one of: native, docker, apple, host"), "{}", ended.stderr);
    let questions = ended.stderr.matches("] ").count();
    assert!(questions <= 6, "at most five questions, and one asked again: {}", ended.stderr);
    let value: Value = serde_json::from_str(&settings(&fixture)).expect("settings are JSON");
    let expected =
        json!({ "sandbox": { "mode": "docker" }, "agents": { "helper": { "provider": "codex" } } });
    assert_eq!(value, expected);
    let shown = fixture.cofferdam(["agents", "show", "helper", "--json"]).json();
    assert_eq!((&shown["provider"], &shown["mode"]), (&json!("codex"), &json!("docker")));
}

#[once]
#[test]
fn who_says_no_or_goes_away_has_written_nothing() {
    for lines in ["\nnone\nno\n", "native\n"] {
        let fixture = bare();
        let ended = typed(&fixture, lines);
        assert_eq!(ended.code, Some(5), "{}", ended.stderr);
        assert!(!fixture.state().join("settings.json").exists());
    }
}

#[once]
#[test]
fn agents_are_listed_with_what_they_need_and_without_secrets() {
    const SECRET: &str = "sk-agents-secret-0123456789";
    let mut fixture = bare();
    fixture.set_env("ANTHROPIC_API_KEY", SECRET);
    let text = json!({
        "sandbox": { "mode": "docker" },
        "agents": {
            "coder": { "provider": "anthropic", "model": "opus", "sandbox_mode": "native",
                       "working_directory": "/srv/coder", "system_prompt": "Be brief." },
            "tester": { "provider": "openai" },
        },
    });
    fs::create_dir_all(fixture.state()).expect("a new folder");
    fs::write(fixture.state().join("settings.json"), text.to_string()).expect("a new file");
    let listed = fixture.cofferdam(["agents", "list", "--json"]).json();
    let names: Vec<&str> =
        listed.as_array().expect("a list").iter().filter_map(|one| one["agent"].as_str()).collect();
    assert_eq!(names, ["coder", "tester", "claude_code", "codex", "opencode"]);
    let coder = &listed[0];
    assert_eq!(coder["mode"], "native");
    assert_eq!(coder["modeOrigin"], "the agent's sandbox_mode");
    assert_eq!(coder["workingDirectory"], "/srv/coder");
    assert_eq!((&coder["hasKeyOrLogin"], &coder["installed"]), (&json!(true), &json!(false)));
    assert_eq!(coder["keyOrLogin"], "the key in ANTHROPIC_API_KEY");
    let tester = &listed[1];
    assert_eq!(
        (&tester["mode"], &tester["installed"]),
        (&json!("docker"), &Value::Null),
        "that of the image"
    );
    assert_eq!(tester["hasKeyOrLogin"], false);
    assert!(tester["modeOrigin"].as_str().is_some_and(|by| by.contains("settings.json")), "{tester}");
    let shown = fixture.cofferdam(["agents", "show", "coder"]);
    let printed = String::from_utf8_lossy(&shown.stdout).into_owned();
    for words in ["opus", "/srv/coder", "Be brief.", "native", "the agent's sandbox_mode"] {
        assert!(printed.contains(words), "{words} in {printed}");
    }
    assert!(!printed.contains(SECRET) && !listed.to_string().contains(SECRET));
    let unknown = fixture.cofferdam(["agents", "show", "codr"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("coder, tester, claude_code"), "{}", unknown.stderr);
}
