//! `cofferdam sandbox doctor` tells the truth: it says that a run would start where one does, and what is
//! wrong where none does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cofferdam_e2e::{Engine, Finished, Fixture, binary};
use cofferdam_test_marks::{limits, once};
use serde_json::{Value, json};

/// The finding with this name.
fn finding(doctor: &Finished, name: &str) -> Value {
    let report = doctor.json();
    let findings = report["findings"].as_array().expect("findings are a list");
    let found = findings.iter().find(|finding| finding["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {report:#}")).clone()
}

fn doctor(fixture: &Fixture) -> Finished {
    fixture.cofferdam(["sandbox", "doctor", "--json"])
}

#[limits]
#[test]
fn where_a_run_starts_it_says_so_and_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let said = doctor(&fixture);
    assert_eq!(said.code, Some(0), "{:#}", said.json());
    assert_eq!(said.json()["would_start"]["command"], true);
    for name in ["sandbox", "user_namespaces", "seccomp", "landlock", "ids", "git", "kernel", "state_folder"]
    {
        assert_eq!(finding(&said, name)["status"], "ok", "{name}");
    }
    let left = fs::read_dir(fixture.state().join("trials")).expect("the trials' folder").count();
    assert_eq!(left, 0);
    let text = fixture.cofferdam(["sandbox", "doctor"]);
    let printed = String::from_utf8(text.stdout).expect("text");
    assert!(printed.contains("\ncofferdam run -- CMD   would start\n"), "{printed}");
    assert_eq!(fixture.run(&[], "true").outcome(), "succeeded");
}

#[limits]
#[test]
fn without_user_namespaces_it_exits_with_3_and_says_what_to_type() {
    let fixture = Fixture::new();
    // In a namespace of the test's own, in which no further one can be made.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" sandbox doctor --json";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script]).arg(binary());
    let env = fixture.command();
    command.envs(env.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))));
    command.current_dir(fixture.repository());
    let said = Finished::of(command);
    assert_eq!(said.code, Some(3), "{}", said.stderr);
    assert_eq!(said.json()["would_start"], json!({ "command": false, "agents": [] }));
    for name in ["sandbox", "user_namespaces"] {
        let found = finding(&said, name);
        assert_eq!(found["status"], "missing", "{found}");
        assert_eq!(found["remedy"], "sudo sysctl user.max_user_namespaces=15000");
    }
    assert_eq!(finding(&said, "overlay")["status"], "unknown", "what was not tried is not known");
}

#[limits]
#[test]
fn a_wall_that_does_not_stand_is_noticed() {
    for wall in ["seccomp", "landlock", "namespaces:net", "mounts:system", "limits:files"] {
        let mut fixture = Fixture::new();
        fixture.set_env("COFFERDAM_WITHOUT", wall);
        let said = doctor(&fixture);
        assert_eq!(said.code, Some(3), "without {wall}: {:#}", said.json());
        let found = finding(&said, "sandbox");
        assert_eq!(found["status"], "missing", "{found}");
        assert!(found["detail"].as_str().is_some_and(|text| text.contains("weaker")), "{found}");
    }
}

#[limits]
#[test]
fn a_state_folder_that_cannot_be_made_is_missing() {
    let mut fixture = Fixture::new();
    fixture.set_env("COFFERDAM_HOME", "/proc/nowhere");
    let said = doctor(&fixture);
    assert_eq!(said.code, Some(3));
    assert_eq!(finding(&said, "state_folder")["status"], "missing");
    assert_eq!(finding(&said, "sandbox")["status"], "unknown");
}

#[once]
#[test]
fn keys_and_logins_are_told_of_and_never_shown() {
    const SECRET: &str = "sk-doctor-secret-0123456789";
    let mut fixture = Fixture::new();
    let said = doctor(&fixture);
    for key in ["anthropic_key", "openai_key"] {
        let found = finding(&said, key);
        let without =
            !["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY"]
                .iter()
                .any(|name| std::env::var_os(name).is_some());
        assert!(!without || found["status"] == "weak", "{found}");
    }
    for file in [".claude/.credentials.json", ".codex/auth.json", ".local/share/opencode/auth.json"] {
        let path = fixture.home().join(file);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a new folder");
        fs::write(path, SECRET).expect("a new file");
    }
    fixture.set_env("ANTHROPIC_BASE_URL", &format!("https://me:{SECRET}@proxy.invalid/v1?key={SECRET}"));
    fixture.set_env("OPENAI_BASE_URL", SECRET);
    fixture.set_env("ANTHROPIC_AUTH_TOKEN", SECRET);
    for arguments in [&["sandbox", "doctor", "--json"][..], &["sandbox", "doctor"]] {
        let said = fixture.cofferdam(arguments);
        let printed = format!("{}{}", String::from_utf8_lossy(&said.stdout), said.stderr);
        assert!(!printed.contains("doctor-secret"), "{printed}");
        assert!(printed.contains("https://proxy.invalid/v1 (ANTHROPIC_BASE_URL)"), "{printed}");
        assert!(printed.contains("it is not what the CLI writes"), "{printed}");
    }
    let said = doctor(&fixture);
    assert_eq!(finding(&said, "anthropic_key")["status"], "ok");
    assert_eq!(finding(&said, "openai_url")["status"], "weak");
}

#[once]
#[test]
fn a_login_that_can_be_used_is_told_of_with_how_long_it_lasts() {
    let mut fixture = Fixture::new();
    for name in ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY"] {
        fixture.set_env(name, "");
    }
    let login = |expires_at: u64| {
        format!(
            r#"{{"claudeAiOauth":{{"accessToken":"sk-doctor","expiresAt":{expires_at},"subscriptionType":"max"}}}}"#
        )
    };
    let path = fixture.home().join(".claude/.credentials.json");
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a new folder");
    fs::write(&path, login(1)).expect("a new file");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("its owner");
    let found = finding(&doctor(&fixture), "anthropic_key");
    assert_eq!(found["status"], "weak");
    assert!(found["detail"].as_str().is_some_and(|it| it.contains("has expired: type `claude")), "{found}");
    fs::write(&path, login(4_102_444_800_000)).expect("its owner");
    let found = finding(&doctor(&fixture), "anthropic_key");
    assert_eq!(found["status"], "ok", "{found}");
    let detail = found["detail"].as_str().expect("a text");
    let beginning = "the login of Claude Code in ~/.claude/.credentials.json (a subscription `max`, for ";
    assert!(detail.starts_with(beginning) && detail.ends_with("; not tried)"), "{detail}");
}

#[limits]
#[test]
fn an_agent_that_the_repository_brings_is_neither_found_nor_started() {
    let mut fixture = Fixture::new();
    let mark = fixture.path("started");
    for name in ["claude", "codex", "opencode"] {
        fixture.write(&format!("bin/{name}"), format!("#!/bin/sh\ntouch {}\necho 9.9.9\n", mark.display()));
        let path = fixture.repository().join("bin").join(name);
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("its owner");
    }
    let repository = fixture.repository().join("bin");
    fixture.set_env("PATH", &format!("bin:{}:/usr/bin:/bin", repository.display()));
    let said = doctor(&fixture);
    let agents = ["claude_code", "codex", "opencode"].map(|name| finding(&said, name));
    assert!(agents.iter().all(|agent| !agent["detail"].as_str().unwrap_or_default().contains("9.9.9")));
    assert!(!mark.exists(), "{agents:?}");
}

#[limits]
#[test]
fn a_shim_is_refused_with_what_to_type() {
    let mut fixture = Fixture::new();
    let shims = fixture.path("shims");
    fs::create_dir(&shims).expect("a new folder");
    fs::write(shims.join("claude"), "#!/bin/sh\nexec asdf exec \"claude\" \"$@\"\n").expect("a new file");
    fs::set_permissions(shims.join("claude"), PermissionsExt::from_mode(0o755)).expect("its owner");
    fixture.set_env("PATH", &format!("{}:/usr/bin:/bin", shims.display()));
    let found = finding(&doctor(&fixture), "claude_code");
    assert_eq!(found["status"], "weak");
    assert!(found["remedy"].as_str().is_some_and(|text| text.contains("asdf which claude")), "{found}");
}

#[limits]
#[test]
fn the_real_agents_are_named_with_their_versions() {
    let Some(agents) = std::env::var_os("COFFERDAM_AGENTS").map(PathBuf::from) else {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "COFFERDAM_AGENTS is not set");
        eprintln!("SKIPPED: COFFERDAM_AGENTS names no folder with claude, codex and opencode");
        return;
    };
    let mut fixture = Fixture::new();
    fixture.set_env("PATH", &format!("{}:/usr/bin:/bin", Path::new(&agents).display()));
    fixture.set_env("ANTHROPIC_API_KEY", "sk-placeholder");
    fixture.set_env("OPENAI_API_KEY", "sk-placeholder");
    let said = doctor(&fixture);
    for name in ["claude_code", "codex", "opencode"] {
        assert_eq!(finding(&said, name)["status"], "ok", "{}", finding(&said, name));
    }
    assert_eq!(said.json()["would_start"]["agents"], json!(["claude_code", "codex", "opencode"]));
}

fn docker_doctor(fixture: &Fixture) -> Finished {
    fixture.cofferdam(["sandbox", "doctor", "--mode", "docker", "--json"])
}

#[limits]
#[test]
fn without_an_engine_containers_would_not_start_and_native_runs_would() {
    let mut fixture = Fixture::new();
    let socket = fixture.path("no.sock");
    fixture.set_env("DOCKER_HOST", &format!("unix://{}", socket.display()));
    let said = docker_doctor(&fixture);
    assert_eq!(said.code, Some(3), "{}", said.stderr);
    let engine = finding(&said, "engine");
    assert_eq!(engine["status"], "missing");
    assert!(engine["detail"].as_str().is_some_and(|text| text.contains("no.sock")), "{engine}");
    assert!(
        engine["remedy"].as_str().is_some_and(|text| text.contains("systemctl start docker")),
        "{engine}"
    );
    assert_eq!(finding(&said, "sandbox")["status"], "unknown");
    let native = doctor(&fixture);
    assert_eq!(native.code, Some(0), "{}", native.stderr);
    assert_eq!(finding(&native, "docker")["status"], "weak");
}

#[once]
#[test]
fn an_image_that_is_missing_is_named_with_what_to_type() {
    let Some(engine) = Engine::find() else { return };
    let mut fixture = Fixture::new();
    fixture.set_env("DOCKER_HOST", engine.address());
    fixture.set_env("SANDBOX_DOCKER_IMAGE", "cofferdam-e2e/nowhere:1");
    let said = docker_doctor(&fixture);
    assert_eq!(said.code, Some(3), "{}", said.stderr);
    assert_eq!(finding(&said, "engine")["status"], "ok");
    assert_eq!(finding(&said, "limits")["status"], "ok");
    let image = finding(&said, "image");
    assert_eq!(image["status"], "missing");
    let remedy = image["remedy"].as_str().unwrap_or_default();
    assert!(remedy.contains("cofferdam sandbox build-image --tag cofferdam-e2e/nowhere:1"), "{image}");
    assert_eq!(finding(&said, "sandbox")["status"], "unknown");
}

#[limits]
#[test]
fn where_a_container_starts_it_says_so_with_the_agents_of_the_image() {
    let Some(engine) = Engine::find() else { return };
    let mut fixture = Fixture::new();
    fixture.set_env("DOCKER_HOST", engine.address());
    fixture.set_env("SANDBOX_DOCKER_IMAGE", engine.worker_image());
    fixture.set_env("ANTHROPIC_API_KEY", "sk-placeholder");
    fixture.set_env("OPENAI_API_KEY", "sk-placeholder");
    let said = docker_doctor(&fixture);
    assert_eq!(said.code, Some(0), "{:#}", said.json());
    assert_eq!(said.json()["mode"], "docker");
    assert_eq!(said.json()["would_start"]["agents"], json!(["claude_code", "codex", "opencode"]));
    for name in [
        "engine",
        "engine_users",
        "limits",
        "runtime",
        "image",
        "worker_binary",
        "socket",
        "sandbox",
        "engine_socket",
        "mounts",
    ] {
        assert_eq!(finding(&said, name)["status"], "ok", "{name}");
    }
    for (name, version) in [("claude_code", "2."), ("codex", "0."), ("opencode", "1.")] {
        let found = finding(&said, name);
        assert!(found["detail"].as_str().is_some_and(|text| text.contains(version)), "{found}");
    }
    assert_eq!(finding(&doctor(&fixture), "docker")["status"], "ok");
    let own = fs::read_to_string(fixture.state().join("id")).expect("the state folder has a number");
    let filter = format!("label=dev.cofferdam.state={own}");
    let left =
        engine.docker(["ps", "--all", "--quiet", "--filter", &filter]).output().expect("docker starts");
    assert!(left.stdout.is_empty(), "{}", String::from_utf8_lossy(&left.stdout));
}

#[once]
#[test]
fn an_image_without_agents_runs_commands_and_no_prompts() {
    let Some(engine) = Engine::find() else { return };
    let mut fixture = Fixture::new();
    fixture.set_env("DOCKER_HOST", engine.address());
    fixture.set_env("SANDBOX_DOCKER_IMAGE", engine.small_image());
    fixture.set_env("ANTHROPIC_API_KEY", "sk-placeholder");
    let said = docker_doctor(&fixture);
    assert_eq!(said.json()["would_start"], json!({ "command": true, "agents": [] }), "{:#}", said.json());
    assert_eq!(finding(&said, "claude_code")["remedy"], "cofferdam sandbox build-image");
}

#[once]
#[test]
fn a_mode_that_has_no_walls_or_is_unknown_is_a_usage_error() {
    for (mode, said) in [("host", "no walls"), ("dcoker", "unknown mode `dcoker`")] {
        let ended = Fixture::new().cofferdam(["sandbox", "doctor", "--mode", mode]);
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains(said) && ended.stderr.contains("--mode docker"), "{}", ended.stderr);
    }
}

#[once]
#[test]
fn each_agent_of_the_settings_has_a_finding_in_its_own_mode() {
    let mut fixture = Fixture::new();
    for name in ["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY"] {
        fixture.set_env(name, "");
    }
    fixture.set_env("ANTHROPIC_API_KEY", "sk-placeholder");
    let text = json!({ "agents": {
        "coder": { "provider": "anthropic", "sandbox_mode": "docker" },
        "tester": { "provider": "openai" },
    } });
    fs::create_dir_all(fixture.state()).expect("a new folder");
    fs::write(fixture.state().join("settings.json"), text.to_string()).expect("a new file");
    let report = doctor(&fixture).json();
    let findings = report["findings"].as_array().expect("a list").iter();
    let found: Vec<&Value> = findings.filter(|one| one["name"] == "agent_access").collect();
    assert_eq!(found.len(), 2, "{report:#}");
    assert_eq!(found[0]["status"], "ok");
    let detail = found[0]["detail"].as_str().expect("text");
    assert!(detail.contains("coder (claude_code, mode docker): the key in ANTHROPIC_API_KEY"), "{detail}");
    assert_eq!(found[1]["status"], "weak");
    assert!(found[1]["remedy"].as_str().is_some_and(|text| text.contains("codex login")), "{report:#}");
}

/// A doctor of `--mode apple` with this command.
fn apple_doctor(command: &Path, image: &str) -> Finished {
    let fixture = Fixture::new();
    let apple = json!({ "runtime_command": command, "image": image });
    let text = json!({ "sandbox": { "apple": apple } });
    fs::create_dir_all(fixture.state()).expect("a new folder");
    fs::write(fixture.state().join("settings.json"), text.to_string()).expect("a new file");
    fixture.cofferdam(["sandbox", "doctor", "--mode", "apple", "--json"])
}

#[limits]
#[test]
fn a_runtime_command_is_looked_at_as_an_engine_is() {
    let Some(engine) = Engine::find() else { return };
    let said = apple_doctor(engine.docker_command(), engine.small_image());
    for name in ["runtime_command", "service", "runtime_options", "image", "mounts", "socket", "sandbox"] {
        assert_eq!(finding(&said, name)["status"], "ok", "{:#}", said.json());
    }
    assert_eq!(said.code, Some(0), "{:#}", said.json());
    assert_eq!(finding(&said, "claude_code")["status"], "weak");
    let missing = apple_doctor(engine.docker_command(), "cofferdam-e2e/nowhere:1");
    assert_eq!((missing.code, &finding(&missing, "image")["status"]), (Some(3), &json!("missing")));
}

#[once]
#[test]
fn a_runtime_command_that_is_not_there_is_missing() {
    let said = apple_doctor(Path::new("/no/such/container"), "cofferdam/worker:latest");
    assert_eq!(said.code, Some(3), "{}", said.stderr);
    assert_eq!(finding(&said, "runtime_command")["status"], "missing");
    assert_eq!(finding(&said, "sandbox")["status"], "unknown");
}
