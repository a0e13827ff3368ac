//! What is said to an agent, what becomes of it, and when the agent is told that nothing more will come.

use std::process::Command;

use cofferdam_core::{AgentEnd, MAX_EVENT_TEXT, ToWorker, worker_line};
use serde_json::{Value, json};

use crate::support::{Worker, example, message};

fn running(script: &str) -> Worker {
    Worker::start().with_script(script)
}

fn impatient(script: &str) -> Worker {
    Worker::start_by(Command::new(example()).args(["worker", "--exit-grace-ms", "100"])).with_script(script)
}

fn report(worker: &Worker) -> Value {
    worker.data(worker_line::EXITED)[0]["report"].clone()
}

#[test]
fn an_agent_whose_turn_is_over_reads_end_of_file_and_its_report_is_passed_on() {
    let mut worker = running("read -r task; begin; over done; read -r more && exit 7; exit 0");
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    assert_eq!(report(&worker), json!({ "ok": true, "message": "done" }));
    assert_eq!(worker.data("agent.session")[0]["session_id"], "s1");
    assert_eq!(worker.data("agent.finished")[0]["report"]["message"], "done");
}

#[test]
fn the_report_says_failed_where_the_exit_status_says_nothing() {
    let mut worker = running("read -r task; begin; over 'no credit' true");
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    assert_eq!(report(&worker), json!({ "ok": false, "message": "no credit" }));
}

#[test]
fn an_agent_that_exits_in_its_turn_has_failed_and_what_it_never_took_is_refused() {
    let mut worker = running("read -r task; begin; use_tool; read -r said; exit 0");
    worker.wait_for("agent.tool_use");
    worker.send(&message("1", "follow_up", "later"));
    worker.send(&message("2", "steer", "now"));
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    assert_eq!(report(&worker)["ok"], false);
    let refused = worker.data("message.refused");
    assert_eq!(refused.len(), 2);
    assert!(refused.iter().all(|data| data["reason"] == "run_ended"), "{refused:?}");
}

#[test]
fn a_message_is_delivered_when_the_agent_took_it_and_not_when_it_was_written() {
    let mut worker = running(
        "read -r task; begin; use_tool; read -r steer; echo not yet; read -r go; took \"$steer\"; took \"$go\"
         over first; read -r next; took \"$next\"; over second",
    );
    worker.wait_for("agent.tool_use");
    worker.send(&message("1", "steer", "left"));
    worker.send(&message("2", "follow_up", "then right"));
    // A host that was restarted does not know whether it arrived.
    worker.send(&message("2", "follow_up", "then right"));
    worker.wait_for_text("not yet");
    assert!(worker.data("message.delivered").is_empty());
    worker.send(&message("3", "steer", "go"));
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    let delivered: Vec<&Value> = worker.data("message.delivered");
    let expected = [
        json!({ "id": "1", "as": "steer" }),
        json!({ "id": "3", "as": "steer" }),
        json!({ "id": "2", "as": "follow_up" }),
    ];
    assert_eq!(delivered, expected.iter().collect::<Vec<_>>());
    assert_eq!(report(&worker)["message"], "second");
}

#[test]
fn a_message_to_an_agent_that_was_dismissed_is_refused() {
    let mut worker = running("read -r task; begin; over done; read -r more; echo dismissed >&2; sleep 1000");
    worker.wait_for_text("dismissed");
    worker.send(&message("1", "follow_up", "one more thing"));
    assert_eq!(worker.wait_for("message.refused").data["reason"], "run_ended");
    worker.send(&ToWorker::Cancel { grace_ms: 0 });
    assert_eq!(worker.end(), AgentEnd::Cancelled);
}

#[test]
fn an_agent_that_does_not_exit_when_dismissed_is_ended_and_its_report_stands() {
    for trap in ["", "trap '' TERM;", "trap 'exit 9' TERM;"] {
        let mut worker =
            impatient(&format!("{trap} read -r task; begin; over done; while :; do sleep 0.05; done"));
        assert_eq!(worker.end(), AgentEnd::Dismissed);
        assert_eq!(report(&worker), json!({ "ok": true, "message": "done" }));
    }
}

#[test]
fn an_agent_that_prints_without_end_cannot_put_off_its_dismissal() {
    let mut worker = impatient("read -r task; begin; over done; trap '' TERM; while :; do echo x >&2; done");
    assert_eq!(worker.end(), AgentEnd::Dismissed);
}

#[test]
fn an_agent_that_does_not_read_stops_nobody() {
    let mut worker = running("begin; use_tool; sleep 1000");
    worker.wait_for("agent.tool_use");
    let long = "x".repeat(100_000);
    for number in 0..200 {
        worker.send(&message(&number.to_string(), "steer", &long));
    }
    assert_eq!(worker.wait_for("message.refused").data["reason"], "agent_does_not_read");
    worker.send(&ToWorker::Cancel { grace_ms: 0 });
    assert_eq!(worker.end(), AgentEnd::Cancelled);
    assert_eq!(worker.data("message.refused").len(), 200);
}

#[test]
fn a_line_of_several_megabytes_is_understood_and_one_beyond_that_is_kept() {
    let mut worker = running(
        r#"read -r task; begin
        printf '{"type":"assistant","message":{"content":[{"type":"text","text":"'
        head -c 5000000 /dev/zero | tr '\0' y; echo '"}]}}'
        printf '{"type":"assistant","x":"'; head -c 9000000 /dev/zero | tr '\0' z; echo '"}'
        over done"#,
    );
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    let said = worker.data("agent.message")[0];
    assert_eq!((said["text"].as_str().unwrap().len(), &said["cut"]), (MAX_EVENT_TEXT, &json!(true)));
    let kept = worker.data("log")[0];
    assert_eq!(kept["cut"], true);
    let rest = worker.data(worker_line::OUTPUT_REST);
    let rest: String = rest.iter().map(|data| data["text"].as_str().unwrap()).collect();
    let whole = format!("{}{rest}", kept["text"].as_str().unwrap());
    assert!(whole.starts_with(r#"{"type":"assistant","x":"zz"#) && whole.ends_with("zz\"}"));
    assert_eq!(whole.len(), r#"{"type":"assistant","x":""}"#.len() + 9_000_000);
}
