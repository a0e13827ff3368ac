//! Repositories and agents that want programs to run on the host, or files that are not theirs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use cofferdam_runner::artifacts::{ApplyError, apply};

use crate::fixture::{Git, Place, shell, snapshot, try_apply};

/// Configuration and attributes in which every program that git can be told to run leaves a canary.
fn plant(canary: &str) -> String {
    format!(
        r#"
cat > evil.sh <<'END'
#!/bin/sh
echo "$0 $*" >> {canary}
cat
END
chmod +x evil.sh
evil=$(pwd)/evil.sh
mkdir -p .git/hooks
for h in pre-commit post-checkout post-applypatch applypatch-msg reference-transaction post-index-change fsmonitor-watchman; do
  cp evil.sh .git/hooks/$h
done
git config core.fsmonitor $evil
git config core.hooksPath .git/hooks
git config core.sshCommand $evil
git config core.pager $evil
git config core.editor $evil
git config core.attributesFile $(pwd)/.gitattributes
git config core.alternateRefsCommand $evil
git config diff.external $evil
git config diff.evil.textconv $evil
git config diff.evil.command $evil
git config filter.evil.clean $evil
git config filter.evil.smudge $evil
git config filter.evil.process $evil
git config filter.evil.required true
git config merge.evil.driver $evil
git config include.path $(pwd)/evil.config
printf '[diff]\n\texternal = %s\n' $evil > evil.config
printf '* filter=evil diff=evil merge=evil\n' > .gitattributes
mkdir -p .git/info; cp .gitattributes .git/info/attributes
"#
    )
}

#[test]
fn programs_that_an_agent_plants_never_run() {
    for place in [Place::new(), Place::copying()] {
        let root = place.repository("repo", "echo a > a; seq 100 > b; printf 'x\\0y' > c");
        let canary = place.path("canary");
        let script =
            format!("{}\necho more >> a; echo n > n; mv b bb; printf 'z' >> c\nrm -f {0}", plant("/CANARY"))
                .replace("/CANARY", canary.to_str().unwrap());
        let work = place.work_on(&root, &format!("{script}\nrm -f {}", canary.display()));
        assert!(!canary.exists());
        let (collected, patch) = place.collect(&work);
        assert!(collected.changed.iter().any(|c| c.path == ".gitattributes"));
        apply(&patch, &root).unwrap();
        assert!(!canary.exists(), "{}", fs::read_to_string(&canary).unwrap());
        assert_eq!(fs::read_to_string(root.join("n")).unwrap(), "n\n");
    }
}

#[test]
fn programs_that_a_repository_names_never_run() {
    for place in [Place::new(), Place::copying()] {
        let root = place.repository("repo", "echo a > a; seq 100 > b");
        let canary = place.path("canary");
        shell(&root, &plant(canary.to_str().unwrap()));
        let _ = fs::remove_file(&canary);
        let work = place.work_on(&root, "echo more >> a; echo n > n; mv b bb");
        let (_, patch) = place.collect(&work);
        apply(&patch, &root).unwrap();
        assert!(!canary.exists(), "{}", fs::read_to_string(&canary).unwrap());
        assert!(root.join("bb").exists() && !root.join("b").exists());
        // They do run for who asks git in the usual way: the canary works.
        shell(&root, "git status >/dev/null 2>&1 || true; git diff >/dev/null 2>&1 || true");
        assert!(canary.exists());
    }
}

/// Attack: whoever reads the agent's files with plain paths puts the user's keys into the diff.
#[test]
fn a_link_is_recorded_and_never_followed() {
    for place in [Place::new(), Place::copying()] {
        let secret = place.path("secret");
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("key"), "hunter2").unwrap();
        let root = place.repository("repo", "mkdir d; echo x > d/key; echo y > f");
        let s = secret.display();
        let work = place.work_on(&root, &format!("rm -r d; ln -s {s} d; ln -sf {s}/key f; ln -s {s} e"));
        let (_, patch) = place.collect(&work);
        assert!(!fs::read_to_string(patch).unwrap().contains("hunter2"));
    }
}

fn new_file(path: &str) -> String {
    format!(
        "diff --git a/{path} b/{path}\nnew file mode 100644\nindex 0000000..e69de29\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+evil\n"
    )
}

#[test]
fn a_patch_cannot_leave_the_repository_or_enter_git() {
    let place = Place::new();
    let root = place.repository("repo", "mkdir sub; echo x > sub/x; ln -s ../outside out; ln -s /tmp abs");
    fs::create_dir(place.path("outside")).unwrap();
    let before = (snapshot(&root, Git::Included), snapshot(&place.path("outside"), Git::Included));
    for path in [
        "../evil",
        "sub/../../evil",
        "/tmp/cofferdam-evil",
        ".git/hooks/pre-commit",
        ".git/config",
        ".GIT/config",
        "sub/.git/config",
        "sub/.Git/hooks/x",
        "git~1/config",
        ".git./config",
        ".g\u{200c}it/config",
        "out/evil",
        "abs/cofferdam-evil",
    ] {
        let result = try_apply(&place, &root, &new_file(path));
        assert!(matches!(result, Err(ApplyError::Conflict { .. })), "{path}: {result:?}");
    }
    // A link that the patch itself makes, and then writes through.
    let link = "diff --git a/l b/l\nnew file mode 120000\nindex 0000000..1111111\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+../outside\n\\ No newline at end of file\n";
    let through = format!("{link}{}", new_file("l/evil"));
    assert!(matches!(try_apply(&place, &root, &through), Err(ApplyError::Conflict { .. })));
    // Renaming out of `.git`, or into it.
    let rename = "diff --git a/sub/x b/.git/x\nsimilarity index 100%\nrename from sub/x\nrename to .git/x\n";
    assert!(matches!(try_apply(&place, &root, rename), Err(ApplyError::Conflict { .. })));
    let after = (snapshot(&root, Git::Included), snapshot(&place.path("outside"), Git::Included));
    assert!(before == after);
}

#[test]
fn a_conflict_changes_nothing_and_is_explained() {
    let place = Place::new();
    let root = place.repository("repo", "echo a > a; echo b > b");
    let work = place.work_on(&root, "echo theirs > a; echo c > c");
    let (_, patch) = place.collect(&work);
    fs::write(root.join("a"), "mine\n").unwrap();
    let before = snapshot(&root, Git::Included);
    let error = apply(&patch, &root).unwrap_err();
    assert!(error.to_string().contains("a"), "{error}");
    assert!(matches!(error, ApplyError::Conflict { .. }));
    assert!(before == snapshot(&root, Git::Included));
}

#[test]
fn applying_stages_nothing_and_obeys_no_attribute() {
    let place = Place::new();
    let root = place.repository("repo", "printf '* text eol=crlf ident\\n' > .gitattributes; echo a > a");
    let index = fs::read(root.join(".git/index")).unwrap();
    let work = place.work_on(&root, "printf 'x\\n$Id$\\n' > n; printf 'a\\nb\\r\\n' > a");
    let (_, patch) = place.collect(&work);
    apply(&patch, &root).unwrap();
    assert_eq!(fs::read(root.join("n")).unwrap(), b"x\n$Id$\n");
    assert_eq!(fs::read(root.join("a")).unwrap(), b"a\nb\r\n");
    assert_eq!(index, fs::read(root.join(".git/index")).unwrap());
}

/// Attack: a `.git` file names a folder of the user, which then appears in the sandbox.
#[test]
fn a_git_file_cannot_name_any_folder() {
    for place in [Place::new(), Place::copying()] {
        let ssh = place.path("ssh");
        fs::create_dir(&ssh).unwrap();
        fs::write(ssh.join("id"), "hunter2").unwrap();
        let other = place.repository("other", "echo x > x");
        let hostile = place.path("hostile");
        fs::create_dir(&hostile).unwrap();
        let fake = hostile.join("fake/worktrees/x");
        fs::create_dir_all(&fake).unwrap();
        fs::write(fake.join("gitdir"), hostile.join(".git").to_str().unwrap()).unwrap();
        fs::write(fake.join("commondir"), ssh.to_str().unwrap()).unwrap();
        for named in [ssh.clone(), other.join(".git"), fake] {
            fs::write(hostile.join(".git"), format!("gitdir: {}\n", named.display())).unwrap();
            let prepared = place.prepare(&cofferdam_core::Source::Local { path: hostile.clone() }).unwrap();
            assert!(prepared.companions.is_empty() && prepared.read_only.is_empty(), "{named:?}");
            assert_eq!(prepared.warnings.len(), 1, "{:?}", prepared.warnings);
            if let cofferdam_sandbox::Workspace::Folder { path } = prepared.workspace {
                assert!(!path.join(".git").exists());
            }
        }
    }
}

#[test]
fn alternates_cannot_name_any_folder() {
    let place = Place::new();
    let root = place.repository("repo", "echo a > a");
    let ssh = place.path("ssh/objects");
    fs::create_dir_all(&ssh).unwrap();
    fs::write(place.path("ssh/HEAD"), "hello").unwrap();
    symlink("/etc", place.path("objects")).unwrap();
    let lines = format!("{}\n{}\n/etc\n/\n", ssh.display(), place.path("objects").display());
    fs::write(root.join(".git/objects/info/alternates"), lines).unwrap();
    let prepared = place.prepare(&cofferdam_core::Source::Local { path: root }).unwrap();
    assert!(prepared.read_only.is_empty(), "{:?}", prepared.read_only);
}

fn give(path: &Path, owner: u32) {
    shell(path, &format!("chown -hR {owner}:{owner} ."));
}

/// Attack: a user whose repository root runs names root's, and finds them in the sandbox.
#[test]
fn what_a_repository_of_another_user_names_of_roots_is_not_followed() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root to make files of several owners");
        return;
    }
    for place in [Place::new(), Place::copying()] {
        let roots = place.repository("roots", "echo secret > secret");
        let root = place.repository("repo", "echo a > a");
        let objects = roots.join(".git/objects");
        let alternates = root.join(".git/objects/info/alternates");
        fs::write(&alternates, format!("{}\n", objects.display())).unwrap();
        let linked = place.path("linked");
        shell(&roots, &format!("git worktree add -q {}", linked.display()));
        let exclude = root.join(".git/info/exclude");
        let _ = fs::remove_file(&exclude);
        symlink(roots.join("secret"), &exclude).unwrap();
        let prepare =
            |path: &Path| place.prepare(&cofferdam_core::Source::Local { path: path.to_owned() }).unwrap();
        // Root's own repository leads to root's: without the wall, so would this one.
        assert_eq!(prepare(&root).read_only, std::slice::from_ref(&objects));
        assert!(prepare(&linked).warnings.is_empty());
        give(&root, 12345);
        give(&linked, 12345);
        let prepared = prepare(&root);
        assert!(prepared.read_only.is_empty(), "{:?}", prepared.read_only);
        if matches!(prepared.workspace, cofferdam_sandbox::Workspace::Folder { .. }) {
            assert_eq!(prepared.base.exclude, None);
        }
        let prepared = prepare(&linked);
        assert!(prepared.companions.is_empty() && prepared.read_only.is_empty());
        assert_eq!(prepared.warnings.len(), 1, "{:?}", prepared.warnings);
    }
}

/// Attack: the folder that was named is replaced by a link to another before it is looked at.
#[test]
fn a_folder_that_is_a_link_by_now_is_refused() {
    for place in [Place::new(), Place::copying()] {
        let root = place.repository("repo", "echo a > a");
        let other = place.repository("other", "echo secret > secret");
        fs::rename(&root, place.path("moved")).unwrap();
        symlink(&other, &root).unwrap();
        let error = place.prepare(&cofferdam_core::Source::Local { path: root }).unwrap_err();
        assert!(matches!(error, cofferdam_runner::workspace::Error::Linked { .. }), "{error}");
    }
}

/// A copy that root makes shows what the repository's owner could read, and no more.
#[test]
fn a_copy_leaves_out_what_the_owner_could_not_read() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root to make files of several owners");
        return;
    }
    let place = Place::copying();
    let root = place.repository("repo", "echo a > a");
    give(&root, 12345);
    shell(&root, "echo x > closed; chmod 600 closed; mkdir -m 700 folder; echo x > folder/x; echo y > open");
    let prepared = place.prepare(&cofferdam_core::Source::Local { path: root }).unwrap();
    let cofferdam_sandbox::Workspace::Folder { path } = &prepared.workspace else { panic!("{prepared:?}") };
    assert!(path.join("open").exists() && path.join("a").exists());
    assert!(!path.join("closed").exists() && !path.join("folder").exists());
    assert_eq!(prepared.warnings.len(), 2, "{:?}", prepared.warnings);
}

/// A tarball can hold what no clone can: a pipe that nobody writes to, a link to a device without an end.
#[test]
fn pipes_and_devices_in_the_place_of_git_files_neither_block_nor_fill_the_memory() {
    for place in [Place::new(), Place::copying()] {
        let root = place.repository("repo", "echo a > a");
        let source = cofferdam_core::Source::Local { path: root.clone() };
        for name in ["objects/info/alternates", "info/exclude", "index"] {
            let file = root.join(".git").join(name);
            for plant in ["ln -s /dev/zero", "mkfifo"] {
                shell(&root, &format!("rm -f {0}; {plant} {0}", file.display()));
                place.prepare(&source).unwrap();
            }
            shell(&root, &format!("rm {}", file.display()));
        }
    }
}
