//! `stop-all` while runs have calls of the model in flight.

use std::time::Duration;

use cofferdam_core::{Network, RunId, RunState};
use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Fixture, Record, Service};
use cofferdam_scripted_model::{Answer, Ending, Script, ScriptedModel};
use cofferdam_test_marks::once;

use super::http::{get, post};
use crate::service::stage::Stage;

const KEY: &str = "sk-ant-the-key-of-the-caller";
const IN_TIME: Duration = Duration::from_secs(180);
const RUNS: usize = 20;
/// One call of the model through the sandbox's way out.
const CALL: &str = "curl -sSN --noproxy '*' http://127.0.0.1:3128/model/anthropic/v1/messages \
     -H 'content-type: application/json' -H 'anthropic-version: 2023-06-01' \
     -d '{\"model\":\"claude-sonnet-4-5\",\"max_tokens\":16,\"stream\":true,\
     \"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}' > answer.txt; tail -c 400 answer.txt";

struct Streaming {
    service: Service,
    model: ScriptedModel,
    runs: Vec<RunId>,
    stage: Stage,
}

/// A service with runs whose answers are held in their middle.
fn streaming(count: usize) -> Streaming {
    let mut fixture = Fixture::new();
    let answer = Answer::text("I have said it all.").held_after(2, "stream");
    let mut script = Script::new([]).expecting_key(KEY).ending_with(answer.clone());
    script.aside = answer;
    let model = ScriptedModel::start(script);
    fixture.set_env("ANTHROPIC_API_KEY", KEY);
    fixture.set_env("ANTHROPIC_BASE_URL", &model.base_url());
    let stage = Stage::of(fixture);
    let runs = (0..count)
        .map(|_| {
            stage.queue.enqueue(&stage.fixture, &stage.marks, CALL, |request| {
                request.policy.network = Network::Sealed;
                request.policy.egress.model = true;
            })
        })
        .collect();
    let service = Service::start(&stage.fixture, &["--capacity", "20", "--drain", "1"]);
    wait_until(IN_TIME, "every call is in flight", || model.requests().len() >= count);
    Streaming { service, model, runs, stage }
}

#[once]
#[test]
fn stop_all_during_twenty_runs_cuts_nothing_and_the_next_start_ends_each_once() {
    let Streaming { service, model, runs, stage } = streaming(RUNS);
    let broker = service.child("broker");
    let answer = post(&service, "/stop-all", "");
    assert_eq!(answer["cancelledRuns"], 0, "{answer:#}");
    for name in ["dispatcher", "broker"] {
        assert!(answer["stopped"].as_array().is_some_and(|names| names.contains(&name.into())), "{answer:#}");
    }
    let is_gone = || get(&service, "/dispatcher")["process"]["status"] == "stopped";
    wait_until(IN_TIME, "the dispatcher leaves its runs", is_gone);
    assert_eq!(service.child("broker"), broker, "it stays as long as an attempt of its lives");
    post(&service, "/dispatcher/start", "{}");
    for run in &runs {
        wait_until(IN_TIME, "the run is taken up again", || stage.was_adopted(run));
    }
    model.release("stream");
    for run in &runs {
        let _ = stage.queue.wait_for_end_within(run, IN_TIME);
    }
    let state = stage.fixture.state();
    let is_empty = |name: &str| std::fs::read_dir(state.join(name)).map_or(0, Iterator::count) == 0;
    wait_until(IN_TIME, "nothing is left", || is_empty("sandboxes/native") && is_empty("workspaces"));
    for run in &runs {
        let record = Record::of(&stage.fixture, run.as_str());
        record.assert_ended_once();
        assert_eq!(record.outcome(), "succeeded", "{:#}", record.shown["outcome"]);
        assert_eq!(stage.queue.run(run).attempts, 1);
        assert_eq!(record.data_of("egress.interrupted").len(), 0, "nothing was cut");
        assert!(record.messages().concat().contains("message_stop"), "{:#?}", record.messages());
    }
    assert!(model.requests().iter().all(|one| one.ending == Some(Ending::Answered)));
    assert_eq!(model.requests().len(), RUNS, "no call was made twice");
    service.stop();
}

#[once]
#[test]
fn stop_all_with_cancel_cancels_what_runs_and_then_the_broker_goes_too() {
    let Streaming { service, model, runs, stage } = streaming(2);
    let answer = post(&service, "/stop-all", r#"{"cancel": true}"#);
    assert_eq!(answer["cancelledRuns"], 2, "{answer:#}");
    for run in &runs {
        assert_eq!(stage.queue.wait_for_end_within(run, IN_TIME), RunState::Cancelled);
    }
    for name in ["dispatcher", "broker"] {
        let is_gone = || get(&service, &format!("/{name}"))["process"]["status"] == "stopped";
        wait_until(IN_TIME, "it stops", is_gone);
    }
    assert_eq!(cofferdam_e2e::processes::children_of(service.pid()), Vec::<u32>::new());
    model.release("stream");
    service.stop();
}
