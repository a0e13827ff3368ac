//! The real agent CLIs, unsealed, against the scripted model: if these fail, the model is not true to its APIs,
//! and what other tests show with it is worth nothing.

use std::fs;
use std::process::{Command, Output, Stdio};

use cofferdam_e2e::Agents;
use cofferdam_scripted_model::{Answer, Api, Kind, Script, ScriptedModel, ToolCall, Usage};
use cofferdam_test_marks::once;
use serde_json::json;
use tempfile::TempDir;

const KEY: &str = "sk-the-expected-key";

/// One CLI and what it changed.
struct Played {
    model: ScriptedModel,
    folder: TempDir,
    output: Output,
}

/// Runs a CLI that makes a file, then edits it and runs a command in parallel, then says that it has.
fn play(agents: &Agents, name: &str, configure: impl FnOnce(&mut Command, &str)) -> Played {
    let parallel = [
        ToolCall::EditFile { path: "made/new.txt".into(), old: "two\n".into(), new: "2\n".into() },
        ToolCall::Shell { command: "cat existing.txt > made/copy.txt".into() },
    ];
    let answers = [
        Answer::write_file("made/new.txt", "one\ntwo\n").saying("I make a file.").thinking("Which one?"),
        Answer::tools(parallel),
        Answer::text("I have made it.").costing(Usage { input: 1000, output: 50, ..Usage::default() }),
    ];
    let model = ScriptedModel::start(Script::new(answers).expecting_key(KEY));
    let folder = tempfile::tempdir().expect("a temp folder");
    let (home, work) = (folder.path().join("home"), folder.path().join("work"));
    fs::create_dir_all(&home).expect("a new folder");
    fs::create_dir_all(&work).expect("a new folder");
    fs::write(work.join("existing.txt"), "kept\n").expect("a new file");
    let mut command = Command::new(agents.launcher(name));
    command.current_dir(&work).env_clear().env("PATH", agents.path()).env("HOME", &home);
    command.env("TMPDIR", folder.path()).env("LANG", "C.UTF-8").stdin(Stdio::null());
    configure(&mut command, &model.base_url());
    let output = command.output().expect("the CLI can be started");
    Played { model, folder, output }
}

impl Played {
    fn check(&self, api: Api) {
        let stdout = String::from_utf8_lossy(&self.output.stdout);
        let stderr = String::from_utf8_lossy(&self.output.stderr);
        assert!(self.output.status.success(), "{stdout}\n{stderr}");
        assert!(stdout.contains("I have made it."), "{stdout}\n{stderr}");
        let read = |name: &str| fs::read_to_string(self.folder.path().join("work").join(name));
        assert_eq!(read("made/new.txt").expect("the new file"), "one\n2\n", "{stdout}");
        assert_eq!(read("made/copy.txt").expect("the copy"), "kept\n", "{stdout}");
        assert_eq!(self.model.calls(), 3, "{stdout}");
        for request in self.model.requests().iter().filter(|request| request.kind == Kind::Call) {
            assert_eq!((request.api, request.key()), (Some(api), Some(KEY)));
        }
    }
}

#[once]
#[test]
fn claude_makes_and_edits_a_file() {
    let Some(agents) = Agents::find() else { return };
    let played = play(&agents, "claude", |command, url| {
        command.args(["-p", "--output-format", "stream-json", "--verbose"]);
        command.args(["--permission-mode", "bypassPermissions", "make a file"]);
        command.env("ANTHROPIC_BASE_URL", format!("{url}/model/anthropic")).env("ANTHROPIC_API_KEY", KEY);
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("CLAUDE_CODE_MAX_RETRIES", "0");
        // Root may not bypass permissions otherwise.
        command.env("IS_SANDBOX", "1");
    });
    played.check(Api::Messages);
}

#[once]
#[test]
fn codex_makes_and_edits_a_file_with_its_shell() {
    codex_with_model("scripted", "command_execution");
}

#[once]
#[test]
fn codex_makes_and_edits_a_file_with_patches() {
    codex_with_model("gpt-5.5", "file_change");
}

#[once]
#[test]
fn codex_makes_and_edits_a_file_with_programs() {
    codex_with_model("gpt-6-sol", "command_execution");
}

/// Codex offers its tools differently from model to model: a shell alone, patches too, or programs that call both.
fn codex_with_model(model: &str, kind_of_item: &str) {
    let Some(agents) = Agents::find() else { return };
    let played = play(&agents, "codex", |command, url| {
        let provider = format!(
            "model_providers.scripted={{name=\"scripted\",base_url=\"{url}/model/openai/v1\",\
             env_key=\"OPENAI_API_KEY\",wire_api=\"responses\",request_max_retries=0,stream_max_retries=0}}"
        );
        command.args(["exec", "--json", "--dangerously-bypass-approvals-and-sandbox"]);
        command.args(["--skip-git-repo-check", "-m", model, "-c", "model_provider=scripted"]);
        command.args(["-c", &provider, "-c", "analytics.enabled=false", "--disable", "plugins"]);
        command.args(["--disable", "apps", "make a file"]).env("OPENAI_API_KEY", KEY);
    });
    played.check(Api::Responses);
    let stdout = String::from_utf8_lossy(&played.output.stdout);
    assert!(stdout.contains(&format!("\"{kind_of_item}\"")), "{stdout}");
}

#[once]
#[test]
fn opencode_makes_and_edits_a_file_over_messages() {
    opencode_over("@ai-sdk/anthropic", Api::Messages);
}

#[once]
#[test]
fn opencode_makes_and_edits_a_file_over_responses() {
    opencode_over("@ai-sdk/openai", Api::Responses);
}

#[once]
#[test]
fn opencode_makes_and_edits_a_file_over_chat_completions() {
    opencode_over("@ai-sdk/openai-compatible", Api::ChatCompletions);
}

fn opencode_over(package: &str, api: Api) {
    let Some(agents) = Agents::find() else { return };
    let played = play(&agents, "opencode", |command, url| {
        let options = json!({"baseURL": format!("{url}/model/v1"), "apiKey": KEY});
        let provider = json!({"npm": package, "options": options, "models": {"m": {"name": "m"}}});
        let config = json!({"model": "scripted/m", "share": "disabled", "autoupdate": false,
            "provider": {"scripted": provider}});
        command.args(["run", "--format", "json", "make a file"]);
        command.env("OPENCODE_CONFIG_CONTENT", config.to_string());
        for switch in ["MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD"] {
            command.env(format!("OPENCODE_DISABLE_{switch}"), "1");
        }
    });
    played.check(api);
    // Without --title it asks for one; that must not take an answer from the script.
    assert_eq!(played.model.asides(), 1);
}
