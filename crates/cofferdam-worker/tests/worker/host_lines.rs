//! What the host sends, in every order and shape.

use std::process::Command;

use crate::support::{Worker, example, job, job_of};
use cofferdam_core::{AgentEnd, ToWorker, worker_line};

#[test]
fn lines_that_are_not_of_the_protocol_become_logs_and_change_nothing() {
    let mut worker = Worker::start();
    worker.send_raw(b"");
    worker.send_raw(b"not json");
    worker.send_raw(b"{\"type\":\"unknown\"}");
    worker.send_raw(b"\xff\xfe");
    worker.send_raw(b"   ");
    worker.send(&ToWorker::Job(Box::new(job(&["true"]))));
    worker.send_raw(b"{\"type\":\"start\"");
    worker.send(&ToWorker::START);
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    assert_eq!(worker.data("log").len(), 4);
}

#[test]
fn a_repeated_job_or_start_changes_nothing_and_another_attempts_job_is_refused() {
    let mut worker = Worker::start();
    let repeated = ToWorker::Job(Box::new(job(&["bash", "-c", "echo ready; sleep 1000"])));
    worker.send(&repeated);
    worker.send(&repeated);
    worker.send(&ToWorker::START);
    worker.wait_for_text("ready");
    worker.send(&repeated);
    worker.send(&ToWorker::START);
    assert!(worker.data("log").is_empty());
    worker.send(&ToWorker::Job(Box::new(job_of(2, &["true"]))));
    worker.wait_for("log");
    worker.send(&ToWorker::Cancel { grace_ms: 1_000 });
    assert_eq!(worker.end(), AgentEnd::Cancelled);
    assert_eq!(worker.data(worker_line::SEAL).len(), 1);
    assert_eq!(worker.data("agent.started").len(), 1);
    assert_eq!(worker.data("log").len(), 1);
}

#[test]
fn a_message_that_cannot_be_delivered_is_refused_with_the_reason() {
    let message = |id: &str, kind: &str| ToWorker::Message {
        id: id.to_owned(),
        kind: kind.to_owned(),
        content: "hello".to_owned(),
    };
    let mut worker = Worker::start();
    worker.send(&message("m1", "steer"));
    worker.send(&ToWorker::Job(Box::new(job(&["bash", "-c", "echo ready; sleep 1000"]))));
    worker.send(&ToWorker::START);
    worker.wait_for_text("ready");
    worker.send(&message("m2", "follow_up"));
    worker.send(&message("m3", "shout"));
    worker.send(&ToWorker::Cancel { grace_ms: 1_000 });
    worker.send(&message("m4", "steer"));
    assert_eq!(worker.end(), AgentEnd::Cancelled);
    let refused: Vec<(&str, &str)> = worker
        .data("message.refused")
        .iter()
        .map(|data| (data["id"].as_str().unwrap(), data["reason"].as_str().unwrap()))
        .collect();
    let expected =
        [("m1", "not_started"), ("m2", "not_supported"), ("m3", "unknown_kind"), ("m4", "run_ended")];
    assert_eq!(refused[..], expected[..refused.len()]);
    // The last one may come when nobody answers any more.
    assert!(refused.len() >= 3);
}

#[test]
fn end_of_file_is_not_an_end() {
    let mut worker = Worker::running_script("echo ready; sleep 0.2; exit 8");
    worker.close_stdin();
    assert_eq!(worker.end(), AgentEnd::Exited { code: 8 });
}

#[test]
fn end_of_file_before_the_start_leaves_the_worker_waiting() {
    let mut worker = Worker::start_by(Command::new(example()).args(["worker", "--heartbeat-ms", "50"]));
    worker.send(&ToWorker::Job(Box::new(job(&["true"]))));
    worker.close_stdin();
    worker.wait_for(worker_line::SEAL);
    worker.wait_for("heartbeat");
    worker.wait_for("heartbeat");
    assert!(worker.data(worker_line::EXITED).is_empty());
}

#[test]
fn an_end_after_the_start_lets_the_agent_finish() {
    let mut worker = Worker::running_script("echo ready; sleep 0.2; exit 2");
    worker.wait_for_text("ready");
    worker.send(&ToWorker::End);
    assert_eq!(worker.end(), AgentEnd::Exited { code: 2 });
}

#[test]
fn the_worker_cannot_be_traced_or_read_by_its_own_user() {
    let mut worker = Worker::start();
    worker.wait_for(worker_line::STARTED);
    let owner = std::os::unix::fs::MetadataExt::uid(
        &std::fs::metadata(format!("/proc/{}/environ", worker.pid())).unwrap(),
    );
    // The kernel gives the files of a process that is not dumpable to root.
    assert_eq!(owner, 0);
}
