//! Holes that were found by looking for them, each with what must happen instead.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cofferdam_e2e::Fixture;
use cofferdam_e2e::attack_suite::{events, messages};

fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("SKIPPED: only root can set up: {what}");
    }
    root
}

/// A service account lives in `/opt`, which every sandbox shows.
#[test]
fn a_home_a_state_folder_and_a_repository_below_a_shown_folder_are_covered() {
    if !is_root("a home below /opt") {
        return;
    }
    let fixture = Fixture::below(Path::new("/opt"));
    fs::set_permissions(fixture.path(""), Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(fixture.home().join(".ssh")).unwrap();
    fs::write(fixture.home().join(".ssh/id_ed25519"), "private").unwrap();
    fs::create_dir_all(fixture.home().join(".cargo/bin")).unwrap();
    fs::write(fixture.home().join(".cargo/bin/tool"), "a tool").unwrap();
    fixture.write(".env", "PASSWORD=hunter2");
    let [home, state, repository] =
        [fixture.home(), fixture.state(), fixture.repository()].map(|path| path.display().to_string());
    let script = format!(
        "cat {home}/.ssh/id_ed25519 {repository}/.env {repository}/README.md; ls -A {home} {state}; \
         cat {home}/.cargo/bin/tool; echo; touch {home}/x {repository}/x {state}/x; cat /workspace/README.md"
    );
    let finished = fixture.run(&[], &script);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let events = events(&fixture, &finished.run_id());
    let said: Vec<&str> = messages(&events).collect();
    let expected = [&*format!("{home}:"), ".cargo", "", &*format!("{state}:"), "a tool", "hello"];
    assert_eq!(said, expected);
}

/// The repository's surroundings were mounted, and with them the repository past its mask.
#[test]
fn a_mount_around_the_repository_does_not_show_what_is_masked() {
    let fixture = Fixture::new();
    fixture.write("../around/repo/.env", "PASSWORD=hunter2");
    fs::rename(fixture.repository(), fixture.path("around/repo-moved")).unwrap();
    let repository = fixture.path("around/repo-moved");
    fs::write(repository.join(".env"), "PASSWORD=hunter2").unwrap();
    fs::write(fixture.path("around/other"), "shown\n").unwrap();
    let around = fixture.path("around").display().to_string();
    let repo = repository.display().to_string();
    let finished = fixture.run(
        &["--repo", &repo, "--mount", &format!("{around}:rw")],
        &format!("cat {around}/other {repo}/.env {repo}/README.md; echo x > {repo}/README.md; cat README.md"),
    );
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let events = events(&fixture, &finished.run_id());
    assert_eq!(messages(&events).collect::<Vec<_>>(), ["shown", "hello"]);
    assert_eq!(fs::read_to_string(repository.join("README.md")).unwrap(), "hello\n");
}
