//! Each CLI edits a file and makes one, sealed, with neither key nor login inside.

use cofferdam_e2e::{Agents, Record};
use cofferdam_scripted_model::{Answer, Script, Usage};
use serde_json::Value;

use crate::agents::hunt::{EVERYWHERE, encodings, files_with, hunt, plant_logins, planted_logins};
use crate::agents::stage::{Cli, Snapshot, Stage, applied, new_secret};

#[test]
fn claude_edits_sealed_and_never_has_the_key() {
    edits_sealed(Cli::Claude);
}

#[test]
fn codex_edits_sealed_and_never_has_the_key() {
    edits_sealed(Cli::Codex);
}

#[test]
fn opencode_edits_sealed_and_never_has_the_key() {
    edits_sealed(Cli::OpenCode);
}

fn edits_sealed(cli: Cli) {
    let Some(agents) = Agents::find() else { return };
    let (key, login) = (new_secret("sk-e2e"), new_secret("login"));
    let looked = hunt(&[("key", &key), ("login", &login)], EVERYWHERE);
    let answers = [
        Answer::write_file("made/new.txt", "one\ntwo\n").saying("I make a file.").costing(USAGE[0]),
        Answer::read_file("README.md").costing(USAGE[1]),
        Answer::edit_file("README.md", "hello\n", "goodbye\n").costing(USAGE[2]),
        Answer::shell(format!("{{ {looked}}} > hunt.txt 2>&1; cat hunt.txt")).costing(USAGE[3]),
        Answer::text("I have done it.").costing(USAGE[4]),
    ];
    let stage = Stage::with_key(&agents, &key, Script::new(answers));
    plant_logins(&stage.fixture, &login);
    let (repository, home) = (Snapshot::of(&stage.fixture.repository()), Snapshot::of(&stage.fixture.home()));

    let finished = stage.run(cli, &[]);
    assert_eq!((finished.code, &*finished.outcome()), (Some(0), "succeeded"), "{}", finished.stderr);
    assert_eq!(Snapshot::of(&stage.fixture.repository()), repository, "the original is untouched");
    assert_eq!(Snapshot::of(&stage.fixture.home()), home, "so is the caller's home");
    assert_eq!(stage.fixture.git(&["status", "--porcelain"]), "");

    stage.assert_the_model_had_the_key();
    stage.assert_the_key_is_nowhere();
    let with_login = files_with(&encodings(&login), &stage.fixture.path(""));
    assert!(with_login.iter().all(|file| planted_logins(&stage.fixture).contains(file)), "{with_login:?}");

    assert_says_what_it_cost(&finished.json(), &stage);
    assert!(finished.stderr.contains("sealed: native, network sealed"), "{}", finished.stderr);
    assert_tells_what_happened(&Record::of(&stage.fixture, &finished.run_id()));

    let changed = applied(&stage.fixture, &finished.diff());
    let changed: Vec<(&str, &str)> = changed.iter().map(|(name, text)| (&**name, &**text)).collect();
    let expected = [
        ("README.md", "goodbye\n"),
        ("hunt.txt", "key CLEAN\nlogin CLEAN\n"),
        ("made/new.txt", "one\ntwo\n"),
    ];
    assert_eq!(changed, expected, "{}", finished.diff());
}

/// Of a different size each, so that none can be counted for another.
const USAGE: [Usage; 5] = [usage(1000, 50), usage(200, 7), usage(30, 3), usage(4000, 11), usage(500, 13)];

const fn usage(input: u64, output: u64) -> Usage {
    Usage { input, output, cache_read: 64, cache_write: 0, reasoning: 0 }
}

fn assert_says_what_it_cost(said: &Value, stage: &Stage) {
    let tokens: u64 = USAGE.iter().map(|usage| usage.input + usage.output + usage.cache_read).sum();
    assert_eq!(said["usage"]["tokens"], tokens, "{said}");
    assert_eq!(said["usage"]["model_calls"], 5);
    assert_eq!((stage.model.calls(), stage.model.asides()), (5, 0), "nobody asked for more");
    assert_eq!(said["sealed"], true);
    assert_eq!(said["redacted"], false, "there was nothing to redact");
}

fn assert_tells_what_happened(record: &Record) {
    record.assert_ended_once();
    let said = record.messages();
    assert!(said.contains(&"I make a file.") && said.contains(&"I have done it."), "{said:?}");
    let (used, results) = (record.data_of("agent.tool_use"), record.data_of("agent.tool_result"));
    assert_eq!((used.len(), results.len()), (4, 4), "{used:?} {results:?}");
    assert!(results.iter().all(|result| result["is_error"] != true), "{results:?}");
    let found = |results: &[&Value]| results.iter().any(|one| one.to_string().contains("key CLEAN"));
    assert!(found(&results), "{results:?}");
    let input: u64 =
        record.data_of("model.usage").iter().filter_map(|one| one["input_tokens"].as_u64()).sum();
    assert_eq!(input, USAGE.iter().map(|usage| usage.input).sum::<u64>());
    let session = record.data_of("agent.session");
    assert!(
        session.iter().any(|one| one["session_id"].as_str().is_some_and(|id| !id.is_empty())),
        "{session:?}"
    );
    assert_eq!(record.data_of("sandbox.sealed").len(), 1);
}
