//! A gate that stops what is not good enough, and says why.

use cofferdam_core::{Phase, spec_example};
use cofferdam_scripted_model::{Answer, Script};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use crate::agents::Cli;
use crate::specs::stage::{Stage, does, does_all, leaves, with};

fn poor() -> Value {
    json!({ "codebase_summary": "short", "project_type": "shop" })
}

fn tries(answers: impl IntoIterator<Item = Value>) -> Vec<Answer> {
    let once = |output: Value| [leaves(Phase::Explore, &output), Answer::text("It is written.")];
    answers.into_iter().flat_map(once).collect()
}

#[once]
#[test]
fn a_gate_that_fails_twice_passes_on_the_third_try_with_its_reasons_in_the_prompts() {
    let good = spec_example(Phase::Explore);
    let script = with(Script::default(), Phase::Explore, tries([poor(), json!([]), good]));
    let Some(stage) = Stage::new(Cli::Codex, script) else { return };
    let spec = stage.create();
    stage.execute(&spec, &json!({ "phases": ["explore"] }));
    let found = stage.until(&spec, "completed");
    let explore = &found["phases"][0];
    assert_eq!((&explore["tries"], &explore["score"]), (&json!(3), &json!(1.0)), "{found:#}");

    let events = stage.events(&spec);
    let outputs: Vec<&Value> = events.iter().filter(|event| event["type"] == "phase.output").collect();
    assert_eq!(outputs.len(), 3, "{events:#?}");
    for refused in &outputs[..2] {
        let reasons = refused["data"]["reasons"].as_array().expect("a list");
        assert!(!reasons.is_empty(), "{refused:#}");
        for reason in reasons {
            let reason = reason.as_str().expect("a text");
            assert!(stage.model_was_told(reason), "`{reason}` is in no prompt");
        }
    }
    assert_eq!(outputs[2]["data"]["passed"], true, "{:#}", outputs[2]);
}

#[once]
#[test]
fn three_failures_end_as_failed_with_the_reasons() {
    let script = with(does_all(), Phase::Explore, []);
    let script = Script { sessions: Vec::new(), ..script };
    let script = with(script, Phase::Explore, tries([poor(), poor(), poor()]));
    let Some(stage) = Stage::new(Cli::Codex, script) else { return };
    let spec = stage.create();
    stage.execute(&spec, &json!({}));
    let found = stage.until(&spec, "failed");
    let explore = &found["phases"][0];
    assert_eq!((&explore["tries"], &explore["state"]), (&json!(3), &json!("failed")), "{found:#}");
    assert!(explore["reasons"].as_array().is_some_and(|reasons| !reasons.is_empty()), "{found:#}");
    assert_eq!(stage.phases_asked(), [Phase::Explore], "nothing is built on what did not pass");
    let run = stage.get(&format!("/api/v1/specs/{spec}/execution-status"));
    assert!(run.to_string().contains("explore"), "{run:#}");
}

#[once]
#[test]
fn an_output_that_cannot_be_one_is_a_try_with_its_reason() {
    let phase = Phase::Explore;
    let folder = "$(ls -dt /tmp/cofferdam-spec-explore-*/ | head -n 1)";
    let hostile = [
        format!("ln -s /etc/passwd \"{folder}/explore.json\""),
        format!("mkfifo \"{folder}/explore.json\""),
        format!("rm -rf \"{folder}\""),
    ];
    for command in hostile {
        let answers =
            [Answer::shell(command.clone()), Answer::text("It is written.")].into_iter().chain(does(phase));
        let Some(stage) = Stage::new(Cli::Codex, with(Script::default(), phase, answers)) else { return };
        let spec = stage.create();
        stage.execute(&spec, &json!({ "phases": ["explore"] }));
        let found = stage.until(&spec, "completed");
        assert_eq!(found["phases"][0]["tries"], 2, "{command}: {found:#}");
    }
}
