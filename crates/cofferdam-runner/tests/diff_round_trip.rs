//! What an agent changes comes back as a patch that makes the same tree, byte for byte; the original
//! stays as it was.

use cofferdam_runner::artifacts::Change;

use crate::fixture::{Place, shell};

const BASE: &str = r#"
mkdir -p src/deep docs build empty
printf 'one\ntwo\nthree\n' > src/a.txt
printf 'x%.0s\n' $(seq 200) > src/long.txt
printf '#!/bin/sh\necho hi\n' > run.sh; chmod +x run.sh
head -c 5000 /dev/zero | tr '\0' '\1' > blob.bin; printf '\0\1\2' >> blob.bin
ln -s src/a.txt link
for i in 1 2 3 4 5; do seq $i 50 > docs/page$i.md; done
echo deep > src/deep/file
printf 'build/\n*.log\n' > .gitignore
"#;

/// Each script is one kind of change, run on both kinds of workspace.
const SCRIPTS: &[(&str, &str)] = &[
    ("nothing", "true"),
    (
        "touched only",
        "touch src/a.txt; cat blob.bin > /tmp/blob.$$; cat /tmp/blob.$$ > blob.bin; chmod 600 src/long.txt",
    ),
    ("new and changed files", "echo four >> src/a.txt; mkdir -p new/er; echo x > new/er/file; : > new/empty"),
    ("renames", "mv src/long.txt src/longer.txt; echo more >> src/longer.txt"),
    ("a renamed folder", "mv docs manual"),
    ("modes", "chmod -x run.sh; chmod +x src/a.txt"),
    ("deletions", "rm -r docs src/deep link"),
    (
        "binary",
        "head -c 300000 /dev/urandom > new.bin; printf '\\7' | dd of=blob.bin bs=1 seek=100 conv=notrunc 2>/dev/null",
    ),
    (
        "links",
        "ln -sfn nowhere link; ln -s / root; ln -s $'odd\\nname' odd; rm src/a.txt; ln -s long.txt src/a.txt",
    ),
    ("a link made a file", "rm link; echo plain > link"),
    ("an empty folder made a file", "rmdir empty; echo file > empty"),
    ("a folder made a file", "rm -r docs; echo file > docs"),
    ("a file made a folder", "rm src/a.txt; mkdir src/a.txt; echo in > src/a.txt/inner"),
    ("a folder made again", "rm -r docs; mkdir docs; seq 3 50 > docs/page3.md; echo new > docs/new.md"),
    ("a folder made again, deeper", "rm -r src; mkdir -p src/deep; echo other > src/deep/other"),
    ("a folder made a link", "rm -r docs; ln -s src docs"),
    ("commits", "echo c >> src/a.txt; git add -A; git commit -qm two; echo u >> src/a.txt; git rm -q run.sh"),
    (
        "a rule of its own",
        "printf '*\\n' > .gitignore; echo hidden > planted; mkdir s; printf '*\\n' > s/.gitignore; echo x > s/x",
    ),
    (
        "attributes of its own",
        "printf '* text eol=crlf filter=x diff=y ident\\n' > .gitattributes; printf 'a\\r\\n$Id$\\n' > crlf; echo lf > lf",
    ),
    (
        "odd names",
        "for n in $'new\\nline' 'quo\"te' 'back\\slash' $'tab\\there' $'\\xff\\xfe' ' lead' 'trail ' '-dash' ':(top)x' 'grün' '#x' '!y'; do echo \"$n\" > \"$n\"; mkdir -p \"d$n\"; echo z > \"d$n/z\"; done",
    ),
    ("a nested repository", "git init -q sub; echo in > sub/file; cd sub; git add -A; git commit -qm in"),
    ("a large file", "head -c 20000000 /dev/urandom > large; seq 2000000 > large.txt"),
];

#[test]
fn every_kind_of_change_survives_the_overlay() {
    for (name, script) in SCRIPTS {
        println!("{name}");
        let place = Place::new();
        place.round_trip(&place.repository("repo", BASE), script);
    }
}

#[test]
fn every_kind_of_change_survives_the_copy() {
    for (name, script) in SCRIPTS {
        println!("{name}");
        let place = Place::copying();
        place.round_trip(&place.repository("repo", BASE), script);
    }
}

#[test]
fn what_was_uncommitted_or_ignored_is_visible_and_not_in_the_diff() {
    for place in [Place::new(), Place::copying()] {
        let root = place.repository("repo", BASE);
        shell(
            &root,
            "echo mine >> src/a.txt; echo new > untracked; git add untracked; mkdir -p build; echo o > build/out; rm run.sh",
        );
        let script = "grep -q mine src/a.txt; grep -q o build/out; test -e untracked; test ! -e run.sh; git status >/dev/null; echo theirs > added";
        let collected = place.round_trip(&root, script);
        let changed: Vec<_> = collected.changed.iter().map(|c| (c.change, c.path.as_str())).collect();
        assert_eq!(changed, [(Change::Added, "added")]);
    }
}

#[test]
fn a_renamed_folder_is_told_as_renames() {
    let place = Place::new();
    let collected = place.round_trip(&place.repository("repo", BASE), "mv docs manual");
    assert_eq!(collected.changed.len(), 5);
    assert!(collected.changed.iter().all(|c| c.change == Change::Renamed), "{:?}", collected.changed);
}

#[test]
fn build_products_are_left_out_by_the_rules_of_the_base_only() {
    for place in [Place::new(), Place::copying()] {
        let root = place.repository("repo", BASE);
        shell(
            &root,
            "mkdir -p build; echo old > build/old; echo t > tracked.log; git add -f tracked.log; git commit -qm t; echo keep.tmp > .git/info/exclude",
        );
        let script = "echo 1 > build/new; echo 2 > build/old; echo 3 > x.log; echo 4 > tracked.log; echo 5 > keep.tmp; echo '*' > src/.gitignore; echo 6 > src/seen";
        let work = place.work_on(&root, script);
        let (collected, _) = place.collect(&work);
        let changed: Vec<_> = collected.changed.iter().map(|c| c.path.as_str()).collect();
        assert_eq!(changed, ["src/.gitignore", "src/seen", "tracked.log"]);
        assert_eq!(collected.ignored_sample, ["build/new", "build/old", "keep.tmp", "x.log"]);
        assert_eq!(collected.ignored_count, 4);
    }
}

#[test]
fn what_no_patch_can_carry_is_named() {
    for place in [Place::new(), Place::copying()] {
        let root = place.repository("repo", BASE);
        let script = "mkfifo pipe; git init -q sub; echo x > sub/x; mkdir d; echo y > d/.GIT; echo z > 'git~1'; ln -s x .gitmodules; ok=1; echo ok > ok";
        let work = place.work_on(&root, script);
        let (collected, patch) = place.collect(&work);
        assert_eq!(collected.left_out, [".gitmodules", "d/.GIT", "git~1", "pipe", "sub/.git"]);
        cofferdam_runner::artifacts::apply(&patch, &root).unwrap();
        assert!(root.join("sub/x").exists() && root.join("ok").exists() && !root.join("sub/.git").exists());
    }
}

#[test]
fn a_file_that_somebody_else_changed_meanwhile_is_told() {
    let place = Place::new();
    let root = place.repository("repo", BASE);
    let outside = root.display();
    let script = format!(
        "sleep 0.05; echo theirs >> src/a.txt; echo ours > other; echo user >> {outside}/src/a.txt; echo user >> {outside}/run.sh"
    );
    let work = place.work_on(&root, &script);
    let (collected, _) = place.collect(&work);
    assert_eq!(collected.base_moved, ["src/a.txt"]);
}

#[test]
fn an_empty_workspace_gives_everything_as_new() {
    let place = Place::new();
    let work = place.work(&cofferdam_core::Source::Empty, "mkdir a; echo 1 > a/b; ln -s a c");
    let (collected, patch) = place.collect(&work);
    assert_eq!(collected.changed.len(), 2);
    let fresh = place.repository("fresh", "");
    cofferdam_runner::artifacts::apply(&patch, &fresh).unwrap();
    assert_eq!(std::fs::read_to_string(fresh.join("a/b")).unwrap(), "1\n");
}
