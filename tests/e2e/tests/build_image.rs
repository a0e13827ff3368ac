//! `cofferdam sandbox build-image` on a real engine. The whole worker image takes minutes and is made before the tests;
//! what is built here stands on a base whose every step is done already.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Engine, Finished, Fixture, Running};
use cofferdam_test_marks::once;
use rustix::process::Signal;
use serde_json::Value;

const DOCKERFILE: &str = include_str!("../../../deploy/worker.Dockerfile");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the Dockerfile's steps would have made. Its own do nothing on this base: their shell is `true`.
const DONE: &str = r#"
RUN mkdir -p /agents /usr/local/bin /usr/local/lib/node_modules/opencode-ai && \
    cd /usr/local/lib/node_modules && mkdir -p @anthropic-ai/claude-code @openai/codex && \
    head -c 3000000 /dev/zero >@openai/codex/program && head -c 1000000 /dev/zero >opencode-ai/program && \
    echo 'worker:x:1000:1000:worker:/home/worker:/bin/sh' >>/etc/passwd
SHELL ["/bin/true"]
"#;

/// An image of one test.
struct Image<'a> {
    engine: &'a Engine,
    name: String,
}

impl<'a> Image<'a> {
    /// A name that no other test has.
    fn named(engine: &'a Engine, name: &str) -> Self {
        Self { engine, name: format!("cofferdam-e2e/{name}-{}:latest", std::process::id()) }
    }

    /// An image on another one.
    fn on(engine: &'a Engine, name: &str, base: &str, steps: &str) -> Self {
        let image = Self::named(engine, name);
        let mut build = engine
            .docker(["build", "--quiet", "--network", "none", "--tag", &image.name, "-"])
            .env("DOCKER_BUILDKIT", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the docker command starts");
        let mut stdin = build.stdin.take().expect("stdin was piped");
        write!(stdin, "FROM {base}\n{steps}\n").expect("the docker command reads");
        drop(stdin);
        assert!(build.wait().expect("a child can be waited for").success(), "{name} was not built");
        image
    }

    fn inspect(&self) -> Value {
        let output = self.engine.docker(["image", "inspect", &self.name]).output().expect("docker starts");
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        found[0].clone()
    }

    /// What a command prints in a new container.
    fn says(&self, command: &[&str]) -> String {
        let mut docker = self.engine.docker(["run", "--rm", "--network", "none", &self.name]);
        let output = docker.args(command).output().expect("docker starts");
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Containers of this image and of those on it.
    fn containers(&self) -> String {
        let filter = format!("ancestor={}", self.name);
        let output = self.engine.docker(["ps", "--all", "--quiet", "--filter", &filter]).output();
        String::from_utf8(output.expect("docker starts").stdout).expect("text")
    }
}

impl Drop for Image<'_> {
    fn drop(&mut self) {
        let _ = self.engine.docker(["image", "rm", "--force", &self.name]).output();
    }
}

fn fixture(engine: &Engine) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.set_env("DOCKER_HOST", engine.address());
    fixture
}

fn build(fixture: &Fixture, image: &Image<'_>, base: &Image<'_>, more: &[&str]) -> Finished {
    let mut args = vec!["sandbox", "build-image", "--tag", &image.name, "--base", &base.name];
    args.extend(more);
    fixture.cofferdam(args)
}

#[test]
fn an_image_has_our_binary_and_nothing_of_the_callers_folder() {
    let Some(engine) = Engine::find() else { return };
    let fixture = fixture(&engine);
    fixture.write("Dockerfile", "FROM scratch\n");
    fixture.write("cofferdam", "a trap\n");
    fixture.write("canary", "of the caller\n");
    let base = Image::on(&engine, "base", engine.small_image(), DONE);
    let image = Image::named(&engine, "built");
    let built = build(&fixture, &image, &base, &["--network", "none"]);
    assert_eq!(built.code, Some(0), "{}", built.stderr);

    let printed = String::from_utf8(built.stdout).expect("text");
    let (first, layers) = printed.split_once("\n\n").expect("a line, and a table");
    assert!(first.starts_with(&format!("{}  ", image.name)) && first.contains("MiB"), "{printed}");
    let names: Vec<&str> = layers.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    // The largest first: the debug binary, the base, and what was copied from it again.
    assert_eq!(names, ["cofferdam", "base", "codex", "opencode"], "{printed}");
    assert!(built.stderr.contains("cofferdam: step 1/") && built.stderr.contains("(codex): COPY"));

    let config = &image.inspect()["Config"];
    assert_eq!(config["Labels"]["dev.cofferdam.version"], VERSION);
    assert_eq!(config["Labels"]["dev.cofferdam.image"], "worker");
    assert_eq!((&config["User"], &config["WorkingDir"]), (&"worker".into(), &"/workspace".into()));
    assert_eq!(image.says(&["/usr/local/bin/cofferdam", "--version"]), format!("cofferdam {VERSION}\n"));
    assert_eq!(image.says(&["find", "/", "-xdev", "-name", "canary"]), "");

    // The engine knows everything again, so this one is quick.
    let again = build(&fixture, &image, &base, &["--network", "none", "--json"]).json();
    assert_eq!(again["image"], image.name.as_str());
    assert_eq!(again["bytes"], image.inspect()["Size"]);
    let sum: u64 =
        again["layers"].as_array().expect("a list").iter().filter_map(|one| one["bytes"].as_u64()).sum();
    assert_eq!(again["bytes"], sum, "every byte has a reason: {again:#}");
}

#[test]
fn a_binary_that_cannot_be_mounted_is_taken_from_the_image_if_it_is_this_version() {
    let Some(engine) = Engine::find() else { return };
    let mut fixture = fixture(&engine);
    let base = Image::on(&engine, "own-base", engine.small_image(), DONE);
    let image = Image::named(&engine, "own");
    let built = build(&fixture, &image, &base, &["--network", "none"]);
    assert_eq!(built.code, Some(0), "{}", built.stderr);
    fixture.set_env("COFFERDAM_WITHOUT", "mounted_binary");
    let script = "test ! -e /run/cofferdam/cofferdam && echo made >new";
    let run = fixture.run(&["--mode", "docker", "--image", &image.name], script);
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    assert!(run.diff().contains("+made"), "{}", run.diff());

    let old = "#!/bin/sh\\necho cofferdam 0.0.1\\n";
    let replace =
        format!("USER root\nSHELL [\"/bin/sh\", \"-c\"]\nRUN printf '{old}' >/usr/local/bin/cofferdam");
    let other = Image::on(&engine, "other-version", &image.name, &replace);
    let none = Image::on(&engine, "no-binary", engine.small_image(), "");
    for (image, said) in [(&other, "0.0.1"), (&none, "there is none")] {
        let run = fixture.run(&["--mode", "docker", "--image", &image.name], "echo made >new");
        assert_eq!((run.code, run.outcome().as_str()), (Some(3), "failed/refused"), "{}", run.stderr);
        let outcome = run.json()["outcome"].to_string();
        assert!(outcome.contains(said) && outcome.contains(VERSION), "{outcome}");
        assert!(outcome.contains("cofferdam sandbox build-image"), "{outcome}");
    }
}

#[once]
#[test]
fn a_step_that_fails_shows_its_last_lines_and_leaves_no_container_and_no_image() {
    let Some(engine) = Engine::find() else { return };
    let fixture = fixture(&engine);
    let steps = r#"SHELL ["/bin/sh", "-c", "echo a word before the end; exit 7", "--"]"#;
    let base = Image::on(&engine, "failing", engine.small_image(), steps);
    let image = Image::named(&engine, "never");
    let failed = build(&fixture, &image, &base, &["--network", "none"]);
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    assert!(failed.stdout.is_empty());
    assert!(failed.stderr.contains("| a word before the end"), "{}", failed.stderr);
    assert!(failed.stderr.contains("ended with code 7"), "{}", failed.stderr);
    assert_eq!(base.containers(), "");
    assert_eq!(image.inspect(), Value::Null);
}

#[once]
#[test]
fn ctrl_c_ends_the_build_at_the_engine() {
    let Some(engine) = Engine::find() else { return };
    let fixture = fixture(&engine);
    let steps = r#"SHELL ["/bin/sh", "-c", "exec sleep 1000", "--"]"#;
    let base = Image::on(&engine, "hanging", engine.small_image(), steps);
    let image = Image::named(&engine, "cancelled");
    let mut command = fixture.command();
    command.args(["sandbox", "build-image", "--network", "none", "--tag", &image.name, "--base", &base.name]);
    let mut running = Running::of(command);
    running.wait_for("(tools): RUN");
    let within = Duration::from_secs(60);
    wait_until(within, "the step's container is there", || !base.containers().is_empty());
    running.signal(Signal::INT);
    let ended = running.finish();
    assert_eq!(ended.code, Some(5), "{}", ended.stderr);
    assert!(ended.stderr.contains("error: the build was cancelled"), "{}", ended.stderr);
    wait_until(within, "the step's container is gone", || base.containers().is_empty());
}

#[once]
#[test]
fn what_cannot_be_built_is_refused_with_what_to_type() {
    let mut fixture = Fixture::new();
    let socket = fixture.path("no.sock");
    fixture.set_env("DOCKER_HOST", &format!("unix://{}", socket.display()));
    let refused = |args: &[&str], code: i32, said: &str| {
        let ended = fixture.cofferdam(["sandbox", "build-image"].iter().chain(args));
        assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(said) && ended.stderr.contains("\nhint: "),
            "{args:?}: {}",
            ended.stderr
        );
    };
    refused(&[], 3, "no Docker engine answers at");
    refused(&["--tag", "openTiger/worker"], 2, "type `opentiger/worker`");
    refused(&["--base", "Debian"], 2, "type `debian`");
    refused(&["--network", "a b"], 2, "not the name of a network");
}

#[once]
#[test]
fn a_binary_that_the_image_could_not_run_is_refused() {
    let Some(engine) = Engine::find() else { return };
    let fixture = fixture(&engine);
    let script = fixture.path("script");
    std::fs::write(&script, "#!/bin/sh\necho cofferdam 9.9.9\n").expect("a new file");
    let small = engine.small_image();
    let ended = fixture.cofferdam([
        "sandbox",
        "build-image",
        "--tag",
        "cofferdam-e2e/never:latest",
        "--base",
        small,
        "--binary",
        &script.display().to_string(),
    ]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("is no Linux program"), "{}", ended.stderr);
}

#[once]
#[test]
fn the_dockerfile_can_be_had_for_another_tool() {
    let printed = Fixture::new().cofferdam(["sandbox", "build-image", "--print-dockerfile"]);
    assert_eq!((printed.code, String::from_utf8_lossy(&printed.stdout).as_ref()), (Some(0), DOCKERFILE));
}

#[once]
#[test]
fn the_worker_image_of_the_tests_was_made_by_this_command() {
    let Some(engine) = Engine::find() else { return };
    let name = engine.worker_image();
    let output = engine.docker(["image", "inspect", name]).output().expect("docker starts");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let config = &found[0]["Config"];
    assert_eq!(config["Labels"]["dev.cofferdam.version"], VERSION);
    assert_eq!((&config["User"], &config["WorkingDir"]), (&"worker".into(), &"/workspace".into()));
    // Proxies and registries of the machine that built it are nobody's business.
    let history = engine.docker(["history", "--no-trunc", "--format", "{{.CreatedBy}}", name]).output();
    let history = String::from_utf8(history.expect("docker starts").stdout).expect("text");
    let told = format!("{config}{history}").to_lowercase();
    assert!(!told.contains("_proxy"), "{told}");
    for mark in ["openssh-client", "node_modules/@openai/codex", "/usr/local/bin/cofferdam"] {
        assert!(history.contains(mark), "no layer for {mark}: {history}");
    }
    let mut docker = engine.docker(["run", "--rm", "--network", "none", name]);
    let said = docker.args(["cofferdam", "--version"]).output().expect("docker starts");
    assert_eq!(String::from_utf8_lossy(&said.stdout), format!("cofferdam {VERSION}\n"));
}
