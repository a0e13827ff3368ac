//! What a program plants in a repository never runs outside, and what a repository hides stays hidden.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cofferdam_e2e::{Fixture, tree_of};
use cofferdam_test_marks::once;

/// Everything that git can be told to run, told to leave a canary.
const PLANT: &str = r#"
cat > evil.sh <<END
#!/bin/sh
echo "\$0" >> $CANARY/sang
cat
END
chmod +x evil.sh; evil=$PWD/evil.sh
for at in $evil $OUTSIDE/evil.sh; do
  for hook in pre-commit post-checkout post-applypatch applypatch-msg reference-transaction post-index-change; do
    cp evil.sh .git/hooks/$hook
  done
  git config core.fsmonitor $at; git config core.pager $at; git config core.editor $at
  git config diff.external $at; git config diff.evil.textconv $at; git config diff.evil.command $at
  git config filter.evil.clean $at; git config filter.evil.smudge $at; git config filter.evil.process $at
  git config filter.evil.required true; git config core.attributesFile $PWD/.gitattributes
done
printf '* filter=evil diff=evil merge=evil\n' > .gitattributes
mkdir -p .git/info; cp .gitattributes .git/info/attributes
echo more >> README.md; mv src/main.txt src/moved.txt; printf 'x\0y' > new.bin
rm -f $CANARY/sang
"#;

#[test]
fn nothing_that_a_program_plants_runs_while_its_changes_are_collected_and_applied() {
    let fixture = Fixture::new();
    let canary = fixture.path("canary");
    fs::create_dir(&canary).expect("a new folder");
    fs::set_permissions(&canary, PermissionsExt::from_mode(0o777)).expect("its owner");
    // Not through `--env`: what is allowed that way is a secret, and a diff with one in it is not applied.
    let places = format!("CANARY={} OUTSIDE={}", canary.display(), fixture.repository().display());
    let mount = format!("{}:rw", canary.display());
    let finished = fixture.run(&["--mount", &mount, "--apply"], &format!("{places}\n{PLANT}"));
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let sang = fs::read_to_string(canary.join("sang")).unwrap_or_default();
    assert_eq!(sang, "", "ran outside");
    let root = fixture.repository();
    assert!(root.join("evil.sh").exists() && root.join("src/moved.txt").exists(), "it was applied");
    assert!(!fixture.git(&["config", "--list"]).contains("evil"), ".git is not part of a diff");
}

/// The attack: a repository that brings programs, and a caller whose PATH leads into it, as `direnv` and
/// `node_modules/.bin` make it.
#[once]
#[test]
fn a_git_that_a_repository_brings_is_never_started() {
    let mut fixture = Fixture::new();
    let (canary, root) = (fixture.path("sang"), fixture.repository());
    let program = format!("#!/bin/sh\necho \"$0 $*\" >> {}\nexec /usr/bin/git \"$@\"\n", canary.display());
    for name in ["git", "bin/git", "bin/ssh", "bin/sleep", "sleep"] {
        fixture.write(name, &program);
        fs::set_permissions(root.join(name), PermissionsExt::from_mode(0o755)).expect("its owner");
    }
    // What its address is read from, for the way out.
    fixture.git(&["remote", "add", "origin", "https://host.invalid/x.git"]);
    let path = std::env::var("PATH").expect("a PATH");
    fixture.set_env("PATH", &format!(".:bin::{}:{}/bin:{path}", root.display(), root.display()));
    let applied = fixture.run(&["--apply"], "echo more >> README.md");
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    assert_eq!(fs::read_to_string(root.join("README.md")).expect("a file"), "hello\nmore\n");
    let url = format!("file://{}", root.display());
    let fetched = fixture.run(&["--repo", &url], "true");
    assert_eq!(fetched.code, Some(0), "{}", fetched.stderr);
    let doctor = fixture.cofferdam(["sandbox", "doctor", "--json"]).json();
    let findings = doctor["findings"].as_array().expect("a list");
    let git = findings.iter().find(|finding| finding["name"] == "git").expect("it looks for git");
    assert_eq!(git["status"], "ok", "{git}");
    let sang = fs::read_to_string(&canary).unwrap_or_default();
    assert_eq!(sang, "", "started by us");
    // Whoever looks along that PATH as a shell does starts it.
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "git --version"]).current_dir(&root).env("PATH", format!(".:{path}"));
    assert!(shell.status().expect("sh").success() && canary.exists(), "the canary works");
}

#[test]
fn secrets_are_hidden_unless_unmasked_and_credentials_are_stripped() {
    let fixture = Fixture::new();
    fixture.write(".env", "TOKEN=hunter2\n");
    fixture.write(".env.example", "TOKEN=\n");
    fixture.git(&["remote", "add", "origin", "https://me:swordfish@host.invalid/x.git"]);
    let before = tree_of(&fixture.repository(), &[]);
    let script = "cat .env.example; cat .env .git/config; git remote -v; exit 0";
    let masked = fixture.run(&[], script);
    let printed = fixture.printed(&masked.run_id()).join("\n");
    assert!(printed.contains("TOKEN=") && !printed.contains("hunter2"), "{printed}");
    assert!(printed.contains("host.invalid") && !printed.contains("swordfish"), "{printed}");
    assert!(!masked.diff().contains(".env"), "{}", masked.diff());
    let seal = masked.json()["seal"].to_string();
    assert!(seal.contains(".env") && !masked.json().to_string().contains("hunter2"), "{seal}");

    let unmasked = fixture.run(&["--unmask", ".env"], script);
    let printed = fixture.printed(&unmasked.run_id()).join("\n");
    assert!(printed.contains("hunter2") && !printed.contains("swordfish"), "{printed}");
    assert!(before == tree_of(&fixture.repository(), &[]));
}

const COMMIT: &str = "git config user.name x; git config user.email x@localhost; git status --short; \
                      echo more >> README.md; git commit -qam inside && git log --oneline | wc -l";

#[test]
fn a_linked_worktree_works() {
    let fixture = Fixture::new();
    let linked = fixture.path("linked");
    fixture.git(&["worktree", "add", "--quiet", linked.to_str().expect("a plain path")]);
    let before = (tree_of(&fixture.repository(), &[]), tree_of(&linked, &[]));
    let finished = fixture.run(&["--repo", linked.to_str().expect("a plain path")], COMMIT);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert_eq!(fixture.printed(&finished.run_id()), ["2"]);
    assert!(finished.diff().contains("+more"), "{}", finished.diff());
    assert!(before == (tree_of(&fixture.repository(), &[]), tree_of(&linked, &[])));
}

#[test]
fn a_submodule_works() {
    let fixture = Fixture::new();
    let library = Fixture::new();
    let address = library.repository();
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    fixture.git(&[&add[..], &[address.to_str().expect("a plain path"), "lib"]].concat());
    fixture.git(&["commit", "--quiet", "--message=submodule"]);
    let before = tree_of(&fixture.repository(), &[]);
    let script = format!("cd lib; {COMMIT}; cd ..; echo outer >> README.md; git diff --stat | cat");
    let finished = fixture.run(&[], &script);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert_eq!(fixture.printed(&finished.run_id())[0], "2");
    let diff = finished.diff();
    assert!(diff.contains("+more") && diff.contains("+outer") && diff.contains("lib/README.md"), "{diff}");
    assert!(before == tree_of(&fixture.repository(), &[]));
}
