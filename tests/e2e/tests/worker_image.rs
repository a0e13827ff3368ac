//! The image that `deploy/worker.Dockerfile` makes, in a real engine.

use cofferdam_e2e::Engine;
use cofferdam_test_marks::once;

const DOCKERFILE: &str = include_str!("../../../deploy/worker.Dockerfile");
const DEV: &str = include_str!("../../../dev");

#[once]
#[test]
fn the_image_has_the_agents_that_the_other_tests_run() {
    for (package, argument) in [
        ("@anthropic-ai/claude-code", "CLAUDE_CODE"),
        ("@openai/codex", "CODEX"),
        ("opencode-ai", "OPENCODE"),
    ] {
        let pinned = format!("{package}@{}", version(argument));
        assert!(DEV.contains(&pinned), "./dev installs another version than {pinned}");
    }
}

#[once]
#[test]
fn the_three_agents_start_without_a_network_or_root() {
    let Some(engine) = Engine::find() else { return };
    for (agent, argument) in [("claude", "CLAUDE_CODE"), ("codex", "CODEX"), ("opencode", "OPENCODE")] {
        let said = in_worker(&engine, &[agent, "--version"]);
        assert!(said.contains(version(argument)), "{agent} says {said:?}");
    }
}

#[once]
#[test]
fn the_user_is_worker_and_owns_its_home_and_the_workspace() {
    let Some(engine) = Engine::find() else { return };
    let said = in_worker(&engine, &["stat", "-c", "%u:%g %n", "/home/worker", "/workspace", "."]);
    assert_eq!(said, "1000:1000 /home/worker\n1000:1000 /workspace\n1000:1000 .\n");
    assert_eq!(in_worker(&engine, &["id", "-un"]), "worker\n");
}

#[once]
#[test]
fn what_agents_call_is_there() {
    let Some(engine) = Engine::find() else { return };
    for program in ["git", "ssh", "curl", "rg", "node", "bash"] {
        in_worker(&engine, &["sh", "-c", &format!("command -v {program}")]);
    }
}

#[once]
#[test]
fn a_build_leaves_no_caches_and_no_second_copy_of_an_agent() {
    let Some(engine) = Engine::find() else { return };
    let left = in_worker(&engine, &["sh", "-c", "ls -A /var/lib/apt/lists /var/cache/apt /tmp /workspace"]);
    assert_eq!(left, "/tmp:\n\n/var/cache/apt:\n\n/var/lib/apt/lists:\n\n/workspace:\n");
    // Our own binary is a debug one in tests, and large for that.
    let find = "find /usr/local -type f -size +100M -not -name cofferdam | xargs -n1 basename | sort";
    let large = in_worker(&engine, &["sh", "-c", find]);
    assert_eq!(large, "claude.exe\ncodex\nopencode.exe\n");
}

/// The default of one of the Dockerfile's arguments.
fn version(argument: &str) -> &'static str {
    let start = format!("ARG {argument}=");
    DOCKERFILE.lines().find_map(|line| line.strip_prefix(&*start)).expect("the argument is there")
}

/// What a command prints in a new container of the worker image.
fn in_worker(engine: &Engine, command: &[&str]) -> String {
    let output = engine
        .docker(["run", "--rm", "--network", "none", "--cap-drop", "ALL", engine.worker_image()])
        .args(command)
        .output()
        .expect("the docker command starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}
