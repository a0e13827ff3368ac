//! `sandbox.max_concurrency` holds for all processes of a state folder, however they end.

use std::fs;
use std::time::Duration;

use cofferdam_e2e::processes::{kill_9, wait_until};
use cofferdam_e2e::{DetachedNode, Fixture, Marks, Queue, Running, SignalPipe, node_id};
use cofferdam_test_marks::once;
use rustix::process::Signal;
use serde_json::Value;

const SOON: Duration = Duration::from_secs(30);

fn fixture(max_concurrency: u32) -> Fixture {
    let mut fixture = Fixture::new();
    fs::create_dir(fixture.state()).expect("a new folder");
    let settings = format!(r#"{{"sandbox": {{"max_concurrency": {max_concurrency}}}}}"#);
    fs::write(fixture.state().join("settings.json"), settings).expect("a new file");
    fixture.set_env("TEST_MAX_CONCURRENCY", &max_concurrency.to_string());
    fixture
}

/// How many attempts were under way at most, by the record: from the claim to the end of the sandbox.
fn most_at_once(fixture: &Fixture, runs: &[String]) -> i64 {
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for run in runs {
        for event in fixture.events(run) {
            let change = match event["type"].as_str() {
                Some("run.claimed") => 1,
                Some("run.finished" | "run.retry_scheduled") => -1,
                _ => continue,
            };
            changes.push((event["at_ms"].as_u64().expect("a time"), change));
        }
    }
    // Of one millisecond, ends come first: what was freed may have been taken.
    changes.sort_unstable();
    changes
        .iter()
        .scan(0, |now, (_, change)| {
            *now += change;
            Some(*now)
        })
        .max()
        .unwrap_or(0)
}

/// Counts who is there while it is there itself.
fn counting(marks: &Marks) -> String {
    let folder = marks.folder().display();
    format!(
        "own=$(mktemp {folder}/in.XXXXXX); ls {folder} | grep -c '^in\\.' >> {folder}/counts; sleep 0.5; \
         ls {folder} | grep -c '^in\\.' >> {folder}/counts; rm $own"
    )
}

#[once]
#[test]
fn five_processes_at_once_never_run_three_at_a_time() {
    let fixture = fixture(2);
    let marks = Marks::new(&fixture);
    let script = counting(&marks);
    let mount = marks.mount();
    let native: &[&str] = &["--mount", &mount];
    let host: &[&str] = &["--mode", "host"];
    let started: Vec<Running> =
        [native, host, native, host, native].into_iter().map(|flags| fixture.start(flags, &script)).collect();
    let finished: Vec<_> = started.into_iter().map(Running::finish).collect();
    for finished in &finished {
        assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    }
    let counts = fs::read_to_string(marks.folder().join("counts")).expect("they counted");
    let most = counts.lines().filter_map(|line| line.trim().parse::<u32>().ok()).max();
    assert_eq!(counts.lines().count(), 10);
    assert!(most <= Some(2), "{counts}");
    let runs: Vec<String> = finished.iter().map(|finished| finished.run_id()).collect();
    assert_eq!(most_at_once(&fixture, &runs), 2, "both slots were used");
    let waited = finished.iter().filter(|finished| finished.stderr.contains("waits for ")).count();
    assert!(waited >= 3, "{finished:?}");
}

#[once]
#[test]
fn a_holder_that_is_killed_frees_its_slot_and_the_oldest_who_waits_gets_it() {
    let fixture = fixture(1);
    let marks = Marks::new(&fixture);
    let holder = fixture.start(&["--mount", &marks.mount()], &marks.script("sleep 300"));
    wait_until(SOON, "the first works", || marks.starts() == 1);
    let order = marks.folder().join("order");
    let start = |name: &str| {
        let script = format!("echo {name} >> {}", order.display());
        let mut waiting = fixture.start(&["--mount", &marks.mount()], &script);
        waiting.wait_for("waits for a free slot: 1 of 1 are in use");
        waiting
    };
    let waiting = [start("second"), start("third"), start("fourth")];
    kill_9(holder.pid());
    assert_eq!(holder.finish().code, None);
    for waiting in waiting {
        let finished = waiting.finish();
        assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    }
    assert_eq!(fs::read_to_string(&order).expect("they ran"), "second\nthird\nfourth\n");
    let listed = fixture.cofferdam(["dead-letter", "list", "--json"]).json();
    assert_eq!(listed[0]["errorClass"], "transient", "{listed}");
}

#[once]
#[test]
fn a_run_that_waits_can_be_cancelled() {
    let fixture = fixture(1);
    let pipe = SignalPipe::new(&fixture);
    let holder = fixture.start(&["--mount", &pipe.mount()], &pipe.command());
    let held = pipe.wait();
    let mut interrupted = fixture.start(&[], "true");
    interrupted.wait_for("waits for a free slot");
    interrupted.signal(Signal::INT);
    let interrupted = interrupted.finish();
    assert_eq!((interrupted.code, interrupted.outcome().as_str()), (Some(5), "cancelled"));
    assert_eq!(
        (&interrupted.json()["attempts"], &interrupted.json()["sandbox"]),
        (&Value::from(0), &Value::Null)
    );
    let mut asked = fixture.start(&[], "true");
    asked.wait_for("waits for a free slot");
    let newest =
        fixture.cofferdam(["runs", "list", "--json"]).json()[0]["run"].as_str().expect("an id").to_owned();
    assert_eq!(fixture.cofferdam(["runs", "cancel", &newest]).code, Some(0));
    assert_eq!(asked.finish().code, Some(5));
    held.release();
    assert_eq!(holder.finish().outcome(), "succeeded");
}

#[once]
#[test]
fn a_detached_sandbox_keeps_its_slot_when_its_node_dies_and_is_adopted() {
    let fixture = fixture(1);
    let marks = Marks::new(&fixture);
    let queue = Queue::open(&fixture);
    let go = marks.folder().join("go");
    let body = format!("while [ ! -e {} ]; do sleep 0.05; done", go.display());
    let run = queue.enqueue(&fixture, &marks, &body, |_| {});
    let node = DetachedNode::start(&fixture, &node_id(1), None);
    wait_until(SOON, "the detached one works", || marks.starts() == 1);
    node.kill();
    let ended =
        format!("test -e {} && grep -c ended {}", go.display(), marks.folder().join("mark").display());
    let mut waiting = fixture.start(&["--mount", &marks.mount()], &ended);
    waiting.wait_for("waits for a free slot: 1 of 1 are in use");
    let node = DetachedNode::start(&fixture, &node_id(1), None);
    fs::write(&go, "").expect("a new file");
    let _ = queue.wait_for_end(&run);
    let finished = waiting.finish();
    assert_eq!(finished.outcome(), "succeeded", "it began before the other had ended: {}", finished.stderr);
    node.stop();
}
