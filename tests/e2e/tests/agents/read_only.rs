//! A model that writes whatever it is told to, in a workspace that is read-only: its tools fail, it is told so, and the run
//! ends as it did.

use cofferdam_e2e::{Agents, Record};
use cofferdam_scripted_model::Answer;

use crate::agents::stage::{Cli, Snapshot, Stage};

#[test]
fn claude_reviews_and_cannot_write() {
    reviews_and_cannot_write(Cli::Claude);
}

#[test]
fn codex_reviews_and_cannot_write() {
    reviews_and_cannot_write(Cli::Codex);
}

#[test]
fn opencode_reviews_and_cannot_write() {
    reviews_and_cannot_write(Cli::OpenCode);
}

fn reviews_and_cannot_write(cli: Cli) {
    let Some(agents) = Agents::find() else { return };
    let answers = || {
        [
            Answer::read_file("README.md"),
            Answer::write_file("made/new.txt", "one\n"),
            Answer::shell("echo more >> README.md && echo it-was-written"),
            Answer::text("I could not write it."),
        ]
    };
    let stage = Stage::new(&agents, answers());
    let repository = Snapshot::of(&stage.fixture.repository());
    let finished = stage.run(cli, &["--read-only"]);
    assert_eq!((finished.code, &*finished.outcome()), (Some(0), "succeeded"), "{}", finished.stderr);
    assert_eq!(finished.diff(), "");
    assert_eq!(Snapshot::of(&stage.fixture.repository()), repository, "the original is untouched");
    assert!(finished.stderr.contains(", workspace read-only, "), "{}", finished.stderr);
    assert_eq!(finished.json()["seal"]["workspace"]["access"], "read_only");
    stage.assert_the_model_had_the_key();

    let record = Record::of(&stage.fixture, &finished.run_id());
    record.assert_ended_once();
    assert!(record.messages().contains(&"I could not write it."), "{:?}", record.messages());
    let results = results(&record);
    assert!(results.contains("hello"), "it reads: {results}");
    let refusals = results.to_lowercase().matches("read-only").count();
    assert!(refusals >= 1, "the tools were told why: {results}");
    assert!(!results.contains("it-was-written\\n") && !results.contains("\"it-was-written"), "{results}");

    // The control: the same model, where it may.
    let stage = Stage::new(&agents, answers());
    let finished = stage.run(cli, &[]);
    let diff = finished.diff();
    assert!(diff.contains("made/new.txt") && diff.contains("+more"), "{diff}");
}

/// What the tools answered.
fn results(record: &Record) -> String {
    let results = record.data_of("agent.tool_result");
    results.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
