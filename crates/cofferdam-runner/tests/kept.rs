//! Mirrors and checkouts: what of them is kept for the next run, and what a live run uses.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use cofferdam_core::{AttemptRef, LocalUrls, RepoUrl, RetentionSettings, RunId, SandboxId, Source};
use cofferdam_runner::retention;
use cofferdam_runner::workspace::{self, Cleared, Keep, Prepared};
use cofferdam_sandbox::Workspace;
use cofferdam_store::{ArtifactStore, Store};

use crate::fixture::{self, Place, shell};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn git(root: &Path) -> Source {
    let url = RepoUrl::parse(&format!("file://{}", root.display()), LocalUrls::Allow).unwrap();
    Source::Git { url, reference: None }
}

fn sandbox(number: u32) -> SandboxId {
    SandboxId::of(&AttemptRef { run: RunId::new(9, 9), number })
}

/// Nothing that is not in use.
fn nothing() -> Keep {
    Keep { used_since: Some(SystemTime::now() + DAY), most_bytes: None }
}

/// All that is in a folder, and in the folders in it.
fn names(folder: PathBuf) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.len() == 64 && entry.file_type().unwrap().is_dir() {
            names.extend(
                fs::read_dir(entry.path())
                    .unwrap()
                    .map(|inner| inner.unwrap().file_name().into_string().unwrap()),
            );
        }
        names.push(name);
    }
    names
}

/// Whether a workspace can be worked in: all files are there, and so are the objects that its git borrows.
fn is_whole(prepared: &Prepared, files: usize) -> bool {
    let Workspace::Overlay { layers } = &prepared.workspace else { panic!("{prepared:?}") };
    let root = layers.last().unwrap();
    let status = shell(
        root,
        "git --no-optional-locks -c safe.directory='*' status --porcelain; git -c safe.directory='*' log --format=%s -1",
    );
    status == "one\n" && fs::read_dir(root).unwrap().count() == files
}

#[test]
fn what_no_run_uses_is_removed_and_what_a_run_uses_is_not() {
    let place = Place::new();
    let origin = place.repository("origin", "echo a > a; echo b > b");
    let prepared = place.prepare(&git(&origin)).unwrap();
    assert_eq!(workspace::clear(&place.home, nothing()).unwrap(), Cleared::default(), "a run uses it");
    assert!(is_whole(&prepared, 3));
    // Another branch of the same address, whose run has ended.
    shell(&origin, "git checkout -q -b other");
    fixture::prepare(&place.home, &sandbox(2), &git(&origin), &place.policy).unwrap();
    workspace::remove(&place.home, &sandbox(2)).unwrap();
    let cleared = workspace::clear(&place.home, nothing()).unwrap();
    assert_eq!(cleared, Cleared { mirrors: 0, checkouts: 1 });
    assert!(is_whole(&prepared, 3), "its mirror is in use");

    workspace::remove(&place.home, &place.id).unwrap();
    assert_eq!(workspace::clear(&place.home, Keep::default()).unwrap(), Cleared::default());
    let cleared = workspace::clear(&place.home, nothing()).unwrap();
    assert_eq!(cleared, Cleared { mirrors: 1, checkouts: 1 });
    assert_eq!((names(place.home.mirrors()), names(place.home.checkouts())), (Vec::new(), Vec::new()));
    shell(&origin, "git checkout -q main");
    assert!(is_whole(&place.prepare(&git(&origin)).unwrap(), 3), "it is fetched again");
}

#[test]
fn what_was_not_used_for_the_longest_time_goes_first_when_it_is_too_much() {
    let place = Place::new();
    let origins: Vec<PathBuf> = (1..=3)
        .map(|number| place.repository(&format!("origin{number}"), "head -c 300000 /dev/urandom > a"))
        .collect();
    for (number, origin) in [(1, &origins[0]), (2, &origins[1]), (3, &origins[2]), (4, &origins[0])] {
        fixture::prepare(&place.home, &sandbox(number), &git(origin), &place.policy).unwrap();
        workspace::remove(&place.home, &sandbox(number)).unwrap();
    }
    // Each takes about 600 KB, with its checkout.
    let keep = Keep { used_since: None, most_bytes: Some(1_500_000) };
    assert_eq!(workspace::clear(&place.home, keep).unwrap(), Cleared { mirrors: 1, checkouts: 1 });
    let has = |origin: &Path| {
        shell(&place.home.mirrors(), "cat */config").contains(&format!("{}\n", origin.display()))
    };
    assert_eq!(origins.iter().map(|origin| has(origin)).collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn a_run_that_starts_while_its_mirror_is_removed_has_all_that_it_needs() {
    let place = Place::new();
    let origin = place.repository("origin", "for i in $(seq 20); do echo $i > f$i; done");
    let is_over = AtomicBool::new(false);
    let removed = std::thread::scope(|scope| {
        let removing = scope.spawn(|| {
            let mut removed = 0;
            while !is_over.load(Ordering::Relaxed) {
                removed += workspace::clear(&place.home, nothing()).unwrap().mirrors;
            }
            removed
        });
        let runs: Vec<_> = (1..=3)
            .map(|number| {
                let (place, origin) = (&place, &origin);
                scope.spawn(move || {
                    for _ in 0..8 {
                        let id = sandbox(number);
                        let prepared =
                            fixture::prepare(&place.home, &id, &git(origin), &place.policy).unwrap();
                        assert!(is_whole(&prepared, 21));
                        workspace::remove(&place.home, &id).unwrap();
                    }
                })
            })
            .collect();
        let ended: Vec<_> = runs.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
        removing.join().unwrap()
    });
    assert!(removed > 0, "nothing was removed meanwhile");
}

#[test]
fn what_dead_processes_have_left_is_removed() {
    let place = Place::new();
    let origin = place.repository("origin", "echo a > a");
    place.prepare(&git(&origin)).unwrap();
    let mirror = names(place.home.mirrors()).into_iter().find(|name| name.ends_with(".git")).unwrap();
    let key = mirror.strip_suffix(".git").unwrap();
    fs::create_dir(place.home.mirrors().join(format!("{key}.partial"))).unwrap();
    fs::create_dir(place.home.checkouts().join(key).join("abc.partial")).unwrap();
    let other = "0".repeat(64);
    File::create(place.home.mirrors().join(format!("{other}.lock"))).unwrap();
    fs::create_dir_all(place.home.checkouts().join(&other).join("abc")).unwrap();
    assert_eq!(workspace::clear(&place.home, Keep::default()).unwrap(), Cleared::default());
    let left = [names(place.home.mirrors()), names(place.home.checkouts())].concat();
    assert_eq!(left.len(), 5, "a mirror, its lock, a folder, a checkout and when it was used: {left:?}");
}

#[tokio::test]
async fn retention_removes_what_was_fetched_and_not_used_since() {
    let place = Place::new();
    let origin = place.repository("origin", "echo a > a");
    let store = Store::open_sqlite(&place.home.database()).await.unwrap();
    let round = async |days: u32| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() + DAY * days;
        let now_ms = u64::try_from(now.as_millis()).unwrap();
        let settings = RetentionSettings::default();
        retention::run_once(&store, &ArtifactStore::Folder, &place.home, &settings, now_ms)
            .await
            .unwrap()
            .fetched
    };
    place.prepare(&git(&origin)).unwrap();
    assert_eq!(round(31).await, Cleared::default(), "a run uses it");
    workspace::remove(&place.home, &place.id).unwrap();
    assert_eq!(round(29).await, Cleared::default(), "it was used since");
    assert_eq!(round(31).await, Cleared { mirrors: 1, checkouts: 1 });
}
