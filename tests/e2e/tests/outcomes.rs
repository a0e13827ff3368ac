//! However a program ends, its run ends in one true outcome, soon after the cause, and leaves nothing.

use std::time::Duration;

use cofferdam_e2e::{Finished, Fixture};
use cofferdam_test_marks::limits;
use serde_json::Value;

/// The promise is 3 s after the cause. A debug build on a machine that does twenty other things gets some more; what waits for
/// the program or for its timeout takes minutes.
const SOON: Duration = Duration::from_secs(3 + 27);

/// How long the run went on after its agent's last word, which each program prints just before the cause.
fn after_the_last_word(fixture: &Fixture, finished: &Finished) -> Duration {
    let events = fixture.events(&finished.run_id());
    let at = |event: Option<&Value>| event.and_then(|event| event["at_ms"].as_u64()).expect("an event");
    let last_word = events.iter().rfind(|event| event["type"] == "agent.message");
    let end =
        events.iter().rfind(|event| event["type"] == "run.finished" || event["type"] == "run.dead_lettered");
    Duration::from_millis(at(end).saturating_sub(at(last_word)))
}

fn assert_ends(fixture: &Fixture, flags: &[&str], script: &str, outcome: &str, code: i32) -> Finished {
    let finished = fixture.run(flags, script);
    let end = finished.json()["outcome"].clone();
    assert_eq!(finished.outcome(), outcome, "{end}\n{}", finished.stderr);
    assert_eq!(finished.code, Some(code), "{}", finished.stderr);
    let late = after_the_last_word(fixture, &finished);
    assert!(late < SOON, "{late:?} after the cause: {end}");
    finished
}

#[limits]
#[test]
fn a_program_that_fails_gives_its_status() {
    let fixture = Fixture::new();
    let finished = assert_ends(&fixture, &[], "echo now; exit 37", "failed/agent", 1);
    assert_eq!(finished.json()["outcome"]["exit_code"], 37);
}

#[limits]
#[test]
fn a_program_that_is_killed_gives_the_signal() {
    let fixture = Fixture::new();
    let finished = assert_ends(&fixture, &[], "echo now; kill -9 $$", "failed/agent", 1);
    let message = finished.json()["outcome"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("signal 9"), "{message}");
}

#[limits]
#[test]
fn a_program_past_its_time_is_ended_whether_it_listens_or_not() {
    for script in ["echo now; sleep 300", "trap '' TERM INT HUP; echo now; while :; do sleep 300; done"] {
        let fixture = Fixture::new();
        let finished = assert_ends(&fixture, &["--timeout", "1s"], script, "timed_out", 4);
        assert_eq!(finished.json()["outcome"]["timeout_ms"], 1_000);
    }
}

#[limits]
#[test]
fn a_program_that_prints_200_mb_is_ended_at_its_limit() {
    let fixture = Fixture::new();
    fixture.add_program("attacks");
    assert_ends(&fixture, &[], "./attacks output 200000000", "failed/output_limit", 9);
}

#[limits]
#[test]
fn a_line_of_50_mb_is_cut_in_its_event_and_whole_in_the_transcript() {
    let fixture = Fixture::new();
    fixture.add_program("attacks");
    let finished = assert_ends(&fixture, &[], "./attacks line 50000000", "succeeded", 0);
    let events = fixture.events(&finished.run_id());
    let said: Vec<&Value> = events.iter().filter(|event| event["type"] == "agent.message").collect();
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["data"]["cut"], true);
    assert_eq!(said[0]["data"]["text"].as_str().map(str::len), Some(1 << 20));
    let run = fixture.state().join("runs").join(finished.run_id());
    let transcript = find(&run, "transcript");
    let bytes = std::fs::read(&transcript).expect("a transcript");
    assert_eq!(bytes.len(), 50_000_001);
    assert!(bytes[..50_000_000].iter().all(|&byte| byte == b'x'));
}

fn find(folder: &std::path::Path, name: &str) -> std::path::PathBuf {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).expect("a readable folder").flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else if entry.file_name().to_string_lossy().contains(name) {
                return entry.path();
            }
        }
    }
    panic!("there is no {name}");
}

#[limits]
#[test]
fn fifty_thousand_lines_are_fifty_thousand_events_in_order() {
    let fixture = Fixture::new();
    let finished = assert_ends(&fixture, &[], "seq 1 50000", "succeeded", 0);
    assert!(finished.took < Duration::from_secs(30), "{:?}", finished.took);
    let printed = fixture.printed(&finished.run_id());
    assert_eq!(printed.len(), 50_000);
    assert!(printed.iter().zip(1..).all(|(line, number)| *line == number.to_string()));
}

#[limits]
#[test]
fn children_that_outlive_the_program_end_with_it() {
    let fixture = Fixture::new();
    fixture.add_program("attacks");
    assert_ends(&fixture, &[], "./attacks outlive 300; echo now", "succeeded", 0);
    assert_ends(&fixture, &[], "setsid sh -c 'sleep 300 & sleep 300' & echo now", "succeeded", 0);
}

#[limits]
#[test]
fn children_that_hold_the_pipes_do_not_hold_the_run() {
    let fixture = Fixture::new();
    let script = "(while :; do sleep 1; done) & (trap '' TERM HUP; sleep 300) & echo now; exit 3";
    let finished = assert_ends(&fixture, &[], script, "failed/agent", 1);
    assert_eq!(finished.json()["outcome"]["exit_code"], 3);
}

#[limits]
#[test]
fn a_program_that_closes_its_outputs_may_go_on() {
    let fixture = Fixture::new();
    let script = "echo now; exec >&- 2>&-; sleep 1; : > made-after";
    let finished = assert_ends(&fixture, &[], script, "succeeded", 0);
    assert!(finished.diff().contains("made-after"), "{}", finished.diff());
}

#[limits]
#[test]
fn a_program_without_memory_is_ended() {
    let fixture = Fixture::new();
    fixture.add_program("attacks");
    let script = "echo now; ./attacks memory 1000000000";
    assert_ends(&fixture, &["--memory", "64m"], script, "failed/out_of_memory", 9);
}

/// A control group tells that a process was refused; without one only the program itself knows.
#[limits]
#[test]
fn a_program_without_processes_fails() {
    let fixture = Fixture::new();
    fixture.add_program("attacks");
    let finished = fixture.run(&["--pids", "20"], "echo now; ./attacks fork 100");
    let best_effort = finished.json()["seal"]["outside"]["cgroup"].is_null();
    let (outcome, code) = if best_effort { ("failed/agent", 1) } else { ("failed/pids_limit", 9) };
    assert_eq!(finished.outcome(), outcome, "{}", finished.stderr);
    assert_eq!(finished.code, Some(code));
    assert!(after_the_last_word(&fixture, &finished) < SOON);
}

#[limits]
#[test]
fn a_program_that_writes_past_its_disk_is_ended() {
    let fixture = Fixture::new();
    let script = "echo now; dd if=/dev/zero of=big bs=1M count=80 status=none; sleep 300";
    assert_ends(&fixture, &["--disk", "20m"], script, "failed/disk_limit", 9);
}

#[limits]
#[test]
fn a_program_that_ends_before_anybody_looked_at_its_disk_is_found_out() {
    let fixture = Fixture::new();
    let script = "echo now; exec dd if=/dev/zero of=big bs=1M count=80 status=none";
    assert_ends(&fixture, &["--disk", "20m"], script, "failed/disk_limit", 9);
}

#[limits]
#[test]
fn a_program_without_open_files_gets_an_error_and_nothing_else_breaks() {
    let fixture = Fixture::new();
    fixture.add_program("attacks");
    let finished = assert_ends(&fixture, &[], "echo now; exec ./attacks fds 5000", "failed/agent", 1);
    assert!(
        finished.stderr.contains("EMFILE") || finished.stderr.contains("Too many open files"),
        "{}",
        finished.stderr
    );
}

#[limits]
#[test]
fn a_program_that_is_not_there_or_may_not_be_executed_is_missing() {
    let fixture = Fixture::new();
    fixture.write("plain.sh", "echo hi\n");
    for program in ["no-such-program", "./no-such-program", "./plain.sh", "./src"] {
        let finished = fixture.cofferdam(["run", "--json", "--", program]);
        assert_eq!(finished.outcome(), "failed/agent_missing", "{program}: {}", finished.stderr);
        assert_eq!(finished.code, Some(7), "{program}");
        assert!(finished.stderr.contains(program), "{}", finished.stderr);
    }
}
