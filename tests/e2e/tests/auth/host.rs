//! On the host: each CLI with its own login, in an empty folder.

use std::fs;
use std::time::Duration;

use cofferdam_e2e::Agents;
use cofferdam_e2e::processes::wait_until;
use cofferdam_test_marks::once;

use crate::auth::stage::{KEY, Stage};

const ON_HOST: [&str; 3] = ["--environment", "host", "--agent"];

fn on_host(agent: &str) -> Vec<&str> {
    [&ON_HOST[..], &[agent]].concat()
}

fn is_ok_with_a_key_and_with_no_other(agent: &str) {
    let Some(agents) = Agents::find() else { return };
    let good = Stage::new().with_agents(&agents).with_key(KEY);
    let answer = good.expect_in_time(&on_host(agent), "ok");
    assert_eq!(answer["executionEnvironment"], "host");
    assert_eq!(answer["mode"], "host");
    assert_eq!(good.model.calls(), 1, "a trivial prompt is one call");
    let bad = Stage::new().with_agents(&agents).with_key("sk-another-key-0123456789");
    let answer = bad.expect_in_time(&on_host(agent), "auth_required");
    assert!(!answer["message"].as_str().expect("text").contains("sk-another"), "{answer}");
    let none = Stage::new().with_agents(&agents);
    none.expect(&on_host(agent), "auth_required");
    assert_eq!(none.model.calls(), 0, "nobody is asked without a key");
}

#[once]
#[test]
fn claude_is_ok_with_a_key_and_with_no_other() {
    is_ok_with_a_key_and_with_no_other("claude_code");
}

#[once]
#[test]
fn codex_is_ok_with_a_key_and_with_no_other() {
    is_ok_with_a_key_and_with_no_other("codex");
}

#[once]
#[test]
fn opencode_is_ok_with_a_key_and_with_no_other() {
    is_ok_with_a_key_and_with_no_other("opencode");
}

#[once]
#[test]
fn a_home_that_is_logged_in_is_ok() {
    let Some(agents) = Agents::find() else { return };
    let stage = Stage::new().with_agents(&agents);
    stage.write_home(
        ".claude/.credentials.json",
        &format!(
            r#"{{"claudeAiOauth": {{"accessToken": "{KEY}", "refreshToken": "r-0123456789", "expiresAt": 4102444800000,
                "scopes": ["user:inference"], "subscriptionType": "pro"}}}}"#
        ),
    );
    stage.expect_in_time(&on_host("claude_code"), "ok");
    stage.write_home(".codex/auth.json", &format!(r#"{{"OPENAI_API_KEY": "{KEY}"}}"#));
    let provider = format!(
        "model_provider = \"here\"\n[model_providers.here]\nname = \"here\"\nbase_url = \"{}/v1\"\n\
         wire_api = \"responses\"\nrequires_openai_auth = true\n",
        stage.model.base_url()
    );
    stage.write_home(".codex/config.toml", &provider);
    stage.expect_in_time(&on_host("codex"), "ok");
}

#[once]
#[test]
fn a_cli_that_is_not_there_is_missing() {
    let stage = Stage::new().with_key(KEY);
    for agent in ["claude_code", "codex", "opencode"] {
        let answer = stage.expect(&on_host(agent), "cli_missing");
        assert!(answer["message"].as_str().expect("text").contains("npm install -g"), "{answer}");
    }
}

#[test]
fn a_cli_that_hangs_is_ended_with_all_that_it_started() {
    // A child in a session of its own, which no signal to a group or a terminal reaches.
    let script = "setsid sh -c 'echo $$ > \"$HOME/child\"; exec sleep 1000' & exec sleep 1000";
    let stage = Stage::new().with_key(KEY).with_program("claude", script);
    stage.expect(&[&on_host("claude_code")[..], &["--timeout", "3s"]].concat(), "timeout");
    let child = fs::read_to_string(stage.fixture.home().join("child")).expect("it was started");
    let process = format!("/proc/{}", child.trim());
    wait_until(Duration::from_secs(30), "the child is gone", || !fs::exists(&process).unwrap_or(true));
}

#[once]
#[test]
fn what_makes_no_sense_is_unknown_whatever_its_status() {
    for name in ["claude", "codex", "opencode"] {
        for script in [
            "echo OK",
            "echo '{\"type\":\"result\"}'; exit 1",
            "exit 0",
            "kill -9 $$",
            "head -c 9999 /dev/urandom",
        ] {
            let stage = Stage::new().with_key(KEY).with_program(name, script);
            stage.expect(&on_host(name), "unknown");
        }
    }
}

#[test]
fn a_cli_that_the_repository_brings_is_not_started() {
    let mut stage = Stage::new().with_key(KEY);
    let folder = stage.fixture.repository().join("bin");
    stage.fixture.write("bin/claude", "#!/bin/sh\ntouch \"$HOME/started\"\n");
    fs::set_permissions(folder.join("claude"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("its owner");
    stage.fixture.set_env("PATH", &format!("{}:/usr/bin:/bin", folder.display()));
    stage.expect(&on_host("claude_code"), "cli_missing");
    assert!(!stage.fixture.home().join("started").exists());
}

#[once]
#[test]
fn an_environment_and_an_agent_that_are_none_say_what_to_type() {
    let stage = Stage::new();
    for (flags, said) in [
        (["--environment", "docker"], "--environment sandbox"),
        (["--environment", "Host"], "--environment host"),
        (["--agent", "cluade"], "claude_code, codex, opencode"),
    ] {
        let ended = stage.ask(&flags);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
}
