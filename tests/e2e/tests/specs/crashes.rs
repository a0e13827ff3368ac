//! `kill -9` of whatever works on a spec, in each of its phases: it goes on at the first phase without a passed gate, and no
//! prompt of a passed one is sent again.

use cofferdam_core::Phase;
use cofferdam_e2e::processes::{children_of, descendants_of, kill_9, wait_until, with_role};
use cofferdam_scripted_model::Script;
use cofferdam_test_marks::once;
use serde_json::json;

use crate::agents::Cli;
use crate::specs::stage::{IN_TIME, Stage, does, with};

/// Holds the model in each phase, once; then strikes, and lets it go on.
fn struck_in_each_phase(strike: impl Fn(&mut Stage)) {
    let held = |script: Script, phase: &Phase| {
        let [written, done] = does(*phase);
        // What is struck down before it wrote anything is done anew.
        let answers = [written.clone().held_at(phase.as_str()), written, done.clone(), done];
        with(script, *phase, answers)
    };
    let script = Phase::DEFAULT.iter().fold(Script::default(), held);
    let Some(mut stage) = Stage::new(Cli::Codex, script) else { return };
    let spec = stage.create();
    stage.execute(&spec, &json!({}));
    for phase in Phase::DEFAULT {
        let is_held = || stage.phases_asked().last() == Some(phase);
        wait_until(IN_TIME, "the phase has begun", || is_held() || is_failed(&stage, &spec));
        if !is_held() {
            // Its attempts are used up: whoever executes it again goes on where it stopped.
            stage.execute(&spec, &json!({}));
        }
        stage.model.wait_held(phase.as_str());
        strike(&mut stage);
        stage.model.release(phase.as_str());
        stage.start_again();
    }
    wait_until(IN_TIME, "the spec has ended", || {
        let found = stage.get(&format!("/api/v1/specs/{spec}"));
        ["completed", "failed"].iter().any(|status| found["status"] == *status)
    });
    if is_failed(&stage, &spec) {
        stage.execute(&spec, &json!({}));
    }
    stage.until(&spec, "completed");
    assert_eq!(stage.phases_asked(), Phase::DEFAULT, "no passed phase was asked for again");
}

fn is_failed(stage: &Stage, spec: &str) -> bool {
    stage.get(&format!("/api/v1/specs/{spec}"))["status"] == "failed"
}

fn worker(stage: &Stage) -> u32 {
    let launchers = with_role(&stage.fixture.state(), "launcher");
    assert_eq!(launchers.len(), 1, "one sandbox: {launchers:?}");
    children_of(launchers[0])[0]
}

#[once]
#[test]
fn a_killed_agent_is_started_again_in_its_phase() {
    struck_in_each_phase(|stage| {
        let agents = descendants_of(worker(stage));
        assert!(!agents.is_empty(), "the agent works");
        agents.into_iter().for_each(kill_9);
    });
}

#[once]
#[test]
fn a_killed_worker_is_started_again_in_its_phase() {
    struck_in_each_phase(|stage| kill_9(worker(stage)));
}

#[once]
#[test]
fn a_killed_node_takes_its_spec_up_again() {
    struck_in_each_phase(|stage| {
        let before = stage.service().child("dispatcher");
        kill_9(before);
        let _ = stage.service().next_child("dispatcher", before);
    });
}

#[once]
#[test]
fn a_killed_service_takes_its_spec_up_again() {
    // Its broker stays until the call in flight has its answer.
    struck_in_each_phase(|stage| stage.take().behead());
}
