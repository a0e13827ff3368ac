//! One `kill -9` of `cofferdam run` after every durable write: the next start tells the truth about the run,
//! repeats nothing and leaves nothing behind.
//!
//! One test for each failpoint of the store and of the runner. The last test fails if one is missing.

use std::time::Duration;

use cofferdam_e2e::processes::{self, wait_until};
use cofferdam_e2e::{Fixture, Marks, Record, cgroups_of};
use cofferdam_test_marks::once;

/// How long the sandbox of a dead process may live.
const SOON: Duration = Duration::from_secs(3);
/// Says something, changes something, and takes long enough that every line is a batch of its own.
const WORK: &str = "echo one; sleep 0.3; echo more >> README.md; echo two; sleep 0.3";

/// Whether the crash must happen, or only may: how many batches an agent's lines make is up to the clock.
#[derive(Clone, Copy, PartialEq)]
enum Reached {
    Always,
    Perhaps,
}

macro_rules! crash_tests {
    ($($name:ident: $failpoint:literal, $reached:ident, $check:ident;)+) => {
        /// The failpoints that a test below arms.
        const ARMED: &[&str] = &[$($failpoint),+];
        $(#[test]
        fn $name() {
            $check($failpoint, Reached::$reached);
        })+
    };
}

crash_tests! {
    a_run_killed_after_it_was_accepted_is_lost: "store.enqueue", Always, is_lost;
    a_run_killed_after_it_was_claimed_is_lost: "store.claim", Always, is_lost;
    a_run_killed_after_its_workspace_was_prepared_is_lost: "runner.prepared", Always, is_lost;
    a_run_killed_after_its_sandbox_was_made_is_lost: "runner.sandbox_created", Always, is_lost;
    a_run_killed_after_its_job_was_sent_is_lost: "runner.job_sent", Always, is_lost;
    a_run_killed_after_its_seal_was_recorded_is_lost: "store.record_seal", Always, is_lost;
    a_run_killed_after_its_agent_was_let_in_is_lost: "runner.start_sent", Always, is_lost;
    a_run_killed_after_its_1st_batch_is_told_truly: "store.append", Always, is_told_truly;
    a_run_killed_after_its_2nd_batch_is_told_truly: "store.append:2", Always, is_told_truly;
    a_run_killed_after_its_3rd_batch_is_told_truly: "store.append:3", Perhaps, is_told_truly;
    a_run_killed_after_its_4th_batch_is_told_truly: "store.append:4", Perhaps, is_told_truly;
    a_run_killed_after_its_5th_batch_is_told_truly: "store.append:5", Perhaps, is_told_truly;
    a_run_killed_after_its_lease_was_renewed_is_lost: "store.renew", Always, is_lost_late;
    a_run_killed_after_its_transcript_was_written_has_succeeded: "runner.transcript", Always, has_succeeded;
    a_run_killed_after_its_diff_was_written_has_succeeded: "runner.diff", Always, has_succeeded;
    a_run_killed_after_its_summary_was_written_has_succeeded: "runner.summary", Always, has_succeeded;
    a_run_killed_after_all_was_kept_has_succeeded: "runner.artifacts", Always, has_succeeded;
    a_run_killed_after_it_was_finished_has_succeeded: "store.finish", Always, has_succeeded;
    a_run_killed_after_its_sandbox_was_destroyed_has_succeeded: "runner.destroyed", Always, has_succeeded;
    a_run_killed_after_its_workspace_was_removed_has_succeeded:
        "runner.workspace_removed", Always, has_succeeded;
    a_run_killed_between_its_attempts_is_lost_and_not_tried_again:
        "store.schedule_retry", Always, is_not_tried_again;
    a_recovery_killed_after_it_took_a_run_over_is_done_again:
        "store.adopt_for_recovery", Always, is_recovered_again;
    a_recovery_killed_after_it_took_an_unclaimed_run_is_done_again:
        "store.claim_for_recovery", Always, is_recovered_again_unclaimed;
    a_cancel_killed_after_it_was_recorded_is_carried_out: "store.request_cancel", Always, is_cancelled;
    a_removal_killed_after_the_record_is_gone_is_completed_by_the_next: "store.remove_run", Always, is_removed;
    a_run_killed_after_its_dead_letter_was_written_has_failed: "runner.dead_letter", Always, has_failed;
    a_removal_killed_after_a_letter_is_off_the_record_is_complete: "store.remove_letter", Always, is_no_letter;
}

/// The failpoints that no process of an attached run comes to, with the test that arms them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("runner.pushed", "through_broker/publish.rs: only a run that publishes comes to it"),
    ("store.adopt", "detached.rs: only a node that is restarted under its name adopts"),
    ("store.record_turns", "direct_runs.rs: only a direct run has turns"),
    ("store.allow", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.add_message", "crates/cofferdam-store/tests/failpoints.rs: no command sends messages yet"),
    ("store.mark_message", "crates/cofferdam-store/tests/failpoints.rs: no command sends messages yet"),
    ("store.create_key", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.create_project", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.expire", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.audit", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.record_refusal", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.remove_project", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.revoke_key", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.change_config", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.set_desired", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.create_spec", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.update_spec", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.execute_spec", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.approve_phase", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.reject_phase", "crates/cofferdam-store/tests/failpoints.rs"),
    ("store.record_phase", "crates/cofferdam-store/tests/failpoints.rs"),
];

#[once]
#[test]
fn every_failpoint_is_armed_by_a_test() {
    for failpoint in cofferdam_store::FAILPOINTS.iter().chain(cofferdam_runner::FAILPOINTS) {
        let here = ARMED.iter().any(|armed| armed.split(':').next() == Some(failpoint));
        let elsewhere = ELSEWHERE.iter().any(|(name, _)| name == failpoint);
        assert!(here != elsewhere, "{failpoint} is armed {}", if here { "twice" } else { "nowhere" });
    }
}

/// Runs with the failpoint armed until it kills the process.
fn crash(fixture: &Fixture, marks: &Marks, flags: &[&str], script: &str, failpoint: &str, reached: Reached) {
    let mut command = fixture.command();
    command.args(["run", "--json", "--mount", &marks.mount()]).args(flags);
    command.args(["--", "sh", "-c", &marks.script(script)]).env("COFFERDAM_FAILPOINT", failpoint);
    let finished = cofferdam_e2e::Finished::of(command);
    match (finished.code, reached) {
        (None, _) | (Some(0), Reached::Perhaps) => {}
        (code, _) => panic!("{failpoint} did not kill it: {code:?} {}", finished.stderr),
    }
    let gone = || processes::with_role(&fixture.state(), "shim").is_empty();
    wait_until(SOON, "the sandbox of a dead process ends by itself", gone);
}

/// What the next start says, checked against what must hold for every run.
fn truth(fixture: &Fixture, marks: &Marks) -> Record {
    let record = Record::of_the_only_run(fixture);
    record.assert_ended_once();
    assert!(marks.starts() <= 1, "the agent was started {} times", marks.starts());
    assert!(cgroups_of(&record.run).is_empty(), "{:?}", cgroups_of(&record.run));
    if record.outcome() == "succeeded" {
        assert_eq!(marks.ends(), 1, "a success whose agent did not end");
        assert!(record.diff.contains("+more"), "a success without its diff: {}", record.diff);
        assert_eq!(record.messages(), ["one", "two"]);
    }
    let lines: Vec<&str> = record.messages();
    assert!(["one", "two"].starts_with(&lines), "lines are in order and once: {lines:?}");
    record
}

fn is_lost(failpoint: &str, reached: Reached) {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    crash(&fixture, &marks, &[], WORK, failpoint, reached);
    let record = truth(&fixture, &marks);
    assert_eq!(record.outcome(), "failed/lost", "{:#}", record.shown["outcome"]);
    assert_eq!(marks.ends(), 0, "it had ended, and is not lost");
}

fn is_lost_late(failpoint: &str, reached: Reached) {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    crash(&fixture, &marks, &[], "echo one; sleep 60", failpoint, reached);
    assert_eq!(truth(&fixture, &marks).outcome(), "failed/lost");
}

fn is_told_truly(failpoint: &str, reached: Reached) {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    crash(&fixture, &marks, &[], WORK, failpoint, reached);
    let record = truth(&fixture, &marks);
    let expected = if record.data_of("agent.finished").is_empty() { "failed/lost" } else { "succeeded" };
    assert_eq!(record.outcome(), expected, "{:#}", record.shown["outcome"]);
}

fn has_succeeded(failpoint: &str, reached: Reached) {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    crash(&fixture, &marks, &[], WORK, failpoint, reached);
    assert_eq!(truth(&fixture, &marks).outcome(), "succeeded");
}

fn has_failed(failpoint: &str, reached: Reached) {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    crash(&fixture, &marks, &[], "exit 1", failpoint, reached);
    assert_eq!(truth(&fixture, &marks).outcome(), "failed/agent");
    assert_eq!(fixture.cofferdam(["dead-letter", "list", "--json"]).json().as_array().map(Vec::len), Some(1));
}

fn is_no_letter(failpoint: &str, _reached: Reached) {
    let fixture = Fixture::new();
    let run = fixture.run(&[], "exit 1").run_id();
    let mut command = fixture.command();
    command.args(["dead-letter", "rm", &run]).env("COFFERDAM_FAILPOINT", failpoint);
    assert_eq!(cofferdam_e2e::Finished::of(command).code, None);
    let listed = fixture.cofferdam(["dead-letter", "list", "--json"]);
    assert_eq!((listed.json(), listed.stderr.as_str()), (serde_json::json!([]), ""));
    assert_eq!(Record::of_the_only_run(&fixture).outcome(), "failed/agent");
}

fn is_not_tried_again(failpoint: &str, reached: Reached) {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    crash(&fixture, &marks, &["--max-attempts", "3"], "exit 1", failpoint, reached);
    let record = truth(&fixture, &marks);
    assert_eq!((record.outcome().as_str(), marks.starts()), ("failed/lost", 1));
}

fn is_recovered_again(failpoint: &str, reached: Reached) {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    crash(&fixture, &marks, &[], WORK, "runner.artifacts", reached);
    kill_recovery(&fixture, failpoint);
    assert_eq!(truth(&fixture, &marks).outcome(), "succeeded");
}

fn is_recovered_again_unclaimed(failpoint: &str, reached: Reached) {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    crash(&fixture, &marks, &[], WORK, "store.enqueue", reached);
    kill_recovery(&fixture, failpoint);
    assert_eq!(truth(&fixture, &marks).outcome(), "failed/lost");
}

/// A start of the binary that is killed while it recovers.
fn kill_recovery(fixture: &Fixture, failpoint: &str) {
    let mut command = fixture.command();
    command.args(["runs", "list"]).env("COFFERDAM_FAILPOINT", failpoint);
    let killed = cofferdam_e2e::Finished::of(command);
    assert_eq!(killed.code, None, "{failpoint} did not kill the recovery: {}", killed.stderr);
}

fn is_cancelled(failpoint: &str, _reached: Reached) {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let running = fixture.start(&["--mount", &marks.mount()], &marks.script("sleep 60"));
    wait_until(Duration::from_secs(20), "the agent works", || marks.starts() == 1);
    let listed = fixture.cofferdam(["runs", "list", "--json"]).json();
    let mut command = fixture.command();
    command.args(["runs", "cancel", listed[0]["run"].as_str().expect("an id")]);
    command.env("COFFERDAM_FAILPOINT", failpoint);
    assert_eq!(cofferdam_e2e::Finished::of(command).code, None);
    let finished = running.finish();
    assert_eq!(finished.outcome(), "cancelled", "{}", finished.stderr);
    assert_eq!(Record::of_the_only_run(&fixture).outcome(), "cancelled");
}

fn is_removed(failpoint: &str, _reached: Reached) {
    let fixture = Fixture::new();
    let first = fixture.run(&[], "true").run_id();
    let mut command = fixture.command();
    command.args(["runs", "rm", &first]).env("COFFERDAM_FAILPOINT", failpoint);
    assert_eq!(cofferdam_e2e::Finished::of(command).code, None);
    assert_eq!(fixture.cofferdam(["runs", "list", "--json"]).json(), serde_json::json!([]));
    let second = fixture.run(&[], "true").run_id();
    assert_eq!(fixture.cofferdam(["runs", "rm", &second]).code, Some(0));
    let left: Vec<_> = std::fs::read_dir(fixture.state().join("runs")).expect("a folder").collect();
    assert!(left.is_empty(), "artifacts of removed runs: {left:?}");
}

#[test]
fn without_a_crash_the_run_succeeds() {
    let fixture = Fixture::new();
    let marks = Marks::new(&fixture);
    let finished = fixture.run(&["--mount", &marks.mount()], &marks.script(WORK));
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert_eq!(truth(&fixture, &marks).outcome(), "succeeded");
}
