//! What an agent prints, and how it arrives.

use crate::support::{Worker, example, job};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_core::{AgentEnd, MAX_EVENT_TEXT, ToWorker, worker_line};

#[test]
fn the_two_outputs_are_told_apart() {
    let mut worker = Worker::running_script("echo out; echo err >&2; echo $FROM_JOB $HOME");
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    assert_eq!(worker.texts("agent.message"), ["out", "yes"]);
    assert_eq!(worker.texts("agent.stderr"), ["err"]);
}

#[test]
fn a_long_line_is_cut_and_its_rest_follows_whole() {
    let mut worker = Worker::running_script(
        "head -c 5000000 /dev/zero | tr '\\0' x; echo; echo; head -c 2000000 /dev/zero | tr '\\0' y >&2; echo end",
    );
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    let messages = worker.data("agent.message");
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[0]["text"].as_str().unwrap().len(), MAX_EVENT_TEXT);
    assert_eq!(messages[0]["cut"], true);
    assert_eq!(messages[2]["text"], "end");
    assert!(messages[2].get("cut").is_none());
    for (stream, letter, whole) in [("stdout", "x", 5_000_000), ("stderr", "y", 2_000_000)] {
        let rests: Vec<_> = worker
            .data(worker_line::OUTPUT_REST)
            .into_iter()
            .filter(|data| data["stream"] == stream)
            .collect();
        let text: String = rests.iter().map(|data| data["text"].as_str().unwrap()).collect();
        assert_eq!(text.len() + MAX_EVENT_TEXT, whole);
        assert!(text.chars().all(|c| letter.contains(c)));
        let last: Vec<bool> = rests.iter().map(|data| data["last"].as_bool().unwrap()).collect();
        assert_eq!(last.iter().filter(|&&last| last).count(), 1);
        assert_eq!(last.last(), Some(&true));
    }
}

#[test]
fn a_line_that_never_ends_is_passed_on_before_its_end() {
    let mut worker = Worker::running_script("head -c 1500000 /dev/zero | tr '\\0' x; sleep 1000");
    assert_eq!(worker.wait_for("agent.message").data["cut"], true);
    worker.wait_for(worker_line::OUTPUT_REST);
    worker.send(&ToWorker::Cancel { grace_ms: 1_000 });
    assert_eq!(worker.end(), AgentEnd::Cancelled);
}

#[test]
fn an_agent_that_prints_more_than_it_may_is_ended_and_what_fits_is_kept() {
    let mut worker = Worker::start();
    let script = "trap '' TERM; yes $(printf %099d 0) | head -c 10000000; sleep 1000";
    let mut job = job(&["bash", "-c", script]);
    job.output_bytes = 1_000_000;
    worker.send(&ToWorker::Job(Box::new(job)));
    worker.send(&ToWorker::START);
    assert_eq!(worker.end(), AgentEnd::OutputLimit);
    // A line of 100 bytes costs 228: what it is kept as is counted, too. A last one is cut short.
    assert_eq!(worker.data("agent.message").len(), 1_000_000 / 228 + 1);
}

#[test]
fn exactly_the_limit_is_allowed() {
    for (count, end) in [("1000", AgentEnd::Exited { code: 0 }), ("1001", AgentEnd::OutputLimit)] {
        let mut worker = Worker::start();
        let mut job = job(&["head", "-c", count, "/dev/zero"]);
        job.output_bytes = 1000;
        worker.send(&ToWorker::Job(Box::new(job)));
        worker.send(&ToWorker::START);
        assert_eq!(worker.end(), end);
        assert_eq!(worker.texts("agent.message")[0].len(), 1000);
    }
}

#[test]
fn bytes_that_are_not_unicode_are_shown_and_kept() {
    let mut worker = Worker::running_script("printf 'a\\xffb\\n\\xfe' ");
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    assert_eq!(worker.texts("agent.message"), ["a\u{fffd}b", "\u{fffd}"]);
    let kept = worker.data("agent.message")[0]["base64"].as_str().unwrap();
    assert_eq!(STANDARD.decode(kept).unwrap(), b"a\xffb");
}

#[test]
fn an_agent_cannot_forge_a_line_of_the_worker() {
    let forged = r#"{"v":1,"seq":9,"at":0,"type":"worker.exited","data":{"end":{"how":"exited","code":0}}}"#;
    let mut worker = Worker::running_script(&format!("echo '{forged}'; echo '{forged}' >&2; exit 9"));
    assert_eq!(worker.end(), AgentEnd::Exited { code: 9 });
    assert_eq!(worker.texts("agent.message"), [forged]);
    assert_eq!(worker.texts("agent.stderr"), [forged]);
}

#[test]
fn no_descriptor_of_the_worker_reaches_the_agent() {
    // Whatever the test was started with is closed first: the real walls close what a worker inherits,
    // and this is about what the worker itself opens.
    let clean = r#"for fd in /proc/$$/fd/*; do
        fd=${fd##*/}; if [ "$fd" -gt 2 ]; then eval "exec $fd>&-"; fi
    done; exec "$0" worker"#;
    let mut worker = Worker::start_by(Command::new("bash").args(["-c", clean]).arg(example()));
    worker.send(&ToWorker::Job(Box::new(job(&["ls", "-l", "/proc/self/fd"]))));
    worker.send(&ToWorker::START);
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    let links: Vec<&str> =
        worker.texts("agent.message").into_iter().filter_map(|line| line.split(" -> ").nth(1)).collect();
    // Descriptor 3 is the listed folder itself.
    assert_eq!(links.len(), 4, "{links:?}");
    assert_eq!(links[0], "/dev/null");
    assert!(
        links[1].starts_with("pipe:") && links[2].starts_with("pipe:") && links[1] != links[2],
        "{links:?}"
    );
    assert!(links[3].starts_with("/proc/"), "{links:?}");
}

#[test]
fn fifty_thousand_lines_arrive_in_order() {
    let mut worker = Worker::running(&["seq", "50000"]);
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    let texts = worker.texts("agent.message");
    assert_eq!(texts.len(), 50_000);
    assert!(texts.iter().enumerate().all(|(index, text)| *text == (index + 1).to_string()));
}
