//! Auth checks in containers over HTTP, with the real agents of the worker image.

use std::process::{Command, Stdio};

use cofferdam_e2e::{ChildWatch, Engine};
use cofferdam_scripted_model::{Answer, Script, ScriptedModel};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use super::auth::{OF_THE_DOCUMENT, assert_roles_alone, served};
use super::stage::Stage;
use crate::auth::stage::{KEY, Stage as AuthStage};

fn path(cli: &str) -> String {
    format!("/system/{cli}/auth")
}

fn in_docker(address: &str, image: &str, mut stage: AuthStage) -> (Stage, ScriptedModel) {
    stage.fixture.set_env("DOCKER_HOST", address);
    let docker = json!({ "mode": "docker", "docker": { "image": image } });
    served(stage, &json!({ "sandbox": docker }))
}

/// What to type is in the message.
fn says(answer: &Value, words: &str) {
    assert_eq!(answer["executionEnvironment"], "sandbox", "{answer:#}");
    assert!(answer["message"].as_str().is_some_and(|text| text.contains(words)), "{words}: {answer:#}");
}

/// An image for another processor, which has nothing in it.
struct OtherProcessor<'a>(&'a Engine);

impl<'a> OtherProcessor<'a> {
    const NAME: &'static str = "cofferdam-e2e/other-processor:1";
    /// The end of an archive, which is all of its one layer, and the SHA-256 of that.
    const LAYER: [u8; 1024] = [0; 1024];
    const DIGEST: &'static str = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef";

    fn load(engine: &'a Engine) -> Self {
        let folder = tempfile::tempdir().expect("a temp folder");
        let rootfs = json!({ "type": "layers", "diff_ids": [Self::DIGEST] });
        let config = json!({ "architecture": "s390x", "os": "linux", "config": {}, "rootfs": rootfs });
        let manifest =
            json!([{ "Config": "config.json", "RepoTags": [Self::NAME], "Layers": ["layer.tar"] }]);
        let files = [
            ("config.json", config.to_string().into_bytes()),
            ("manifest.json", manifest.to_string().into_bytes()),
            ("layer.tar", Self::LAYER.to_vec()),
        ];
        for (name, content) in &files {
            std::fs::write(folder.path().join(name), content).expect("a new file");
        }
        let mut pack = Command::new("tar");
        pack.current_dir(folder.path()).args(["-cf", "image.tar"]).args(files.map(|(name, _)| name));
        assert!(pack.status().expect("tar is installed").success());
        let image = folder.path().join("image.tar");
        let loaded =
            engine.docker(["load", "--quiet", "--input", image.to_str().expect("a plain path")]).output();
        assert!(loaded.expect("docker starts").status.success());
        Self(engine)
    }
}

impl Drop for OtherProcessor<'_> {
    fn drop(&mut self) {
        let _ = self.0.docker(["image", "rm", Self::NAME]).stdout(Stdio::null()).status();
    }
}

#[once]
#[test]
fn section_3_2_claude_and_codex_are_tried_in_a_container() {
    let Some(engine) = Engine::find() else { return };
    let (stage, model) = in_docker(engine.address(), engine.worker_image(), AuthStage::new().with_key(KEY));
    let watch = ChildWatch::of(stage.pid());
    for cli in OF_THE_DOCUMENT {
        let answer = stage.checked(&path(cli), "ok");
        assert_eq!((&answer["executionEnvironment"], &answer["mode"]), (&json!("sandbox"), &json!("docker")));
    }
    assert!(model.calls() >= OF_THE_DOCUMENT.len(), "a model was asked");
    assert_roles_alone(watch);
}

#[once]
#[test]
fn section_8_an_image_that_is_missing_invalid_or_without_the_cli_is_told_with_what_to_type() {
    let Some(engine) = Engine::find() else { return };
    let other = OtherProcessor::load(&engine);
    let (stage, _model) = in_docker(engine.address(), engine.small_image(), AuthStage::new().with_key(KEY));
    for cli in OF_THE_DOCUMENT {
        says(&stage.checked(&path(cli), "cli_missing"), "build-image");
    }
    for (image, word) in
        [("cofferdam-e2e/nowhere:1", "image_missing"), (OtherProcessor::NAME, "image_invalid")]
    {
        let found = stage.set(&json!({ "SANDBOX_DOCKER_IMAGE": image }));
        assert_eq!(found["config"]["SANDBOX_DOCKER_IMAGE"], image, "{found:#}");
        for cli in OF_THE_DOCUMENT {
            says(&stage.checked(&path(cli), word), "build-image");
        }
    }
    drop((stage, other));
}

#[once]
#[test]
fn section_8_a_daemon_that_does_not_answer_is_told_with_what_to_type() {
    let (stage, _model) = in_docker("unix:///nowhere/docker.sock", "any:1", AuthStage::new().with_key(KEY));
    for cli in OF_THE_DOCUMENT {
        says(&stage.checked(&path(cli), "daemon_unavailable"), "start docker");
    }
}

#[once]
#[test]
fn section_8_a_login_that_is_missing_or_refused_is_told_with_what_to_type() {
    let Some(engine) = Engine::find() else { return };
    let (stage, model) = in_docker(engine.address(), engine.worker_image(), AuthStage::new());
    for (cli, login) in [("claude", "ANTHROPIC_API_KEY"), ("codex", "codex login")] {
        says(&stage.checked(&path(cli), "auth_required"), login);
    }
    assert_eq!(model.requests().len(), 0, "nobody is asked without a key");
    drop(stage);
    let another = AuthStage::new().with_key("sk-another-key-0123456789");
    let (stage, _model) = in_docker(engine.address(), engine.worker_image(), another);
    for cli in OF_THE_DOCUMENT {
        says(&stage.checked(&path(cli), "auth_required"), "refused the key or login");
    }
}

#[once]
#[test]
fn section_7_a_model_that_is_silent_or_fails_is_no_login_in_a_container() {
    let Some(engine) = Engine::find() else { return };
    let silent = AuthStage::with_silent_model().with_key(KEY);
    let (stage, _model) = in_docker(engine.address(), engine.worker_image(), silent);
    stage.checked(&path("codex"), "timeout");
    drop(stage);
    let failing = Script::new([]).ending_with(Answer::error(400));
    let (stage, _model) =
        in_docker(engine.address(), engine.worker_image(), AuthStage::with_script(failing).with_key(KEY));
    stage.checked(&path("codex"), "unknown");
}

#[once]
#[test]
fn section_7_a_container_runtime_that_is_not_installed_is_missing() {
    let stage = AuthStage::new().with_key(KEY);
    let apple = json!({ "mode": "apple", "apple": { "runtime_command": "/no/such/container" } });
    let (stage, _model) = served(stage, &json!({ "sandbox": apple }));
    for cli in OF_THE_DOCUMENT {
        let answer = stage.checked(&path(cli), "runtime_missing");
        assert_eq!(answer["mode"], "apple", "{answer:#}");
    }
}
