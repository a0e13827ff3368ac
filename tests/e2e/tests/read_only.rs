//! A run that must not change its project: what it can still do, and that nobody is told otherwise.

use std::path::Path;

use cofferdam_e2e::{Finished, Fixture, Record, tree_of};
use cofferdam_test_marks::once;
use serde_json::json;

/// Says what of its commands did not work. Each is tried in a shell of its own.
fn failing(commands: &[&str]) -> String {
    let tries =
        commands.iter().map(|command| format!("sh -c '{command}' 2>/dev/null || echo 'failed: {command}'"));
    tries.collect::<Vec<_>>().join("; ")
}

/// What the script of [`failing`] said.
fn failed(fixture: &Fixture, finished: &Finished) -> Vec<String> {
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let printed = fixture.printed(&finished.run_id());
    printed.iter().filter_map(|line| line.strip_prefix("failed: ").map(str::to_owned)).collect()
}

/// What a reviewer does, and what its tools write for themselves.
const READING: [&str; 8] = [
    "cat README.md src/main.txt",
    "git status",
    "git log",
    "git diff HEAD",
    "cp -r . /tmp/copy && cd /tmp/copy && git commit --allow-empty -qm x",
    "echo x > $HOME/x",
    "echo x > /tmp/x",
    "echo x > /dev/shm/x",
];

const WRITING: [&str; 7] = [
    "echo x >> README.md",
    "echo x > new.txt",
    "rm README.md",
    "git -c user.name=x -c user.email=x commit --allow-empty -m x",
    "git branch new",
    "git init nested",
    "git config own.key value",
];

#[test]
fn a_reviewer_reads_and_writes_elsewhere_and_the_diff_is_empty() {
    let fixture = Fixture::new();
    let before = tree_of(&fixture.repository(), &[]);
    let identity = "export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x; ";
    let script = format!("{identity}{}; {}", failing(&READING), failing(&WRITING));
    let review = fixture.run(&["--read-only"], &script);
    assert_eq!(failed(&fixture, &review), WRITING);
    assert_eq!(review.diff(), "");
    assert!(review.stderr.contains(", workspace read-only, "), "{}", review.stderr);
    assert!(review.stderr.contains("nothing changed"), "{}", review.stderr);
    assert_eq!(review.json()["seal"]["workspace"], json!({ "path": "/workspace", "access": "read_only" }));
    let shown = fixture.cofferdam(["runs", "show", &review.run_id()]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("workspace: read-only\n") && !shown.contains("/workspace"), "{shown}");
    assert_eq!(tree_of(&fixture.repository(), &[]), before);

    // The control: all of it works where it may.
    let ordinary = fixture.run(&[], &script);
    assert_eq!(failed(&fixture, &ordinary), [""; 0]);
    assert!(ordinary.diff().contains("new.txt"), "{}", ordinary.diff());
    assert!(!ordinary.stderr.contains("workspace read-only"), "{}", ordinary.stderr);
    assert_eq!(ordinary.json()["seal"]["workspace"]["access"], "read_write");
    let shown = fixture.cofferdam(["runs", "show", &ordinary.run_id()]);
    assert!(String::from_utf8(shown.stdout).unwrap().contains("workspace: writable\n"));
}

/// Runs the same twice. With the wall nothing of the commands works, and without it everything does.
fn stops(fixture: &Fixture, flags: &[&str], commands: &[&str]) {
    let closed = fixture.run(&[flags, &["--read-only"]].concat(), &failing(commands));
    assert_eq!(failed(fixture, &closed), commands, "{}", closed.stderr);
    assert_eq!(closed.diff(), "");
    assert_eq!(closed.json()["seal"]["workspace"]["access"], "read_only");
    let open = fixture.run(flags, &failing(commands));
    assert_eq!(failed(fixture, &open), [""; 0], "{}", open.stderr);
}

#[test]
fn an_empty_workspace_and_a_fetched_one_are_read_only_too() {
    let fixture = Fixture::new();
    let commands = ["echo x > new.txt", "mkdir new", "ln -s /etc new-link"];
    stops(&fixture, &["--no-repo"], &commands);
    let address = format!("file://{}", fixture.repository().display());
    stops(&fixture, &["--repo", &address], &commands);
}

#[test]
fn what_the_git_of_a_linked_worktree_keeps_elsewhere_is_read_only_too() {
    let fixture = Fixture::new();
    let linked = fixture.path("linked");
    fixture.git(&["worktree", "add", "--quiet", linked.to_str().unwrap()]);
    let common = fixture.repository().join(".git");
    let into_common = format!("echo x > {}/new", common.display());
    let commands = ["git branch new", "echo x > new.txt", into_common.as_str()];
    stops(&fixture, &["--repo", linked.to_str().unwrap()], &commands);
}

#[test]
fn a_workspace_at_its_own_path_is_read_only_there_and_by_every_way_to_it() {
    // Not in a folder that a sandbox has one of its own in place of.
    let fixture = Fixture::below(Path::new("/var/tmp"));
    let path = fixture.repository().canonicalize().unwrap();
    let by_path = format!("echo x > {}/by-path", path.display());
    // Mapped, the path is a link to the workspace.
    stops(&fixture, &[], &["echo x > /workspace/here", &by_path]);
    write_settings(&fixture, r#"{"sandbox": {"path_mapping_mode": "same-path"}}"#);
    stops(&fixture, &[], &["echo x > here", &by_path]);
    let run = fixture.run(&["--read-only"], "pwd");
    assert_eq!(fixture.printed(&run.run_id()), [path.display().to_string()]);
    assert_eq!(run.json()["seal"]["workspace"]["path"], path.display().to_string());
}

fn write_settings(fixture: &Fixture, text: &str) {
    std::fs::write(fixture.state().join("settings.json"), text).expect("a new file");
}

#[once]
#[test]
fn what_cannot_be_read_only_is_refused_and_nothing_is_started() {
    let fixture = Fixture::new();
    let repository = fixture.repository().canonicalize().unwrap();
    let whole = format!("{}:rw", repository.display());
    let part = format!("{}:rw", repository.join("src").display());
    for (flags, named) in [
        (&["--mode", "host"][..], "--mode"),
        (&["--apply"], "--apply"),
        (&["--push", "work"], "--push"),
        (&["--repo", "https://host.example/a", "--commit-branch", "work"], "--commit-branch"),
        (&["--mount", &whole], "--mount"),
        (&["--mount", &part], "--mount"),
    ] {
        let refused = fixture.run(&[flags, &["--read-only"]].concat(), "echo ran");
        assert_eq!(refused.code, Some(2), "{flags:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains("--read-only") && refused.stderr.contains(named),
            "{}",
            refused.stderr
        );
    }
    assert!(!fixture.state().join("cofferdam.db").exists(), "something is on record");
}

/// A tested program is often a repository of its own below the project.
#[test]
fn a_nested_repository_is_read_only_too() {
    let fixture = Fixture::new();
    let nested = fixture.repository().join("nested");
    std::fs::create_dir(&nested).expect("a new folder");
    let done = fixture.git_command(&nested).args(["init", "--quiet"]).status();
    assert!(done.expect("git is installed").success());
    let commit = "cd nested && git -c user.name=x -c user.email=x commit --allow-empty -qm x";
    let closed = fixture.run(&["--read-only"], &failing(&[commit, "touch nested/.git/x"]));
    assert_eq!(failed(&fixture, &closed), [commit, "touch nested/.git/x"]);
    assert_eq!(failed(&fixture, &fixture.run(&[], &failing(&[commit]))), [""; 0]);
}

/// Both walls in turn, and both together: the seal tells what is left open, and the program is never started.
#[test]
fn a_workspace_that_is_writable_against_the_policy_is_noticed() {
    for (without, words) in [
        ("mounts:workspace", "the mount /workspace is not read-only"),
        ("mounts:workspace,landlock:workspace", "/workspace could be written"),
    ] {
        let mut fixture = Fixture::new();
        fixture.set_env("COFFERDAM_WITHOUT", without);
        let finished = fixture.run(&["--read-only"], "echo more >> README.md");
        assert_eq!(
            (finished.outcome().as_str(), finished.code),
            ("failed/seal", Some(3)),
            "{}",
            finished.stderr
        );
        assert_eq!(finished.diff(), "");
        let record = Record::of_the_only_run(&fixture);
        assert_eq!(record.data_of("agent.started").len(), 0, "the program was started");
        let sealed = record.data_of("sandbox.sealed");
        let breach = json!([{ "wall": "mounts", "expected": "a read-only workspace", "measured": words }]);
        assert_eq!(sealed[0]["breaches"], breach, "without {without}");
        assert_eq!(sealed[0]["seal"]["workspace"]["access"], "read_write");
        // Without the flag it is as it always is, and nothing is missing.
        let ordinary = fixture.run(&[], "echo more >> README.md");
        assert_eq!(ordinary.outcome(), "succeeded", "{}", ordinary.stderr);
    }
}
