//! The same scripts for us and for code that is not ours: the agent SDK with its CLI says the same at the end, counts the
//! same turns and names the same end; and the types of the official client read all that the scripted model sends.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cofferdam_core::{EventType, gateway};
use cofferdam_direct::{Settings, Tools};
use cofferdam_scripted_model::{Answer, Script, ScriptedModel, ToolCall, Usage};
use serde_json::{Value, json};

use crate::offline;
use crate::rig::{lead_with, settings};
use crate::scripts::{Case, cases};

/// Names the Python that has the packages: `./dev test` installs it.
const PYTHON: &str = "COFFERDAM_AGENT_SDK";
/// Names the folder of the agents' CLIs.
const AGENTS: &str = "COFFERDAM_AGENTS";

/// The Python and the CLI; none on a laptop that has them not.
fn programs() -> Option<(OsString, PathBuf)> {
    let found = std::env::var_os(PYTHON).zip(std::env::var_os(AGENTS));
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{PYTHON} and {AGENTS} are not both set");
        eprintln!("skipped: {PYTHON} and {AGENTS} are not both set; `./dev test` installs what they name");
    }
    found.map(|(python, agents)| (python, Path::new(&agents).join("claude")))
}

/// What Python makes of these jobs, by their names.
fn play(python: &OsString, cli: &Path, jobs: &[Value]) -> BTreeMap<String, Value> {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conversation/agent_sdk.py");
    let mut python = Command::new(python);
    python.arg(program).env("CLAUDE", cli).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().expect("Python starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    for job in jobs {
        writeln!(stdin, "{job}").expect("it reads its jobs");
    }
    drop(stdin);
    let output = child.wait_with_output().expect("Python ends");
    assert!(output.status.success(), "Python failed");
    let lines = String::from_utf8(output.stdout).expect("JSON is text");
    let results = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    results.map(|result| (result["name"].as_str().expect("it has a name").to_owned(), result)).collect()
}

/// What is compared.
fn essence(case: &Case, texts: Vec<String>, result: &Value) -> Value {
    let is_error = result["is_error"] == true;
    json!({
        "case": format!("{}: {}", case.class, case.name),
        "subtype": result["subtype"],
        "is_error": is_error,
        "num_turns": result["num_turns"],
        "structured_output": result["structured_output"],
        "permission_denials": result["permission_denials"].as_array().map_or(0, Vec::len),
        // What is said of a failure is in everybody's own words; what the model said is not.
        "result": if is_error { Value::Null } else { result["result"].clone() },
        "texts": texts.into_iter().filter(|text| !text.starts_with("API Error")).collect::<String>(),
    })
}

async fn ours(case: &Case, folder: &Path) -> Value {
    let settings =
        Settings { max_turns: case.max_turns, output_schema: case.output_schema.clone(), ..settings() };
    let tools = Tools { own: offline::tools(folder), ..Tools::default() };
    let led = lead_with(&settings, &tools, case.script.clone()).await;
    let said = led.record.facts(EventType::AgentMessage).into_iter();
    let texts = said.map(|said| said["text"].as_str().unwrap_or_default().to_owned()).collect();
    essence(case, texts, &json!(led.ended.report))
}

#[tokio::test]
async fn the_agent_sdk_comes_to_the_same_end() {
    let Some((python, cli)) = programs() else { return };
    let cases = cases();
    let root = tempfile::tempdir().unwrap();
    let (mut jobs, mut models) = (Vec::new(), Vec::new());
    for (number, case) in cases.iter().enumerate() {
        let folder = root.path().join(number.to_string());
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("a.txt"), "one\ntwo\n").unwrap();
        let model = ScriptedModel::start(case.script.clone());
        jobs.push(json!({
            "name": number.to_string(),
            "base_url": model.base_url(),
            "folder": folder,
            "max_turns": case.max_turns,
            "output_schema": case.output_schema,
        }));
        models.push(model);
    }
    let theirs = play(&python, &cli, &jobs);
    let mut differ = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let answer = &theirs[&number.to_string()];
        let texts = answer["texts"].as_array().into_iter().flatten();
        let texts = texts.filter_map(Value::as_str).map(str::to_owned).collect();
        let their = essence(case, texts, &answer["result"]);
        let our = ours(case, &root.path().join(number.to_string())).await;
        if our != their {
            differ.push(format!("ours:   {our}\ntheirs: {their}\n        {answer}"));
        }
    }
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), cases.len(), differ.join("\n\n"));
}

/// It sees what an answer has cost once it has it; here the broker refuses the next call. So it counts a turn less, and the rest is
/// the same.
#[tokio::test]
async fn a_spent_budget_ends_the_agent_sdk_in_the_same_way() {
    let Some((python, cli)) = programs() else { return };
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    std::fs::write(work.join("a.txt"), "one\ntwo\n").unwrap();
    let dear = Usage { input: 1000, output: 400_000, ..Usage::default() };
    let read = || ToolCall::Raw { name: "Read".to_owned(), input: json!({ "file_path": "a.txt" }) };
    let first = || Answer::tools([read()]).saying("I look.").costing(dear);
    let model = ScriptedModel::start(Script::new([first(), Answer::text("never")]));
    let job = json!({
        "name": "budget", "base_url": model.base_url(), "folder": work, "max_turns": 10, "max_budget_usd": 5.0,
        "model": "claude-sonnet-4-5",
    });
    let theirs = play(&python, &cli, &[job]).remove("budget").unwrap();
    let spent = Answer::error(400).with_header(gateway::BUDGET, "cost");
    let tools = Tools { own: offline::tools(&work), ..Tools::default() };
    let ours = json!(lead_with(&settings(), &tools, Script::new([first(), spent])).await.ended.report);
    assert_eq!(ours["subtype"], "error_max_budget_usd");
    for field in ["subtype", "is_error", "stop_reason", "permission_denials", "result"] {
        assert_eq!(ours[field], theirs["result"][field], "{field}: {theirs:#}");
    }
}

#[test]
fn there_are_three_scripts_of_each_class() {
    let mut classes = BTreeMap::<&str, usize>::new();
    cases().iter().for_each(|case| *classes.entry(case.class).or_default() += 1);
    assert_eq!(classes.len(), 10, "{classes:?}");
    assert!(classes.values().all(|&scripts| scripts >= 3), "{classes:?}");
}

#[test]
fn the_official_types_read_all_that_the_scripted_model_sends() {
    let Some((python, cli)) = programs() else { return };
    let usage = Usage { input: 1, output: 2, cache_read: 3, cache_write: 4, reasoning: 0 };
    let found = json!({ "type": "web_search_result", "title": "A", "url": "https://a.example",
        "encrypted_content": "eA==", "page_age": null });
    let blocks = [
        json!({ "type": "redacted_thinking", "data": "eA==" }),
        json!({ "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": { "query": "q" } }),
        json!({ "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found] }),
        json!({ "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
            "content": { "type": "web_search_tool_result_error", "error_code": "max_uses_exceeded" } }),
    ];
    let call = |input| ToolCall::Raw { name: "Read".to_owned(), input };
    let calls = [call(json!({ "file_path": "a.txt" })), call(json!({}))];
    let mut answers = vec![
        Answer::text("It is 4. ✓").thinking("hm").costing(usage),
        Answer::tools(calls).saying("I look."),
        Answer::text("Found.").with_blocks(blocks),
        Answer::default(),
    ];
    let reasons = [
        "end_turn",
        "tool_use",
        "max_tokens",
        "stop_sequence",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
    ];
    answers.extend(reasons.map(|reason| Answer::text("x").stopping(reason)));
    // Each as a stream, and whole.
    let requests = 2 * answers.len();
    let answers = answers.into_iter().map(|answer| answer.times(2));
    let model = ScriptedModel::start(Script::new(answers).counting_asides());
    let job = json!({ "name": "types", "base_url": model.base_url(), "requests": requests });
    let parsed = play(&python, &cli, &[job]).remove("types").unwrap();
    let mut types: Vec<&str> = parsed["types"]
        .as_array()
        .unwrap_or_else(|| panic!("{parsed}"))
        .iter()
        .filter_map(Value::as_str)
        .collect();
    types.sort_unstable();
    types.dedup();
    let expected = [
        "content_block_delta",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_start",
        "message_stop",
    ];
    assert_eq!(types, expected);
    assert_eq!(model.calls(), requests);
}
