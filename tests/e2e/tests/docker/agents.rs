//! The three real CLIs, sealed in a container: the same prompt gives the same diff as without a container.

use cofferdam_e2e::{Agents, Engine, Record};
use cofferdam_scripted_model::{Answer, Script};
use cofferdam_test_marks::once;

use crate::docker::stage::{KEY, Stage};

const CLAUDE: &[&str] = &["--agent", "claude_code"];
/// With this model it offers plain tools and not programs that call them.
const CODEX: &[&str] = &["--agent", "codex", "--model", "gpt-5.5"];
const OPENCODE: &[&str] = &["--agent", "opencode"];

#[test]
fn claude_makes_the_same_diff_in_a_container() {
    makes_the_same_diff(CLAUDE);
}

#[once]
#[test]
fn codex_makes_the_same_diff_in_a_container() {
    makes_the_same_diff(CODEX);
}

#[once]
#[test]
fn opencode_makes_the_same_diff_in_a_container() {
    makes_the_same_diff(OPENCODE);
}

fn makes_the_same_diff(agent: &[&str]) {
    let (Some(engine), Some(agents)) = (Engine::find(), Agents::find()) else { return };
    let image = ["--mode", "docker", "--image", engine.worker_image()];
    let diffs: Vec<String> = [&image[..], &["--mode", "native"], &["--mode", "host"]]
        .into_iter()
        .map(|mode| diff_of(&engine, &agents, agent, mode))
        .collect();
    assert!(diffs[0].contains("+goodbye") && diffs[0].contains("made/new.txt"), "{}", diffs[0]);
    assert_eq!(diffs[0], diffs[1], "docker and native");
    assert_eq!(diffs[0], diffs[2], "docker and host");
}

fn diff_of(engine: &Engine, agents: &Agents, agent: &[&str], mode: &[&str]) -> String {
    let answers = [
        Answer::write_file("made/new.txt", "one\ntwo\n"),
        Answer::read_file("README.md"),
        Answer::edit_file("README.md", "hello\n", "goodbye\n"),
        Answer::text("I have done it."),
    ];
    let mut stage = Stage::on(engine, Script::new(answers));
    if mode[1] != "docker" {
        // In the container they are the image's, and the caller may have none.
        stage.fixture.set_env("PATH", agents.path().to_str().expect("a plain path"));
    }
    let finished = stage.prompt(&[agent, mode].concat());
    assert_eq!((finished.code, &*finished.outcome()), (Some(0), "succeeded"), "{}", finished.stderr);
    assert_eq!(stage.calls(), 4);
    assert_eq!(stage.fixture.git(&["status", "--porcelain"]), "", "the original is untouched");
    let record = Record::of(&stage.fixture, &finished.run_id());
    record.assert_ended_once();
    let told = format!("{:?} {:?}", record.events, record.shown);
    assert!(!told.contains(KEY), "the key is on record");
    finished.diff()
}

#[once]
#[test]
fn a_secret_is_in_nothing_that_the_engine_shows() {
    let Some(engine) = Engine::find() else { return };
    let mut stage = Stage::on(&engine, Script::new([]));
    stage.fixture.set_env("PASSED_ON", "what-only-the-agent-may-know");
    let flags =
        ["--mode", "docker", "--image", engine.small_image(), "--env", "PASSED_ON", "--network", "sealed"];
    let script = "test \"$PASSED_ON\" = what-only-the-agent-may-know && echo it knows; sleep 60";
    let mut running = stage.fixture.start(&flags, script);
    running.wait_for("it knows");
    let container = only_container(&engine, &stage);
    let shown = engine.docker(["inspect", &container]).output().expect("docker runs");
    let top = engine.docker(["top", &container, "-eo", "args"]).output().expect("docker runs");
    let shown = format!("{}{}", String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&top.stdout));
    assert!(shown.contains("dev.cofferdam.run"), "{shown}");
    for secret in ["what-only-the-agent-may-know", KEY] {
        assert!(!shown.contains(secret), "{shown}");
    }
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.finish().outcome(), "cancelled");
}

#[once]
#[test]
fn the_engines_events_show_the_life_of_each_attempt() {
    let Some(engine) = Engine::find() else { return };
    let stage = Stage::on(&engine, Script::new([]));
    let now = || std::time::UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    let before = now();
    let flags = ["--mode", "docker", "--image", engine.small_image(), "--max-attempts", "2"];
    let finished = stage.fixture.run(&flags, "exit 3");
    assert_eq!(finished.outcome(), "failed/agent", "{}", finished.stderr);
    let (since, until) = (before.to_string(), (now() + 1).to_string());
    let label = format!("label=dev.cofferdam.run={}", finished.run_id());
    let format = "{{.Action}} {{index .Actor.Attributes \"dev.cofferdam.attempt\"}}";
    let events = engine
        .docker(["events", "--since", &since, "--until", &until, "--filter", &label, "--format", format])
        .output()
        .expect("docker runs");
    let events = String::from_utf8_lossy(&events.stdout).into_owned();
    for attempt in ["1", "2"] {
        let life: Vec<&str> =
            events.lines().filter_map(|line| line.strip_suffix(&format!(" {attempt}"))).collect();
        let seen = |action: &str| life.iter().position(|one| *one == action);
        let order = ["create", "start", "die", "destroy"].map(|action| seen(action).expect(action));
        assert!(order.is_sorted(), "{life:?}");
    }
}

/// The container of a fixture's only run, by its label.
pub(crate) fn only_container(engine: &Engine, stage: &Stage) -> String {
    let id = std::fs::read_to_string(stage.fixture.state().join("id")).expect("the state folder has a name");
    let filter = format!("label=dev.cofferdam.state={id}");
    let listed =
        engine.docker(["ps", "--all", "--quiet", "--filter", &filter]).output().expect("docker runs");
    let listed = String::from_utf8(listed.stdout).expect("ids");
    let containers: Vec<&str> = listed.lines().collect();
    assert_eq!(containers.len(), 1, "{containers:?}");
    containers[0].to_owned()
}
