//! Bad input: one line that says what is wrong, one that says what to do, and an exit code of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use cofferdam_e2e::{Finished, Fixture, binary};
use cofferdam_test_marks::once;

/// One line that says what is wrong, one that says what to do.
fn assert_refused(finished: &Finished, code: i32, words: &str) {
    assert_eq!(finished.code, Some(code), "{}", finished.stderr);
    let said = &finished.stderr;
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
    assert!(errors.len() == 1 && errors[0].contains(words), "`{words}` in {said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("hint: ")).count(), 1, "{said}");
    assert!(finished.stdout.is_empty());
}

#[once]
#[test]
fn bad_input_is_one_line_with_a_hint() {
    let fixture = Fixture::new();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["--repo", "ext::sh -c id"], 2, "ext"),
        (&["--repo", "--upload-pack=touch /tmp/x"], 2, "--upload-pack"),
        (&["--repo", "file://host/path"], 2, "file://"),
        (&["--repo", "https://me:secret@host.invalid/x"], 2, "password"),
        (&["--repo", "/nowhere/at/all"], 2, "/nowhere/at/all"),
        (&["--ref", "--help"], 2, "--ref"),
        (&["--mode", "dokcer"], 2, "dokcer"),
        (&["--mode", "docker", "--image", "openTiger/worker"], 2, "opentiger/worker"),
        (&["--image", "a:1"], 2, "--image"),
        (&["--mode", "host", "--network", "none"], 2, "network"),
        (&["--env", "A=B"], 2, "--env"),
        (&["--timeout", "soon"], 2, "--timeout"),
        (&["--memory", "1k"], 2, "--memory"),
        (&["--mount", "/"], 2, "machine"),
        (&["--unmask", "["], 2, "--unmask"),
        (&["--output", "/nowhere/x.patch"], 2, "/nowhere"),
    ];
    for (flags, code, words) in cases {
        let finished = fixture.cofferdam([&["run"], *flags, &["--", "true"]].concat());
        assert_refused(&finished, *code, words);
        assert!(!finished.stderr.contains("secret"), "{}", finished.stderr);
    }
}

#[once]
#[test]
fn outside_a_repository_it_says_what_to_type() {
    let fixture = Fixture::without_repository();
    assert_refused(&fixture.cofferdam(["run", "--", "true"]), 2, "is not in a git repository");
}

#[test]
fn a_state_folder_that_cannot_be_made_is_told() {
    let mut fixture = Fixture::new();
    fixture.set_env("COFFERDAM_HOME", "/proc/nowhere");
    let finished = fixture.cofferdam(["run", "--", "true"]);
    assert_refused(&finished, 3, "/proc/nowhere");
}

/// The run is on record, so its own failures are told by its outcome.
fn assert_failed(finished: &Finished, code: i32, outcome: &str, words: &str) {
    assert_eq!(finished.outcome(), outcome, "{}", finished.stderr);
    assert_eq!(finished.code, Some(code), "{}", finished.stderr);
    let hints = finished.stderr.lines().filter(|line| line.starts_with("hint: ")).count();
    assert!(finished.stderr.contains(words) && hints == 1, "`{words}` and a hint in {}", finished.stderr);
}

#[once]
#[test]
fn a_ref_that_is_not_there_names_those_that_are_near() {
    let fixture = Fixture::new();
    fixture.git(&["branch", "feature"]);
    let url = format!("file://{}", fixture.repository().display());
    let finished = fixture.run(&["--repo", &url, "--ref", "featrue"], "true");
    assert_failed(&finished, 6, "failed/repository", "feature");
}

#[test]
fn an_address_is_fetched_with_progress_and_checked_out() {
    let fixture = Fixture::new();
    let url = format!("file://{}", fixture.repository().display());
    fixture.write("README.md", "not committed\n");
    let finished = fixture.run(&["--repo", &url, "--ref", "main"], "cat README.md; echo x > x");
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert_eq!(fixture.printed(&finished.run_id()), ["hello"]);
    assert!(finished.diff().contains("+x") && !finished.diff().contains("README"), "{}", finished.diff());
    assert!(finished.stderr.contains("Receiving objects"), "{}", finished.stderr);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let fixture = Fixture::new();
    fixture.write("closed", "secret\n");
    let place = fixture.path("");
    let closed = fixture.repository().join("closed");
    let mut command = fixture.command();
    if rustix::process::geteuid().is_root() {
        // Root reads everything, so somebody else has to try.
        let copy = fixture.path("cofferdam");
        fs::copy(binary(), &copy).expect("a copy");
        let own = Command::new("chown").args(["-R", "65534:65534"]).arg(&place).status();
        assert!(own.expect("chown").success());
        std::os::unix::fs::chown(&closed, Some(0), Some(0)).expect("root may");
        let mut other = Command::new(&copy);
        let kept = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        other.envs(kept.collect::<Vec<_>>()).current_dir(fixture.repository()).uid(65534).gid(65534);
        command = other;
    }
    fs::set_permissions(&closed, PermissionsExt::from_mode(0o000)).expect("its owner");
    // An overlay does not read what the agent does not; host mode copies, so it has to.
    command.args(["run", "--json", "--mode", "host", "--", "true"]);
    assert_failed(&Finished::of(command), 6, "failed/workspace", "closed");
}

#[once]
#[test]
fn a_full_disk_while_preparing_is_told() {
    let mut fixture = Fixture::new();
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can mount a small disk");
        return;
    }
    fixture.write("big", vec![7; 30 << 20]);
    let small = fixture.path("small");
    fs::create_dir(&small).expect("a new folder");
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs"]).arg(&small).status();
    assert!(mounted.expect("mount").success());
    fixture.set_env("COFFERDAM_HOME", small.to_str().expect("a plain path"));
    let finished = fixture.run(&["--mode", "host"], "true");
    let mut left = cofferdam_e2e::leftovers(&small);
    left.retain(|found| !found.contains("size=8192k"));
    let unmounted = Command::new("umount").arg("-l").arg(&small).status();
    assert!(unmounted.expect("umount").success());
    assert_failed(&finished, 6, "failed/workspace", "space");
    assert!(left.is_empty(), "{left:?}");
}
