//! Runs of people who have logged in with a CLI and have no key: the token opens the model, and is not inside.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use cofferdam_core::{Agent, EgressPolicy, Network, PromptSetup, RunState, Work};
use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Agents, DetachedNode, Engine, Finished, Marks, Queue, Record, Running, node_id};
use cofferdam_scripted_model::{Answer, Script};
use cofferdam_test_marks::once;

use crate::agents::hunt::{EVERYWHERE, hunt};
use crate::agents::logged_in::{FAR, LoggedIn};
use crate::agents::stage::{Cli, Snapshot, new_secret};

/// Looks everywhere inside, then says what the CLI's own folders hold.
fn look_around(one: &LoggedIn) -> Script {
    let secrets: Vec<(&str, &str)> = one.private.iter().map(|(name, secret)| (*name, &**secret)).collect();
    let hunt = hunt(&secrets, EVERYWHERE);
    let owners = "stat -c '%u %a %n' ~/.claude/.credentials.json ~/.config/claude/.credentials.json \
                  ~/.codex/auth.json 2>/dev/null; id -u";
    let answers = [Answer::shell(format!("{{ {hunt} {owners}\n}} > found.txt 2>&1")), Answer::text("Done.")];
    Script::new(answers).expecting_key(&one.access)
}

/// What an agent finds inside if it has the placeholder alone, in files of its own.
fn assert_clean_and_owned(finished: &Finished, files: &[&str]) {
    let diff = finished.diff();
    let found: Vec<&str> = diff.lines().filter_map(|line| line.strip_prefix('+')).skip(1).collect();
    let clean =
        ["access", "refresh", "history", "transcript", "settings"].map(|name| format!("{name} CLEAN"));
    assert_eq!(found[..5], clean, "{diff}");
    let user = found.last().expect("a user");
    assert_ne!(*user, "0", "{diff}");
    let owned: Vec<String> = files.iter().map(|file| format!("{user} 600 /home/worker/{file}")).collect();
    assert_eq!(found[5..found.len() - 1], owned, "{diff}");
}

fn works(one: &LoggedIn, cli: Cli, mode: &[&str]) {
    let before = Snapshot::of(&one.fixture.home());
    let finished = one.run(cli, mode);
    assert_eq!((finished.code, &*finished.outcome()), (Some(0), "succeeded"), "{}", finished.stderr);
    assert_eq!(Snapshot::of(&one.fixture.home()), before, "the caller's home is as it was");
    one.assert_the_model_had(&one.access);
    let calls = one.calls();
    match cli {
        Cli::Claude => {
            let files = [".claude/.credentials.json", ".config/claude/.credentials.json"];
            assert_clean_and_owned(&finished, &files);
            assert!(calls.iter().all(|call| call.headers["anthropic-beta"].contains("oauth-2025-04-20")));
        }
        Cli::Codex => {
            assert_clean_and_owned(&finished, &[".codex/auth.json"]);
            assert!(calls.iter().all(|call| call.headers["chatgpt-account-id"] == "account-1"));
            assert!(calls.iter().all(|call| call.path == "/v1/responses"), "as the address says");
        }
        Cli::OpenCode => unreachable!("it has no subscription"),
    }
    let record = Record::of(&one.fixture, &finished.run_id());
    let told = format!("{:?} {:?}", record.events, record.shown);
    assert!(!told.contains(&one.access), "the token is on record");
}

#[test]
fn the_login_of_claude_works_sealed_and_stays_outside() {
    let Some(agents) = Agents::find() else { return };
    works(&LoggedIn::new(look_around).with_agents(&agents), Cli::Claude, &[]);
}

#[test]
fn the_login_of_codex_works_sealed_and_stays_outside() {
    let Some(agents) = Agents::find() else { return };
    works(&LoggedIn::new(look_around).with_agents(&agents), Cli::Codex, &[]);
}

#[test]
fn with_a_network_of_its_own_the_agent_has_no_token_either() {
    let Some(agents) = Agents::find() else { return };
    works(&LoggedIn::new(look_around).with_agents(&agents), Cli::Claude, &["--network", "open"]);
}

fn works_in_a_container(cli: Cli) {
    let Some(engine) = Engine::find() else { return };
    let mut one = LoggedIn::new(look_around);
    one.fixture.set_env("DOCKER_HOST", engine.address());
    works(&one, cli, &["--mode", "docker", "--image", engine.worker_image()]);
}

#[test]
fn the_login_of_claude_works_in_a_container_and_stays_outside() {
    works_in_a_container(Cli::Claude);
}

#[test]
fn the_login_of_codex_works_in_a_container_and_stays_outside() {
    works_in_a_container(Cli::Codex);
}

#[once]
#[test]
fn ten_sandboxes_at_once_work_with_one_login() {
    let Some(agents) = Agents::find() else { return };
    // Nobody is answered before all ten have asked.
    let script = |one: &LoggedIn| {
        let held = Answer::text("Done.").held_at("ten").times(10);
        Script::new([held]).expecting_key(&one.access)
    };
    let one = LoggedIn::new(script).with_agents(&agents);
    let before = Snapshot::of(&one.fixture.home());
    let cli = |number| if number % 5 == 4 { Cli::Codex } else { Cli::Claude };
    let running: Vec<Running> =
        (0..10).map(|number| Running::of(one.command(cli(number), &["--timeout", "5m"]))).collect();
    one.model.wait_calls(10);
    one.model.release("ten");
    for finished in running.into_iter().map(Running::finish) {
        assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    }
    one.assert_the_model_had(&one.access);
    assert_eq!(Snapshot::of(&one.fixture.home()), before, "the caller's home is as it was");
}

#[once]
#[test]
fn a_token_that_is_renewed_during_a_run_is_used_by_the_next_call() {
    let Some(agents) = Agents::find() else { return };
    let script =
        |_: &LoggedIn| Script::new([Answer::shell("true").held_at("renewed"), Answer::text("Done.")]);
    let one = LoggedIn::new(script).with_agents(&agents);
    let running = Running::of(one.command(Cli::Claude, &[]));
    one.model.wait_held("renewed");
    let renewed = new_secret("renewed-token");
    one.log_in(&renewed, FAR);
    one.model.release("renewed");
    let finished = running.finish();
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let keys: Vec<_> = one.calls().iter().map(|call| call.key().map(str::to_owned)).collect();
    assert_eq!(keys, [Some(one.access.clone()), Some(renewed)]);
}

#[once]
#[test]
fn a_token_that_expires_during_a_run_ends_it_with_what_renews_it() {
    let Some(agents) = Agents::find() else { return };
    let script = |_: &LoggedIn| Script::new([Answer::shell("true").held_at("expired")]);
    let one = LoggedIn::new(script).with_agents(&agents);
    let running = Running::of(one.command(Cli::Claude, &[]));
    one.model.wait_held("expired");
    one.log_in(&one.access, 1);
    one.model.release("expired");
    let finished = running.finish();
    assert_eq!(finished.outcome(), "failed/auth", "{}", finished.stderr);
    assert!(finished.stderr.contains("has expired: type `claude -p hi` once"), "{}", finished.stderr);
    assert_eq!(one.calls().len(), 1, "an expired token is not sent");
}

/// Refused before anything is on record.
fn assert_refused(one: &LoggedIn, cli: Cli, words: &str) {
    let finished = one.run(cli, &[]);
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    assert!(finished.stderr.contains(words), "`{words}` in {}", finished.stderr);
    assert!(finished.stderr.contains("hint: "), "{}", finished.stderr);
    assert!(!one.fixture.state().join("cofferdam.db").exists(), "nothing has started");
}

#[test]
fn a_login_that_opens_nothing_is_refused_before_anything_starts() {
    let Some(agents) = Agents::find() else { return };
    let one = LoggedIn::new(|_| Script::new([])).with_agents(&agents);
    one.log_in(&one.access, 1);
    assert_refused(&one, Cli::Claude, "the login of Claude Code in ");
    assert_refused(&one, Cli::Claude, "has expired");
    let path = one.path(".claude/.credentials.json");
    type Lay = fn(&Path);
    let lay: [(Lay, &str); 4] = [
        (|path| fs::write(path, "garbage").expect("its owner"), "it is not what the CLI writes"),
        (|path| fs::create_dir(path).expect("a new folder"), "it is not a file"),
        (|path| std::os::unix::fs::symlink("/dev/zero", path).expect("a new link"), "it is not a file"),
        (
            |path| {
                fs::write(path, "{}").expect("a new file");
                fs::set_permissions(path, PermissionsExt::from_mode(0o666)).expect("its owner");
            },
            "another user can write it",
        ),
    ];
    for (lay, words) in lay {
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir(&path);
        lay(&path);
        assert_refused(&one, Cli::Claude, words);
    }
    if !rustix::process::geteuid().is_root() {
        let _ = fs::remove_file(&path);
        fs::write(&path, "{}").expect("a new file");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).expect("its owner");
        assert_refused(&one, Cli::Claude, "it cannot be read");
    }
}

#[once]
#[test]
fn a_long_lived_token_in_the_environment_counts_more_than_the_login() {
    let Some(agents) = Agents::find() else { return };
    let mut one = LoggedIn::new(|_| Script::new([Answer::text("Done.")])).with_agents(&agents);
    let token = new_secret("sk-ant-oat01");
    one.fixture.set_env("CLAUDE_CODE_OAUTH_TOKEN", &token);
    let finished = one.run(Cli::Claude, &[]);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    one.assert_the_model_had(&token);
}

#[once]
#[test]
fn a_login_in_another_folder_is_found_where_the_variable_says() {
    let Some(agents) = Agents::find() else { return };
    for variable in ["CLAUDE_AUTH_DIR", "CLAUDE_CONFIG_DIR"] {
        let mut one = LoggedIn::new(|one| Script::new([]).expecting_key(&one.access)).with_agents(&agents);
        fs::rename(one.path(".claude"), one.path("elsewhere")).expect("its owner");
        let elsewhere = one.path("elsewhere");
        one.fixture.set_env(variable, elsewhere.to_str().expect("a plain path"));
        let finished = one.run(Cli::Claude, &[]);
        assert_eq!(finished.outcome(), "succeeded", "{variable}: {}", finished.stderr);
        one.assert_the_model_had(&one.access);
    }
}

#[once]
#[test]
fn a_broker_of_its_own_reads_the_login_too() {
    let Some(agents) = Agents::find() else { return };
    let mut one = LoggedIn::new(look_around).with_agents(&agents);
    for name in ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY"] {
        one.fixture.set_env(name, "");
    }
    let (queue, marks) = (Queue::open(&one.fixture), Marks::new(&one.fixture));
    let node = DetachedNode::start(&one.fixture, &node_id(1), None);
    let run = queue.enqueue(&one.fixture, &marks, "true", |request| {
        request.work = Work::Agent {
            agent: Agent::ClaudeCode,
            setup: PromptSetup { prompt: "do what there is to do".to_owned(), ..PromptSetup::default() },
        };
        request.policy.network = Network::Sealed;
        request.policy.egress = EgressPolicy { model: true, ..EgressPolicy::default() };
        request.policy.mounts = Vec::new();
    });
    let state = queue.wait_for_end_within(&run, Duration::from_secs(120));
    assert_eq!(state, RunState::Succeeded, "{:?}", queue.run(&run));
    one.assert_the_model_had(&one.access);
    let workspaces = one.fixture.state().join("workspaces");
    let is_swept = || fs::read_dir(&workspaces).map_or(0, Iterator::count) == 0;
    wait_until(Duration::from_secs(30), "the sandbox is removed", is_swept);
    node.stop();
}
