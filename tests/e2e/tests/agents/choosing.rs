//! Which agent is taken if none is named, and what is said if there is none.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use cofferdam_e2e::{Agents, Finished, Fixture};
use cofferdam_scripted_model::{Answer, Kind};
use cofferdam_test_marks::once;

use crate::agents::stage::{Cli, Stage, without_foreign_keys};

/// A command without the vendors' variables of anybody.
fn keyless(fixture: &Fixture, args: &[&str]) -> Command {
    let mut command = fixture.command();
    command.args(args);
    without_foreign_keys(&mut command);
    command
}

#[once]
#[test]
fn without_a_name_it_says_which_agent_it_took_and_reads_the_prompt_from_stdin() {
    let Some(agents) = Agents::find() else { return };
    let stage = Stage::new(&agents, [Answer::text("Nothing to do.")]);
    let prompt = stage.fixture.path("prompt.txt");
    fs::write(&prompt, "look around,\nthen say so\n").expect("a new file");
    let mut command = keyless(&stage.fixture, &["run", "--json", "-"]);
    command.stdin(Stdio::from(File::open(&prompt).expect("the prompt")));
    let output = command.output().expect("the binary can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let notice = format!("cofferdam: using Claude Code ({})", agents.launcher("claude").display());
    assert!(said.contains(&notice), "`{notice}` in {said}");
    let call = stage.model.requests().into_iter().find(|request| request.kind == Kind::Call).expect("a call");
    assert!(call.body["messages"].to_string().contains(r"look around,\nthen say so"), "{}", call.body);
    assert!(said.contains("the agent said: Nothing to do."), "{said}");
}

#[once]
#[test]
fn without_a_name_the_agent_that_has_a_key_is_taken() {
    let Some(agents) = Agents::find() else { return };
    let stage = Stage::new(&agents, [Answer::text("Nothing to do.")]);
    let mut command = keyless(&stage.fixture, &["run", "--json", "--model", "gpt-5.5", "look around"]);
    command.env_remove("ANTHROPIC_API_KEY");
    let finished = Finished::of(command);
    assert_eq!((finished.code, &*finished.outcome()), (Some(0), "succeeded"), "{}", finished.stderr);
    assert!(finished.stderr.contains("cofferdam: using Codex ("), "{}", finished.stderr);
}

/// Refused as a mistake of the caller's, in one line and one hint, before anything is on record.
fn assert_refused(finished: &Finished, error: &str, hint: &str) {
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    let says = |words: &str| finished.stderr.lines().any(|line| line.contains(words));
    assert!(says(&format!("error: {error}")), "`{error}` in {}", finished.stderr);
    assert!(says("hint: ") && says(hint), "`{hint}` in {}", finished.stderr);
}

#[once]
#[test]
fn without_a_key_or_a_login_it_says_what_to_type() {
    let Some(agents) = Agents::find() else { return };
    let mut fixture = Fixture::new();
    fixture.set_env("PATH", agents.path().to_str().expect("a plain path"));
    let run = |args: &[&str]| Finished::of(keyless(&fixture, &[&["run"], args, &["look around"]].concat()));
    let none = "there is neither a key nor a login for Claude Code";
    for hint in ["export ANTHROPIC_API_KEY=", "type `claude` and log in", "claude setup-token"] {
        assert_refused(&run(&[]), none, hint);
    }
    assert!(run(&[]).stderr.contains("WARN"), "it is in the log");
    assert_refused(&run(Cli::Claude.flags()), none, "export ANTHROPIC_API_KEY=");
    let none = "there is neither a key nor a login for Codex";
    assert_refused(&run(Cli::Codex.flags()), none, "codex login");
    assert_refused(&run(Cli::Codex.flags()), none, "export OPENAI_API_KEY=");
    assert_refused(&run(&["--agent", "gemini"]), "--agent: `gemini` is not an agent", "--agent claude_code");
    assert_refused(&Finished::of(keyless(&fixture, &["run", "-"])), "PROMPT: must not be empty", "stdin");
}

#[once]
#[test]
fn without_an_agent_it_says_how_to_get_one() {
    let mut fixture = Fixture::new();
    fixture.set_env("PATH", "/usr/bin:/bin");
    fixture.set_env("ANTHROPIC_API_KEY", "sk-of-no-use-at-all");
    let run = |args: &[&str]| Finished::of(keyless(&fixture, &[&["run"], args, &["look around"]].concat()));
    assert_refused(&run(&[]), "no agent is installed", "npm install -g @anthropic-ai/claude-code");
    assert_refused(&run(Cli::Claude.flags()), "claude", "npm install -g @anthropic-ai/claude-code");
}

#[once]
#[test]
fn an_agent_of_the_settings_brings_its_model_and_its_words() {
    let Some(agents) = Agents::find() else { return };
    let stage = Stage::new(&agents, [Answer::text("Nothing to do.")]);
    let settings = serde_json::json!({
        "sandbox": {"env_allowlist": ["ANTHROPIC_API_KEY"], "policies": {"brisk": {"timeout_seconds": 120}}},
        "agents": {
            "coder": {
                "name": "Coder", "provider": "anthropic", "model": "claude-e2e-1", "policy": "brisk",
                "system_prompt": "words of the agent"
            }
        },
        "roles": {"tester": {"agent": "coder", "append_system_prompt": "words of the role"}}
    });
    fs::create_dir_all(stage.fixture.state()).expect("a new folder");
    fs::write(stage.fixture.state().join("settings.json"), settings.to_string()).expect("a new file");
    let finished =
        Finished::of(keyless(&stage.fixture, &["run", "--json", "--role", "tester", "look around"]));
    assert_eq!((finished.code, &*finished.outcome()), (Some(0), "succeeded"), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("not passed on by env_allowlist: ANTHROPIC_API_KEY"),
        "{}",
        finished.stderr
    );
    let called = stage.model.requests();
    let call =
        called.iter().find(|request| request.body["model"] == "claude-e2e-1").expect("a call of the model");
    let system = call.body["system"].to_string();
    assert!(system.contains("words of the agent") && system.contains("words of the role"), "{system}");
    stage.assert_the_model_had_the_key();
    let unknown = Finished::of(keyless(&stage.fixture, &["run", "--agent", "coddr", "look around"]));
    assert_refused(&unknown, "--agent: `coddr` is not an agent", "`--agent coder`");
}
