//! What a program changes comes back as a patch that plain git applies; the original stays as it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cofferdam_e2e::{Finished, Fixture, tree_of};

/// What git keeps of a tree: files and links, with their content and whether they can be executed.
fn files_of(root: &Path) -> Vec<(PathBuf, String, bool, Vec<u8>)> {
    let tree = tree_of(root, &[".git"]).into_iter();
    tree.filter(|(path, (kind, ..))| kind != "folder" && !path.iter().any(|part| part == ".git"))
        .map(|(path, (kind, mode, content))| {
            let executable = kind == "file" && mode & 0o100 != 0;
            (path, kind, executable, content)
        })
        .collect()
}

fn clone(fixture: &Fixture, name: &str) -> PathBuf {
    let to = fixture.path(name);
    let mut git = fixture.git_command(&fixture.repository());
    let status = git.args(["clone", "--quiet", "."]).arg(&to).status().expect("git is installed");
    assert!(status.success());
    to
}

fn base() -> Fixture {
    let fixture = Fixture::new();
    for page in 1..4 {
        let text: String = (page..page + 60).map(|line| format!("line {line}\n")).collect();
        fixture.write(&format!("docs/page{page}.md"), text);
    }
    fixture.write("run.sh", "#!/bin/sh\n");
    fixture.write("blob.bin", [0, 1, 2, 255].repeat(1000));
    std::os::unix::fs::symlink("README.md", fixture.repository().join("link")).expect("a link");
    fixture.git(&["add", "--all"]);
    fixture.git(&["commit", "--quiet", "--message=second"]);
    fixture
}

/// Runs a script inside and, in a clone, outside: the patch must make one out of the other.
fn assert_round_trip(script: &str) -> Finished {
    let fixture = base();
    fs::create_dir(fixture.repository().join("empty")).expect("a new folder");
    let before = tree_of(&fixture.repository(), &[]);
    let patch = fixture.path("out.patch");
    let finished = fixture.run(&["--output", patch.to_str().expect("a plain path")], script);
    assert_eq!(finished.outcome(), "succeeded", "{script}: {}", finished.stderr);
    assert!(before == tree_of(&fixture.repository(), &[]), "{script}: the original changed");

    let played = clone(&fixture, "played");
    fs::create_dir(played.join("empty")).expect("a new folder");
    let mut shell = fixture.git_command(&played);
    let git_environment: Vec<_> =
        shell.get_envs().map(|(k, v)| (k.to_owned(), v.map(ToOwned::to_owned))).collect();
    let mut outside = std::process::Command::new("sh");
    outside.current_dir(&played).args(["-c", script]);
    outside.envs(git_environment.into_iter().filter_map(|(name, value)| Some((name, value?))));
    assert!(outside.status().expect("a shell").success(), "{script}");

    let applied = clone(&fixture, "applied");
    shell = fixture.git_command(&applied);
    let output = shell.args(["apply", "--whitespace=nowarn"]).arg(&patch).output().expect("git is installed");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(files_of(&applied), files_of(&played), "{script}");
    finished
}

#[test]
fn new_changed_and_deleted_files_survive() {
    assert_round_trip(
        "echo four >> src/main.txt; mkdir -p new/er; echo x > new/er/file; : > new/empty; rm README.md",
    );
    assert_round_trip("rm -r docs src link");
}

#[test]
fn renames_survive_and_are_told_as_such() {
    let finished = assert_round_trip("mv docs manual; echo more >> manual/page1.md");
    assert!(finished.diff().contains("rename to manual/page2.md"), "{}", finished.diff());
    assert_round_trip("mkdir deep && mv src/main.txt deep/moved.txt");
}

#[test]
fn modes_binary_files_and_links_survive() {
    assert_round_trip("chmod +x run.sh; chmod +x src/main.txt; chmod -x src/main.txt");
    assert_round_trip(
        r"printf '\000\377new' > new.bin; printf '\007' | dd of=blob.bin bs=1 seek=9 conv=notrunc 2>&1",
    );
    assert_round_trip("ln -sfn nowhere link; ln -s / root; rm src/main.txt; ln -s ../README.md src/main.txt");
}

#[test]
fn folders_made_files_and_the_other_way_round_survive() {
    assert_round_trip("rmdir empty; echo file > empty");
    assert_round_trip(
        "rm -r docs; echo file > docs; rm README.md; mkdir README.md; echo in > README.md/inner",
    );
}

#[test]
fn odd_names_and_rules_of_the_program_survive() {
    assert_round_trip("n=$(printf 'new\\nline'); echo x > \"$n\"; echo y > 'quo\"te'; echo z > ' lead'");
    assert_round_trip("printf '*\\n' > .gitignore; echo hidden > planted");
}

#[test]
fn a_nested_repository_is_carried_as_its_files_and_named() {
    let finished = assert_round_trip("git init -q sub; echo in > sub/file");
    assert!(finished.stderr.contains("sub/.git"), "{}", finished.stderr);
}

#[test]
fn what_was_committed_inside_is_in_the_diff() {
    let script = "git config user.name x; git config user.email x@localhost; \
                  echo c >> README.md; git add -A; git commit -qm inside; echo u >> src/main.txt";
    let finished = assert_round_trip(script);
    assert!(finished.diff().contains("+c") && finished.diff().contains("+u"), "{}", finished.diff());
}

#[test]
fn what_was_uncommitted_or_ignored_is_visible_and_not_in_the_diff() {
    let fixture = base();
    fixture.write(".git/info/exclude", "ignored.txt\n");
    fixture.write("ignored.txt", "ignored\n");
    fixture.write("untracked.txt", "untracked\n");
    fixture.write("README.md", "changed\n");
    let script = "cat ignored.txt untracked.txt README.md; echo mine > mine.txt";
    let finished = fixture.run(&[], script);
    assert_eq!(fixture.printed(&finished.run_id()), ["ignored", "untracked", "changed"]);
    let touched: Vec<String> =
        finished.diff().lines().filter(|line| line.starts_with("diff ")).map(str::to_owned).collect();
    assert_eq!(touched, ["diff --git a/mine.txt b/mine.txt"]);
}

#[test]
fn apply_changes_the_repository_if_the_run_succeeded() {
    let fixture = base();
    let finished = fixture.run(&["--apply"], "echo applied >> README.md; mv src/main.txt src/moved.txt");
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(finished.json()["applied"], true);
    let read = |name: &str| fs::read_to_string(fixture.repository().join(name)).unwrap_or_default();
    assert_eq!(read("README.md"), "hello\napplied\n");
    assert!(read("src/main.txt").is_empty() && read("src/moved.txt").starts_with("one"));

    let failed = fixture.run(&["--apply"], "echo not this >> README.md; exit 1");
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    assert_eq!(read("README.md"), "hello\napplied\n", "only what succeeded is applied");
}

#[test]
fn a_conflict_is_refused_and_nothing_is_changed() {
    let mut fixture = base();
    let gate = fixture.path("gate");
    fs::create_dir(&gate).expect("a new folder");
    fs::set_permissions(&gate, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("its owner");
    fixture.set_env("GATE", gate.to_str().expect("a plain path"));
    let mount = format!("{}:rw", gate.display());
    let script = "echo inside > README.md; echo n > new; : > $GATE/ready; while [ ! -e $GATE/go ]; do sleep 0.05; done";
    let running = fixture.start(&["--apply", "--env", "GATE", "--mount", &mount], script);
    let started = Instant::now();
    while !gate.join("ready").exists() {
        assert!(started.elapsed() < Duration::from_secs(60), "the program never came to its gate");
        std::thread::sleep(Duration::from_millis(10));
    }
    fixture.write("README.md", "somebody else\n");
    let before = tree_of(&fixture.repository(), &[]);
    fs::write(gate.join("go"), "").expect("a new file");
    let finished = running.finish();
    assert_eq!(finished.code, Some(8), "{}", finished.stderr);
    assert_eq!(finished.outcome(), "succeeded");
    assert_eq!(finished.json()["applied"], false);
    assert!(finished.stderr.contains("hint: "), "{}", finished.stderr);
    assert!(before == tree_of(&fixture.repository(), &[]));
}
