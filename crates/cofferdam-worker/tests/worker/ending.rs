//! How an agent's end is seen, whatever the agent does.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Worker, assert_gone, example, job};
use cofferdam_core::{AgentEnd, FromWorker, ToWorker, worker_line};

#[test]
fn a_program_that_works_is_reported_from_its_start_to_its_end() {
    let mut worker = Worker::running(&["printf", "one\\ntwo\\nlast without newline"]);
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    let types: Vec<&str> = worker.seen.iter().map(|line| line.line_type.as_str()).collect();
    assert_eq!(
        types,
        [
            "worker.started",
            "worker.seal",
            "agent.started",
            "agent.message",
            "agent.message",
            "agent.message",
            "agent.finished",
            "worker.exited"
        ]
    );
    assert_eq!(worker.texts("agent.message"), ["one", "two", "last without newline"]);
    assert_eq!(worker.data("agent.started")[0]["argv0"], "printf");
    assert_eq!(worker.data("worker.seal")[0]["writable"][0], "/tmp");
}

#[test]
fn an_exit_status_and_a_signal_are_told_apart() {
    assert_eq!(Worker::running_script("exit 7").end(), AgentEnd::Exited { code: 7 });
    assert_eq!(Worker::running_script("exit 137").end(), AgentEnd::Exited { code: 137 });
    assert_eq!(Worker::running_script("kill -9 $$").end(), AgentEnd::Signaled { signal: 9 });
    assert_eq!(Worker::running_script("kill -TERM $$").end(), AgentEnd::Signaled { signal: 15 });
}

#[test]
fn a_program_that_is_not_there_or_not_executable_was_never_started() {
    for program in ["/no/such/program", "no-such-program", "/etc/passwd", "/tmp"] {
        let mut worker = Worker::running(&[program]);
        let AgentEnd::NotStarted { reason } = worker.end() else { panic!("{program} was started") };
        assert!(reason.contains(program), "{reason}");
        assert!(worker.data("agent.started").is_empty());
        assert!(worker.data("agent.finished").is_empty());
    }
}

#[test]
fn a_working_directory_that_is_not_there_fails_the_probe_and_not_the_worker() {
    let mut worker = Worker::start();
    let mut job = job(&["true"]);
    job.working_directory = "/no/such/folder".to_owned();
    worker.send(&ToWorker::Job(Box::new(job)));
    let AgentEnd::NotStarted { reason } = worker.end() else { panic!("it was started") };
    assert!(reason.starts_with("probe failed: ") && reason.contains("/no/such/folder"), "{reason}");
}

#[test]
fn a_failed_probe_ends_the_worker_before_the_agent_starts() {
    let mut worker = Worker::start();
    let mut job = job(&["true"]);
    job.env.insert("PROBE_FAILS".to_owned(), "1".to_owned());
    worker.send(&ToWorker::Job(Box::new(job)));
    let AgentEnd::NotStarted { reason } = worker.end() else { panic!("it was started") };
    assert!(reason.contains("the probe was told to fail"), "{reason}");
    assert!(worker.data(worker_line::SEAL).is_empty());
    assert_eq!(worker.texts("log"), [reason]);
}

#[test]
fn a_worker_that_is_given_no_job_does_not_wait_for_ever() {
    let mut worker = Worker::start_by(Command::new(example()).args(["worker", "--job-within-ms", "100"]));
    let AgentEnd::NotStarted { reason } = worker.end() else { panic!("it had nothing to start") };
    assert_eq!(reason, "no job came within 100ms");
}

#[test]
fn an_agent_that_was_cancelled_behind_its_walls_never_starts_and_is_gone() {
    let mut worker = Worker::start();
    worker.send(&ToWorker::Job(Box::new(job(&["echo", "started"]))));
    worker.wait_for(worker_line::SEAL);
    let children = format!("/proc/{0}/task/{0}/children", worker.pid());
    let held = std::fs::read_to_string(children).expect("the worker lives").trim().to_owned();
    assert!(!held.is_empty() && !held.contains(' '), "one process waits: {held}");
    worker.send(&ToWorker::Cancel { grace_ms: 20_000 });
    assert_eq!(worker.end(), AgentEnd::Cancelled);
    assert_gone(&held);
    assert!(worker.data("agent.started").is_empty() && worker.texts("agent.message").is_empty());
}

#[test]
fn a_cancelled_agent_may_end_in_its_own_way() {
    let mut worker = Worker::running_script(
        "trap 'echo cleaned up; exit 3' TERM; echo ready; while :; do sleep 0.05; done",
    );
    worker.wait_for_text("ready");
    worker.send(&ToWorker::Cancel { grace_ms: 20_000 });
    assert_eq!(worker.end(), AgentEnd::Cancelled);
    assert!(worker.texts("agent.message").contains(&"cleaned up"));
}

#[test]
fn an_agent_that_ignores_the_request_is_killed_after_the_grace_with_all_it_started() {
    let mut worker = Worker::running_script(
        "trap '' TERM; setsid sleep 1000 & echo $!; sleep 1000 & echo $!; echo ready; wait; sleep 1000",
    );
    worker.wait_for_text("ready");
    let asked = Instant::now();
    worker.send(&ToWorker::Cancel { grace_ms: 300 });
    assert_eq!(worker.end(), AgentEnd::Cancelled);
    assert!(asked.elapsed() >= Duration::from_millis(300));
    for pid in &worker.texts("agent.message")[..2] {
        assert_gone(pid);
    }
}

#[test]
fn a_second_cancel_shortens_the_grace() {
    let mut worker = Worker::running_script("trap '' TERM; echo ready; sleep 1000");
    worker.wait_for_text("ready");
    worker.send(&ToWorker::Cancel { grace_ms: u64::MAX });
    worker.send(&ToWorker::Cancel { grace_ms: 0 });
    assert_eq!(worker.end(), AgentEnd::Cancelled);
}

#[test]
fn an_agent_that_never_stops_printing_is_killed_after_the_grace_all_the_same() {
    let mut worker = Worker::start();
    let mut job = job(&["bash", "-c", "trap '' TERM; while :; do echo y; done"]);
    job.output_bytes = u64::MAX;
    worker.send(&ToWorker::Job(Box::new(job)));
    worker.send(&ToWorker::START);
    worker.wait_for_text("y");
    worker.send(&ToWorker::Cancel { grace_ms: 100 });
    assert_eq!(worker.end(), AgentEnd::Cancelled);
}

#[test]
fn a_cancel_before_the_job_or_before_the_start_starts_nothing() {
    let mut worker = Worker::start();
    worker.send(&ToWorker::Cancel { grace_ms: 1 });
    assert_eq!(worker.end(), AgentEnd::Cancelled);

    for line in [ToWorker::Cancel { grace_ms: 1 }, ToWorker::End] {
        let mut worker = Worker::start();
        worker.send(&ToWorker::Job(Box::new(job(&["true"]))));
        worker.wait_for(worker_line::SEAL);
        worker.send(&line);
        assert_eq!(worker.end(), AgentEnd::Cancelled);
        assert!(worker.data("agent.started").is_empty());
    }
}

#[test]
fn children_that_outlive_the_agent_are_killed_even_if_they_left_its_session() {
    let mut worker = Worker::running_script(
        "setsid bash -c 'echo $$; sleep 1000' & (setsid sleep 1000 >/dev/null 2>&1 & echo $!); sleep 0.2; exit 5",
    );
    assert_eq!(worker.end(), AgentEnd::Exited { code: 5 });
    let pids = worker.texts("agent.message");
    assert_eq!(pids.len(), 2);
    for pid in pids {
        assert_gone(pid);
    }
}

#[test]
fn what_a_child_prints_just_after_the_agents_end_is_still_reported() {
    let mut worker = Worker::running_script("(sleep 0.05; echo late) & exit 0");
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    assert_eq!(worker.texts("agent.message"), ["late"]);
}

#[test]
fn closing_its_outputs_does_not_end_an_agent() {
    let mut worker = Worker::running_script("echo first; exec >&- 2>&-; sleep 0.3; exit 4");
    assert_eq!(worker.end(), AgentEnd::Exited { code: 4 });
    assert_eq!(worker.texts("agent.message"), ["first"]);
}

#[test]
fn orphans_are_reaped_while_the_agent_runs() {
    let mut worker = Worker::running_script("(sleep 0.05 & echo $!); echo ready; sleep 1000");
    worker.wait_for_text("ready");
    let orphan = worker.texts("agent.message")[0].to_owned();
    assert_gone(&orphan);
    worker.send(&ToWorker::Cancel { grace_ms: 1_000 });
    assert_eq!(worker.end(), AgentEnd::Cancelled);
}

#[test]
fn a_worker_that_nobody_listens_to_ends_and_takes_the_agent_along() {
    let mut child = Command::new(example())
        .args(["worker", "--heartbeat-ms", "20"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in [ToWorker::Job(Box::new(job(&["bash", "-c", "echo $$; sleep 1000"]))), ToWorker::START] {
        writeln!(stdin, "{}", serde_json::to_string(&line).unwrap()).unwrap();
    }
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let agent = loop {
        let line = FromWorker::parse(&lines.next().unwrap().unwrap()).unwrap();
        if line.line_type == "agent.message" {
            break line.data["text"].as_str().unwrap().to_owned();
        }
    };
    drop(lines);
    assert!(!child.wait().unwrap().success(), "a success would claim that the last line was written");
    assert_gone(&agent);
}

const NEW_PID_NAMESPACE: [&str; 5] = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];

#[test]
fn as_the_first_process_of_a_pid_namespace_it_ends_everything_in_it_and_nothing_else() {
    let tried = Command::new("unshare").args(NEW_PID_NAMESPACE).arg("true").status();
    if !tried.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: this machine gives no user namespaces");
        return;
    }
    let mut bystander = Command::new("sleep").arg("1000").spawn().unwrap();
    let mut worker =
        Worker::start_by(Command::new("unshare").args(NEW_PID_NAMESPACE).arg(example()).arg("worker"));
    assert_eq!(worker.wait_for(worker_line::STARTED).data["pid"], 1);
    let script = "for i in {1..40}; do (setsid sleep 1000 &); done; kill -9 1; kill -TERM 1; exit 6";
    worker.send(&ToWorker::Job(Box::new(job(&["bash", "-c", script]))));
    worker.send(&ToWorker::START);
    assert_eq!(worker.end(), AgentEnd::Exited { code: 6 });
    assert!(worker.data("log").is_empty(), "nothing was given up: {:?}", worker.data("log"));
    assert!(bystander.try_wait().unwrap().is_none(), "the bystander lives");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn a_tree_that_keeps_forking_is_ended_too() {
    let script = "fork() { (sleep 0.01; fork) & (sleep 0.01) & }; fork; echo ready; wait; sleep 1000";
    let mut worker = Worker::running_script(script);
    worker.wait_for_text("ready");
    worker.send(&ToWorker::Cancel { grace_ms: 0 });
    assert_eq!(worker.end(), AgentEnd::Cancelled);
    assert!(worker.data("log").is_empty(), "nothing was given up: {:?}", worker.data("log"));
}
