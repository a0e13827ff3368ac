//! What opens the models, in the folders and variables of the document, for agents in containers.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cofferdam_e2e::Engine;
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use super::auth::served;
use super::stage::Stage;
use crate::auth::stage::{KEY, Stage as AuthStage};

/// A home without any login, and an engine with the worker image.
fn stage(engine: &Engine) -> AuthStage {
    let mut stage = AuthStage::new();
    for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"] {
        stage.fixture.set_env(name, "");
    }
    stage.fixture.set_env("DOCKER_HOST", engine.address());
    stage
}

fn settings(engine: &Engine) -> Value {
    json!({ "sandbox": { "mode": "docker", "docker": { "image": engine.worker_image() } } })
}

fn claude_login() -> String {
    format!(
        r#"{{"claudeAiOauth": {{"accessToken": "{KEY}", "refreshToken": "r-0123456789", "expiresAt": 4102444800000,
            "scopes": ["user:inference"], "subscriptionType": "pro"}}}}"#
    )
}

/// A login in a folder that no CLI looks in by itself.
fn lay(stage: &AuthStage, file: &str, login: &str) -> String {
    let folder = stage.fixture.path("elsewhere");
    fs::create_dir_all(&folder).expect("a new folder");
    fs::write(folder.join(file), login).expect("a new file");
    fs::set_permissions(folder.join(file), PermissionsExt::from_mode(0o600)).expect("its owner");
    folder.to_str().expect("a plain path").to_owned()
}

/// Nobody is logged in until the key names the folder.
fn opens(stage: &Stage, cli: &str, key: &str, folder: &str) {
    let path = format!("/system/{cli}/auth");
    stage.checked(&path, "auth_required");
    let found = stage.set(&json!({ key: folder }));
    assert_eq!((&found["config"][key], &found["origins"][key]), (&json!(folder), &json!("system_config")));
    stage.checked(&path, "ok");
    stage.set(&json!({ key: null }));
}

#[once]
#[test]
fn section_5_1_claude_works_in_a_container_with_the_login_of_the_host_and_no_key() {
    let Some(engine) = Engine::find() else { return };
    let stage = stage(&engine);
    stage.write_home(".claude/.credentials.json", &claude_login());
    let (stage, model) = served(stage, &settings(&engine));
    stage.checked("/system/claude/auth", "ok");
    assert!(model.requests().iter().all(|request| request.key() == Some(KEY)), "the broker adds it outside");
    // Nothing of it is mounted, read-only or otherwise.
    let run = stage
        .accept("ls -A ~ /home/worker 2>/dev/null; cat ~/.claude/.credentials.json /home/worker/.claude/*");
    stage.ended(&run);
    let said = stage.said(&run);
    assert!(!said.contains(KEY) && !said.contains("r-0123456789"), "{said}");
}

#[once]
#[test]
fn section_5_1_the_folders_of_claudes_login_are_set_while_the_service_runs() {
    let Some(engine) = Engine::find() else { return };
    for key in ["CLAUDE_AUTH_DIR", "CLAUDE_CONFIG_DIR"] {
        let stage = stage(&engine);
        let folder = lay(&stage, ".credentials.json", &claude_login());
        let (stage, _model) = served(stage, &settings(&engine));
        opens(&stage, "claude", key, &folder);
    }
}

#[once]
#[test]
fn section_5_2_codex_works_with_a_login_in_the_folder_that_is_set() {
    let Some(engine) = Engine::find() else { return };
    let stage = stage(&engine);
    let folder = lay(&stage, "auth.json", &json!({ "OPENAI_API_KEY": KEY }).to_string());
    let (stage, _model) = served(stage, &settings(&engine));
    opens(&stage, "codex", "CODEX_AUTH_DIR", &folder);
}

#[once]
#[test]
fn section_5_2_codex_works_with_either_key_and_is_refused_without_any() {
    let Some(engine) = Engine::find() else { return };
    for variable in ["OPENAI_API_KEY", "CODEX_API_KEY"] {
        let mut stage = stage(&engine);
        stage.fixture.set_env(variable, KEY);
        let (stage, _model) = served(stage, &settings(&engine));
        stage.checked("/system/codex/auth", "ok");
    }
    // Where the document has a warning in a log, nothing is started.
    let (stage, model) = served(stage(&engine), &settings(&engine));
    let answer = stage.checked("/system/codex/auth", "auth_required");
    assert!(answer["message"].as_str().is_some_and(|text| text.contains("codex login")), "{answer:#}");
    assert_eq!(model.requests().len(), 0);
}
