//! Whatever is missing or dies: nothing runs on the host instead, the model is not asked, and the error says what to
//! type.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Engine, Finished, PrivateEngine, Record};
use cofferdam_scripted_model::{Answer, Script};
use cofferdam_test_marks::once;

use crate::docker::stage::Stage;

/// A stage on which a `claude` of the host leaves a mark if it is ever started.
struct Canary {
    stage: Stage,
    mark: PathBuf,
}

impl Canary {
    fn new(address: &str) -> Self {
        let mut stage = Stage::new(address, Script::new([Answer::text("Nobody asked.")]));
        let (bin, mark) = (stage.fixture.path("bin"), stage.fixture.path("canary"));
        std::fs::create_dir(&bin).expect("a new folder");
        for name in ["claude", "codex", "opencode"] {
            let program = bin.join(name);
            std::fs::write(&program, format!("#!/bin/sh\ntouch {}\n", mark.display())).expect("a new file");
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("our own file");
        }
        stage.fixture.set_env("PATH", &format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
        Self { stage, mark }
    }

    /// Runs claude and checks that nothing of it happened.
    fn nothing_runs(&self, flags: &[&str]) -> Finished {
        let finished = self.stage.prompt(&[&["--agent", "claude_code"], flags].concat());
        assert_ne!(finished.code, Some(0), "{}", finished.stderr);
        self.is_alive();
        finished
    }

    fn is_alive(&self) {
        assert!(!self.mark.exists(), "something ran on the host");
        assert_eq!(self.stage.calls(), 0, "the model was asked");
    }

    fn refused(&self, flags: &[&str], says: &[&str]) {
        let finished = self.nothing_runs(flags);
        for word in says {
            assert!(finished.stderr.contains(word), "no `{word}` in: {}", finished.stderr);
        }
        assert!(finished.stderr.contains("hint: "), "{}", finished.stderr);
    }
}

#[test]
fn the_canary_dies_without_a_container() {
    let canary = Canary::new("unix:///nowhere/docker.sock");
    let finished = canary.stage.fixture.cofferdam(["run", "--mode", "host", "--", "claude"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(canary.mark.exists(), "the mark shows that something ran on the host");
}

#[test]
fn without_an_engine_nothing_runs() {
    let canary = Canary::new("unix:///nowhere/docker.sock");
    canary.refused(&["--mode", "docker"], &["no Docker engine answers", "systemctl start docker"]);
    let record = Record::of_the_only_run(&canary.stage.fixture);
    assert_eq!(record.outcome(), "failed/refused");
}

#[once]
#[test]
fn with_an_engine_on_another_machine_nothing_runs() {
    let canary = Canary::new("tcp://192.0.2.1:2375");
    canary.refused(&["--mode", "docker"], &["not on this machine", "--mode native"]);
}

#[once]
#[test]
fn without_the_image_nothing_runs() {
    let Some(engine) = Engine::find() else { return };
    let canary = Canary::new(engine.address());
    let flags = ["--mode", "docker", "--image", "cofferdam-test/no-such-image:1"];
    canary.refused(&flags, &["has no image cofferdam-test/no-such-image:1", "build-image --tag"]);
}

#[once]
#[test]
fn with_an_image_name_in_upper_case_nothing_runs() {
    let canary = Canary::new("unix:///nowhere/docker.sock");
    canary.refused(&["--mode", "docker", "--image", "openTiger/worker:latest"], &["opentiger/worker:latest"]);
    let mut canary = Canary::new("unix:///nowhere/docker.sock");
    canary.stage.fixture.set_env("SANDBOX_DOCKER_IMAGE", "openTiger/worker:latest");
    canary.refused(&["--mode", "docker"], &["SANDBOX_DOCKER_IMAGE", "opentiger/worker:latest"]);
}

#[once]
#[test]
fn without_the_agent_in_the_image_nothing_runs() {
    let Some(engine) = Engine::find() else { return };
    let canary = Canary::new(engine.address());
    let flags = ["--mode", "docker", "--image", engine.small_image()];
    canary.refused(&flags, &["`claude` not found", engine.small_image(), "sandbox build-image"]);
    assert_eq!(Record::of_the_only_run(&canary.stage.fixture).outcome(), "failed/agent_missing");
}

#[once]
#[test]
fn in_an_unknown_mode_nothing_runs() {
    let canary = Canary::new("unix:///nowhere/docker.sock");
    for mode in ["dokcer", "Docker", "sandbox", ""] {
        canary.refused(&["--mode", mode], &["unknown mode"]);
    }
}

#[once]
#[test]
fn without_the_runtime_command_nothing_runs() {
    let canary = Canary::new("unix:///nowhere/docker.sock");
    let state = canary.stage.fixture.state();
    std::fs::create_dir_all(&state).expect("a new folder");
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700)).expect("our own folder");
    let settings = r#"{"sandbox": {"apple": {"runtime_command": "no-such-runtime"}}}"#;
    std::fs::write(state.join("settings.json"), settings).expect("a new file");
    canary.refused(&["--mode", "apple"], &["no-such-runtime", "runtime_command"]);
}

#[test]
fn without_a_limit_that_the_engine_can_hold_nothing_runs() {
    let Some(engine) = Engine::find() else { return };
    if !std::path::Path::new("/sys/fs/cgroup/pids").is_dir() {
        eprintln!("skipped: with cgroup v2 no controller can be hidden from an engine");
        return;
    }
    // In a mount namespace of its own, so that the machine keeps its controller.
    let hide = "umount /sys/fs/cgroup/pids && exec \"$@\"";
    let before = ["unshare", "--mount", "sh", "-c", hide, "sh"];
    let Some(own) = PrivateEngine::start_after(&engine, &before) else { return };
    let canary = Canary::new(&own.address());
    let flags = ["--mode", "docker", "--image", engine.small_image()];
    canary.refused(&flags, &["cannot limit processes", "docker info"]);
}

#[once]
#[test]
fn an_engine_that_dies_under_a_run_is_told_and_the_agent_with_it() {
    let Some(engine) = Engine::find() else { return };
    let Some(mut own) = PrivateEngine::start(&engine) else { return };
    let stage = Stage::new(&own.address(), Script::new([]));
    let flags = ["--mode", "docker", "--image", engine.small_image()];
    let mut running = stage.fixture.start(&flags, "echo it works; sleep 100");
    running.wait_for("it works");
    own.kill();
    let finished = running.finish();
    assert_eq!(finished.outcome(), "failed/engine", "{}", finished.stderr);
    assert!(finished.stderr.contains("the container engine stopped"), "{}", finished.stderr);
    // Its container went on without it, and was ended by its number.
    own.start_again();
    let left = own.docker(&["ps", "--quiet"]).output().expect("docker runs");
    assert_eq!(String::from_utf8_lossy(&left.stdout), "", "nothing runs on");
    let record = Record::of_the_only_run(&stage.fixture);
    record.assert_ended_once();
    let left = own.docker(&["ps", "--all", "--quiet"]).output().expect("docker runs");
    assert_eq!(String::from_utf8_lossy(&left.stdout), "", "the next command has swept");
}

#[once]
#[test]
fn an_engine_that_is_restarted_under_a_run_is_a_failure_that_may_pass() {
    let Some(engine) = Engine::find() else { return };
    let Some(mut own) = PrivateEngine::start(&engine) else { return };
    let stage = Stage::new(&own.address(), Script::new([]));
    let flags = ["--mode", "docker", "--image", engine.small_image(), "--max-attempts", "9"];
    // The first attempt leaves a folder outside and waits; a later one finds it, and ends well.
    let marks = cofferdam_e2e::Marks::new(&stage.fixture);
    let mount = marks.mount();
    let once = marks.folder().join("once");
    let script = format!("mkdir {} 2>/dev/null && sleep 100; exit 0", once.display());
    let mut running = stage.fixture.start(&[&flags[..], &["--mount", &mount]].concat(), &script);
    wait_until(Duration::from_secs(60), "the agent works", || once.exists());
    own.stop();
    // It stays away until an attempt has missed it, as it may on a busy machine.
    running.wait_for("attempt 1 failed, another one follows");
    running.wait_for("attempt 2 failed, another one follows");
    own.start_again();
    let finished = running.finish();
    let record = Record::of(&stage.fixture, &finished.run_id());
    assert_eq!(record.outcome(), "succeeded", "{}", finished.stderr);
    let scheduled = record.data_of("run.retry_scheduled");
    assert!(scheduled.len() >= 2, "{scheduled:?}");
    for attempt in &scheduled {
        assert_eq!(attempt["outcome"]["class"], "engine", "{scheduled:?}");
    }
}
