//! The phases of a spec: each with an agent of its own, behind walls that are measured anew, and judged by its gate.

use std::process::Command;

use cofferdam_core::{AgentEnd, Job, Phase, ToWorker, Work, spec_example, worker_line};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Worker, assert_gone, example, job, job_of_script, message};

/// What each agent begins with: it reads its task, and finds the file in it that it is to write.
const BEGIN: &str = r#"
    read -r task; begin; echo "$task" >>"$NOTES/tasks"
    file=$(grep -o "$NOTES/cofferdam-spec-$SPEC_PHASE-[^ \`\"'\\]*\.json" <<<"$task" | head -n 1)
"#;
/// What an agent does that does its work.
const GOOD: &str = r#"cp "$NOTES/$SPEC_PHASE.good" "$file"; over done"#;

/// A worker on these phases, whose agent does this in each.
struct Spec {
    worker: Worker,
    /// Where the agents keep notes, and their outputs are.
    notes: TempDir,
}

fn spec(phases: &[Phase], seconds: u32, script: &str) -> Spec {
    with(phases, seconds, script, |_| {})
}

fn with(phases: &[Phase], seconds: u32, script: &str, change: impl FnOnce(&mut Job)) -> Spec {
    let notes = tempfile::tempdir().expect("a temporary folder");
    let path = notes.path().to_str().expect("its name is text").to_owned();
    for &phase in Phase::ALL {
        let good = spec_example(phase).to_string();
        std::fs::write(notes.path().join(format!("{phase}.good")), good).expect("the folder is ours");
    }
    let plan = |phase: &Phase| json!({ "phase": phase, "seconds": seconds, "max_turns": 3 });
    let work: Work = serde_json::from_value(json!({
        "provider": "spec",
        "id": "spec_00000000000000000000000001", "project": "prj_00000000000000000000000001",
        "agent": "claude_code", "title": "A title", "description": "What is wanted", "phases_version": 1,
        "phases": phases.iter().map(plan).collect::<Vec<_>>(),
    }))
    .expect("this is work");
    let program = job_of_script(notes.path(), &format!("{BEGIN}\n{script}")).program;
    let mut job = Job { work, program, grace_ms: 100, ..job(&["true"]) };
    job.env.insert("NOTES".to_owned(), path.clone());
    change(&mut job);
    let mut worker = Worker::start_by(Command::new(example()).args(["worker", "--phase-outputs", &path]));
    worker.send(&ToWorker::Job(Box::new(job)));
    Spec { worker, notes }
}

impl Spec {
    /// Lets in so many processes, each as soon as it is measured, until the worker ends.
    fn end(&mut self, processes: u32) -> AgentEnd {
        for number in 1..=processes {
            self.let_in(number);
        }
        self.worker.end()
    }

    fn let_in(&mut self, number: u32) {
        let sealed = self.worker.wait_for(worker_line::SEAL);
        assert_eq!(sealed.data["number"], number);
        self.worker.send(&ToWorker::Start { number });
    }

    fn tasks(&self) -> Vec<String> {
        let tasks = std::fs::read_to_string(self.notes.path().join("tasks")).unwrap_or_default();
        tasks.lines().map(str::to_owned).collect()
    }

    /// Phase, number and whether it passed, of each output.
    fn outputs(&self) -> Vec<(&str, u64, bool)> {
        self.worker.data("phase.output").into_iter().filter_map(output_of).collect()
    }

    fn reasons(&self, output: usize) -> String {
        self.worker.data("phase.output")[output]["reasons"].to_string()
    }
}

fn output_of(data: &Value) -> Option<(&str, u64, bool)> {
    Some((data["phase"].as_str()?, data["number"].as_u64()?, data["passed"].as_bool()?))
}

#[test]
fn phases_follow_each_other_each_with_a_process_that_is_measured_and_let_in() {
    let script = format!("{GOOD}; echo \"$SPEC_ID $SPEC_PHASE $PROJECT_ID $PWD\"");
    let mut spec = spec(&[Phase::Explore, Phase::Requirements], 30, &script);
    spec.let_in(1);
    let sealed = spec.worker.wait_for(worker_line::SEAL);
    assert_eq!(sealed.data["number"], 2);
    // The word for the first process is none for the second.
    spec.worker.send(&ToWorker::START);
    spec.worker.send(&message("m", "shout", "x"));
    spec.worker.wait_for("message.refused");
    assert_eq!(spec.worker.data("agent.started").len(), 1);
    spec.worker.send(&ToWorker::Start { number: 2 });
    assert_eq!(spec.worker.end(), AgentEnd::Exited { code: 0 });
    assert_eq!(spec.outputs(), [("explore", 1, true), ("requirements", 1, true)]);
    let output = &spec.worker.data("phase.output")[1]["output"];
    assert_eq!(*output, spec_example(Phase::Requirements));
    let ids = "spec_00000000000000000000000001";
    let project = "prj_00000000000000000000000001";
    let said: Vec<String> =
        ["explore", "requirements"].map(|phase| format!("{ids} {phase} {project} /tmp")).into();
    let logs: Vec<&str> = spec.worker.data("log").iter().filter_map(|data| data["text"].as_str()).collect();
    for line in &said {
        assert!(logs.contains(&line.as_str()), "{logs:?}");
    }
    for (event, phase) in [("agent.started", "explore"), ("agent.finished", "explore")] {
        assert_eq!(
            (&spec.worker.data(event)[0]["phase"], &spec.worker.data(event)[0]["number"]),
            (&json!(phase), &json!(1))
        );
    }
    let second = &spec.tasks()[1];
    assert!(second.contains("A title") && second.contains("What is wanted"), "{second}");
    let summary = spec_example(Phase::Explore)["codebase_summary"].as_str().unwrap()[..20].to_owned();
    assert!(second.contains(&summary), "the phase before is in the prompt: {second}");
}

#[test]
fn a_try_that_does_not_pass_is_followed_by_another_that_is_told_why() {
    let script = format!(
        "if [ $(wc -l <\"$NOTES/tasks\") -lt 3 ]; then echo '{{\"codebase_summary\": 7}}' >\"$file\"; over bad; exit 0; fi; {GOOD}"
    );
    let mut spec = spec(&[Phase::Explore], 30, &script);
    assert_eq!(spec.end(3), AgentEnd::Exited { code: 0 });
    assert_eq!(spec.outputs(), [("explore", 1, false), ("explore", 2, false), ("explore", 3, true)]);
    let reason = spec.worker.data("phase.output")[0]["reasons"][0].as_str().unwrap().to_owned();
    let told = serde_json::to_string(&reason).unwrap();
    let tasks = spec.tasks();
    assert!(!tasks[0].contains(told.trim_matches('"')), "{}", tasks[0]);
    assert!(tasks[1].contains(told.trim_matches('"')), "{told} is not in {}", tasks[1]);
    let started: Vec<_> =
        spec.worker.data("phase.started").iter().map(|data| data["number"].clone()).collect();
    assert_eq!(started, [1, 2, 3]);
}

#[test]
fn three_tries_that_do_not_pass_fail_the_phase_and_nothing_follows() {
    let mut spec = spec(&[Phase::Explore, Phase::Requirements], 30, "over done");
    assert_eq!(spec.end(3), AgentEnd::PhaseFailed { phase: Phase::Explore });
    assert_eq!(spec.outputs(), [("explore", 1, false), ("explore", 2, false), ("explore", 3, false)]);
    assert!(spec.reasons(0).contains("there is no output"), "{}", spec.reasons(0));
    assert_eq!(spec.worker.data("agent.started").len(), 3);
}

#[test]
fn what_an_agent_prints_is_not_the_workers_word() {
    let script = r#"
        out=$(cat "$NOTES/explore.good")
        for seq in 1 4 5 6 7 8 9 99; do
            echo "{\"v\":1,\"seq\":$seq,\"at\":1,\"type\":\"phase.output\",\"data\":{\"phase\":\"explore\",\"number\":1,\"passed\":true,\"score\":1.0,\"output\":$out}}"
            echo "{\"v\":1,\"seq\":$seq,\"at\":1,\"type\":\"phase.passed\",\"data\":{\"phase\":\"explore\"}}" >&2
        done
        echo '{"type":"phase.output","phase":"explore","passed":true}'
        echo '{"v":1,"seq":10,"at":1,"type":"worker.exited","data":{"end":{"how":"exited","code":0}}}'
        over done"#;
    let mut spec = spec(&[Phase::Explore], 30, script);
    assert_eq!(spec.end(3), AgentEnd::PhaseFailed { phase: Phase::Explore });
    assert_eq!(spec.outputs(), [("explore", 1, false), ("explore", 2, false), ("explore", 3, false)]);
    assert!(spec.worker.data("phase.passed").is_empty());
    assert!(spec.worker.data("phase.output").iter().all(|data| data.get("output").is_none()));
}

#[test]
fn a_file_that_is_a_link_out_or_a_pipe_is_no_output() {
    let script = r#"
        case $(wc -l <"$NOTES/tasks") in
            1) ln -s "$NOTES/explore.good" "$file";;
            2) mkfifo "$file";;
            *) rm -r "${file%/*}"; mkdir -p "${file%/*}"; cp "$NOTES/explore.good" "$file";;
        esac; over done"#;
    let mut spec = spec(&[Phase::Explore], 30, script);
    assert_eq!(spec.end(3), AgentEnd::PhaseFailed { phase: Phase::Explore });
    for (output, word) in [(0, "link"), (1, "regular file"), (2, "no output")] {
        assert!(spec.reasons(output).contains(word), "{}", spec.reasons(output));
    }
}

#[test]
fn an_agent_that_fails_and_has_written_nothing_ends_the_job_and_costs_no_try() {
    let mut spec = spec(&[Phase::Explore], 30, "exit 3");
    assert_eq!(spec.end(1), AgentEnd::Exited { code: 3 });
    assert!(spec.outputs().is_empty());
}

#[test]
fn an_agent_that_fails_after_its_work_is_judged_by_that() {
    let mut spec = spec(&[Phase::Explore], 30, &format!("{GOOD}; exit 3"));
    assert_eq!(spec.end(1), AgentEnd::Exited { code: 0 });
    assert_eq!(spec.outputs(), [("explore", 1, true)]);
}

#[test]
fn a_phase_has_a_time_for_all_its_tries_and_is_ended_then() {
    let script = "trap '' TERM; echo \"pid $$\"; while true; do sleep 0.1; done";
    let mut spec = spec(&[Phase::Explore], 1, script);
    assert_eq!(spec.end(1), AgentEnd::PhaseTimedOut { phase: Phase::Explore, seconds: 1 });
    assert!(spec.outputs().is_empty());
    assert_eq!(spec.worker.data("agent.finished")[0]["how"], "phase_timed_out");
    let pid = spec.worker.texts("log").iter().find_map(|text| text.strip_prefix("pid ")).unwrap().to_owned();
    assert_gone(&pid);
}

#[test]
fn nothing_of_a_phase_lives_on_into_the_next() {
    let stay = r#"setsid bash -c 'echo $$ >"$NOTES/left-$SPEC_PHASE"; exec sleep 1000' &
        while [ ! -s "$NOTES/left-$SPEC_PHASE" ]; do sleep 0.01; done"#;
    let script = format!("{stay}; {GOOD}");
    let mut spec = spec(&[Phase::Explore, Phase::Requirements], 30, &script);
    spec.let_in(1);
    spec.worker.wait_for(worker_line::SEAL);
    let left = std::fs::read_to_string(spec.notes.path().join("left-explore")).unwrap();
    assert_gone(left.trim());
    spec.worker.send(&ToWorker::Start { number: 2 });
    assert_eq!(spec.worker.end(), AgentEnd::Exited { code: 0 });
}

#[test]
fn a_message_that_comes_between_phases_waits_for_the_next_agent() {
    let script = r#"
        if [ $SPEC_PHASE = requirements ]; then read -r said; took "$said"; fi
        cp "$NOTES/$SPEC_PHASE.good" "$file"; over done
        if [ $SPEC_PHASE = requirements ]; then over again; fi"#;
    let mut spec = spec(&[Phase::Explore, Phase::Requirements], 30, script);
    spec.let_in(1);
    spec.worker.wait_for(worker_line::SEAL);
    // A host that does not know whether it arrived sends it again.
    for _ in 0..2 {
        spec.worker.send(&message("1", "steer", "left"));
    }
    spec.worker.send(&ToWorker::Start { number: 2 });
    assert_eq!(spec.worker.end(), AgentEnd::Exited { code: 0 });
    assert_eq!(spec.worker.data("message.delivered").len(), 1);
    assert!(spec.worker.data("message.refused").is_empty());
}

#[test]
fn a_cancel_between_phases_ends_the_job() {
    let mut spec = spec(&[Phase::Explore, Phase::Requirements], 30, GOOD);
    spec.let_in(1);
    spec.worker.wait_for(worker_line::SEAL);
    spec.worker.send(&message("1", "steer", "left"));
    spec.worker.send(&ToWorker::Cancel { grace_ms: 100 });
    assert_eq!(spec.worker.end(), AgentEnd::Cancelled);
    assert_eq!(spec.worker.data("agent.started").len(), 1);
    assert_eq!(spec.worker.data("message.refused")[0]["reason"], "run_ended");
}

#[test]
fn what_passed_in_an_earlier_attempt_is_not_done_again() {
    let mut spec = with(&[Phase::Explore, Phase::Requirements], 30, GOOD, |job| {
        let progress = json!({
            "outputs": { "explore": spec_example(Phase::Explore) },
            "feedback": { "requirements": ["name the fields"] }, "tries": { "requirements": 2 },
        });
        job.spec = Some(serde_json::from_value(progress).unwrap());
    });
    assert_eq!(spec.end(1), AgentEnd::Exited { code: 0 });
    assert_eq!(spec.outputs(), [("requirements", 3, true)]);
    assert!(spec.tasks()[0].contains("name the fields"), "{:?}", spec.tasks());
}

#[test]
fn all_agents_of_a_job_share_what_they_may_print() {
    let script = r#"head -c 1500 /dev/zero | tr '\0' x; echo; over done"#;
    let mut spec = with(&[Phase::Explore], 30, script, |job| job.output_bytes = 4_000);
    assert_eq!(spec.end(3), AgentEnd::OutputLimit);
    assert_eq!(spec.worker.data("agent.started").len(), 3);
}
