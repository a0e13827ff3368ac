//! The same without a wall, which is said plainly; the key stays outside the agent all the same.

use cofferdam_e2e::Agents;
use cofferdam_scripted_model::{Answer, Script};

use crate::agents::hunt::{hunt, plant_logins};
use crate::agents::stage::{Cli, Snapshot, Stage, applied, new_secret};

#[test]
fn claude_edits_on_the_host_and_never_has_the_key() {
    edits_on_the_host(Cli::Claude);
}

#[test]
fn codex_edits_on_the_host_and_never_has_the_key() {
    edits_on_the_host(Cli::Codex);
}

#[test]
fn opencode_edits_on_the_host_and_never_has_the_key() {
    edits_on_the_host(Cli::OpenCode);
}

/// What the agent was given: its own environment and that of the command that it starts, its folders, its work.
const OWN: &str = r#""/proc/self/environ /proc/$$/environ /proc/$PPID/environ $PWD
    ${CLAUDE_CONFIG_DIR:-} ${CODEX_HOME:-} ${XDG_CONFIG_HOME:-} ${XDG_DATA_HOME:-} ${XDG_STATE_HOME:-}""#;

/// OpenCode installs a package at every start, and what npm keeps of it must not stay in the home.
const NPM: &str = r#"case "$npm_config_cache" in ""|"$HOME"/*) echo "npm's cache is in the home";; esac;"#;

fn edits_on_the_host(cli: Cli) {
    let Some(agents) = Agents::find() else { return };
    let (key, login) = (new_secret("sk-e2e"), new_secret("login"));
    let in_own = hunt(&[("key", &key), ("login", &login)], OWN);
    // Nothing is between an agent on the host and its caller's home: that the look finds it there shows that
    // the look works.
    let in_home = hunt(&[("home", &login)], "$HOME");
    let answers = [
        Answer::write_file("made/new.txt", "one\ntwo\n"),
        Answer::read_file("README.md"),
        Answer::edit_file("README.md", "hello\n", "goodbye\n"),
        Answer::shell(format!("{{ {NPM} {in_own}{in_home}}} > hunt.txt 2>&1")),
        Answer::text("I have done it."),
    ];
    let mut stage = Stage::with_key(&agents, &key, Script::new(answers));
    // A registry that is not there: no test waits for the network.
    stage.fixture.set_env("npm_config_registry", "http://127.0.0.1:9");
    stage.fixture.set_env("npm_config_fetch_retries", "0");
    let npm = ["--env", "npm_config_registry", "--env", "npm_config_fetch_retries"];
    plant_logins(&stage.fixture, &login);
    let (repository, home) = (Snapshot::of(&stage.fixture.repository()), Snapshot::of(&stage.fixture.home()));

    let finished = stage.run(cli, &[&["--mode", "host"], &npm[..]].concat());
    assert_eq!((finished.code, &*finished.outcome()), (Some(0), "succeeded"), "{}", finished.stderr);
    for words in ["WARNING: --mode host puts no wall around the program", "NOT SEALED: host mode"] {
        assert!(finished.stderr.contains(words), "`{words}` in {}", finished.stderr);
    }
    assert_eq!(finished.json()["sealed"], false);
    assert_eq!(Snapshot::of(&stage.fixture.repository()), repository, "the original is untouched");
    assert_eq!(Snapshot::of(&stage.fixture.home()), home, "nothing is left in the caller's home");
    stage.assert_the_model_had_the_key();
    stage.assert_the_key_is_nowhere();
    assert_eq!(stage.model.calls(), 5);

    let changed = applied(&stage.fixture, &finished.diff());
    assert_eq!(changed.keys().collect::<Vec<_>>(), ["README.md", "hunt.txt", "made/new.txt"]);
    assert_eq!((&*changed["README.md"], &*changed["made/new.txt"]), ("goodbye\n", "one\ntwo\n"));
    let found = &changed["hunt.txt"];
    assert!(found.starts_with("key CLEAN\nlogin CLEAN\nhome FOUND "), "{found}");
}
