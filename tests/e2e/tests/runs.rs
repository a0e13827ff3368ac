//! Runs from the outside: Ctrl-C, the record, retries, and the modes.

use std::fs;
use std::process::Command;
use std::time::Duration;

use cofferdam_e2e::{Finished, Fixture, tree_of};
use cofferdam_test_marks::once;
use rustix::process::Signal;

#[test]
fn ctrl_c_cancels_and_a_second_one_kills() {
    let stubborn = "trap '' TERM INT; while :; do sleep 300; done";
    let fixture = Fixture::new();
    let mut once = fixture.start(&[], "sleep 300");
    once.wait_for("running");
    once.signal(Signal::INT);
    let once = once.finish();
    assert_eq!((once.code, once.outcome().as_str()), (Some(5), "cancelled"), "{}", once.stderr);

    let mut twice = fixture.start(&[], stubborn);
    twice.wait_for("running");
    twice.signal(Signal::INT);
    twice.wait_for("Ctrl-C again kills it");
    twice.signal(Signal::INT);
    let twice = twice.finish();
    assert_eq!((twice.code, twice.outcome().as_str()), (Some(5), "cancelled"), "{}", twice.stderr);
    assert!(twice.stderr.contains("killing the run"), "{}", twice.stderr);
}

#[once]
#[test]
fn a_run_is_cancelled_from_another_process() {
    let fixture = Fixture::new();
    let mut running = fixture.start(&[], "sleep 300");
    running.wait_for("running");
    let listed = fixture.cofferdam(["runs", "list", "--json"]).json();
    let run = listed[0]["run"].as_str().expect("an id").to_owned();
    assert_eq!(listed[0]["state"], "running");
    assert_eq!(fixture.cofferdam(["runs", "rm", &run]).code, Some(3), "a live run stays");
    assert_eq!(fixture.cofferdam(["runs", "cancel", &run]).code, Some(0));
    let finished = running.finish();
    assert_eq!((finished.code, finished.outcome().as_str()), (Some(5), "cancelled"), "{}", finished.stderr);
}

#[once]
#[test]
fn what_is_on_record_is_listed_shown_and_removed() {
    let fixture = Fixture::new();
    let patch = fixture.path("out.patch");
    let finished =
        fixture.run(&["--output", patch.to_str().expect("a plain path")], "echo more >> README.md");
    let object = finished.json();
    for key in ["run", "outcome", "attempts", "mode", "seal", "usage", "diff"] {
        assert!(object.get(key).is_some(), "{key} in {object}");
    }
    assert_eq!((object["mode"].as_str(), object["sealed"].as_bool()), (Some("native"), Some(true)));
    let run = finished.run_id();
    let shown = fixture.cofferdam(["runs", "show", &run]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("succeeded") && shown.contains("sealed: native"), "{shown}");
    assert_eq!(fixture.cofferdam(["runs", "diff", &run]).stdout, fs::read(&patch).expect("a patch"));
    let events = fixture.events(&run);
    assert!(events.iter().zip(1..).all(|(event, seq)| event["seq"] == seq), "numbered without gaps");
    assert!(events.iter().any(|event| event["type"] == "sandbox.sealed"));
    let late = fixture.cofferdam(["runs", "cancel", &run]);
    assert!(late.code == Some(3) && late.stderr.contains("has ended already"), "{}", late.stderr);
    assert_eq!(fixture.cofferdam(["runs", "rm", &run]).code, Some(0));
    let gone = fixture.cofferdam(["runs", "show", &run]);
    assert!(gone.code == Some(2) && gone.stderr.contains("there is no run"), "{}", gone.stderr);
    assert!(!fixture.state().join("runs").join(&run).exists());
}

#[once]
#[test]
fn a_run_is_tried_as_often_as_asked_and_then_kept_as_a_dead_letter() {
    let fixture = Fixture::new();
    let finished = fixture.run(&["--max-attempts", "3"], "ls; : > made; exit 4");
    assert_eq!((finished.code, finished.outcome().as_str()), (Some(1), "failed/agent"));
    assert_eq!(finished.json()["attempts"], 3);
    let events = fixture.events(&finished.run_id());
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    let counts = ["run.claimed", "sandbox.created", "sandbox.destroyed", "run.retry_scheduled"].map(count);
    assert_eq!(counts, [3, 3, 3, 2]);
    assert_eq!(count("run.dead_lettered"), 1, "{events:?}");
    let printed = fixture.printed(&finished.run_id());
    assert!(!printed.contains(&"made".to_owned()), "attempts share nothing: {printed:?}");
}

#[test]
fn host_mode_says_loudly_that_it_is_not_sealed_and_ends_the_whole_tree() {
    let fixture = Fixture::new();
    let before = tree_of(&fixture.repository(), &[]);
    let script = "setsid sleep 4242 & (sleep 4242 &); echo more >> README.md; echo pid $!";
    let finished = fixture.run(&["--mode", "host"], script);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert!(finished.stderr.contains("WARNING") && finished.stderr.contains("NOT SEALED"));
    assert_eq!(finished.json()["sealed"], false);
    assert!(finished.diff().contains("+more"), "{}", finished.diff());
    assert!(before == tree_of(&fixture.repository(), &[]));
    let printed = fixture.printed(&finished.run_id()).join("");
    let pid = printed.trim_start_matches("pid ");
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    assert!(!String::from_utf8_lossy(&command).contains("4242"), "{pid} is alive");
    assert!(finished.took < Duration::from_secs(30));
}

#[test]
fn where_user_namespaces_are_forbidden_it_refuses_and_never_runs_unsealed() {
    let fixture = Fixture::new();
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let mut command = fixture.command();
    let program = command.get_program().to_owned();
    let mut outer = Command::new("unshare");
    outer.args(["--user", "--map-root-user", "sh", "-c", forbid, "sh"]).arg(program);
    let kept = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    outer.envs(kept.collect::<Vec<_>>()).current_dir(fixture.repository());
    outer.args(["run", "--json", "--", "sh", "-c", "echo ran"]);
    command = outer;
    let finished = Finished::of(command);
    assert_eq!(
        (finished.code, finished.outcome().as_str()),
        (Some(3), "failed/refused"),
        "{}",
        finished.stderr
    );
    assert!(finished.stderr.contains("user namespaces"), "{}", finished.stderr);
    assert!(finished.stderr.contains("hint: "), "{}", finished.stderr);
    assert!(fixture.printed(&finished.run_id()).is_empty(), "the program ran");
}
