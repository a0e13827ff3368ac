//! Repositories of somebody else that are small where they come from, and large where they are checked out.

use std::fs;
use std::path::Path;
use std::time::Duration;

use cofferdam_core::{FailureClass, LocalUrls, RepoUrl, Source};
use cofferdam_net::{AddressCheck, Dialer};
use cofferdam_runner::workspace::{CheckedFetch, Error, Prepared, Remote};
use cofferdam_sandbox::{Caller, Options, Tools};

use crate::fixture::{self, Place, shell};

const MIB: u64 = 1 << 20;

/// Prepares a workspace of a repository for somebody who is not the user of this machine.
fn prepare_for_others(place: &Place, root: &Path, most_bytes: u64) -> Result<Prepared, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let checked = CheckedFetch {
        dialer: Dialer::new(&[], Duration::from_secs(5)),
        check: AddressCheck::Trusted,
        // A folder of this machine is read without a sandbox.
        tools: Tools::new(Options::new(place.home.root().to_owned(), "/nowhere".into(), Caller::default())),
        git: "/usr/bin/git".into(),
        runtime: runtime.handle().clone(),
        most_bytes,
    };
    let url = RepoUrl::parse(&format!("file://{}", root.display()), LocalUrls::Allow).unwrap();
    let source = Source::Git { url, reference: None };
    let remote = Remote { checked: Some(&checked), ..Remote::default() };
    fixture::prepare_for(&place.home, &place.id, &source, &place.policy, remote)
}

fn assert_too_large(place: &Place, prepared: Result<Prepared, Error>) {
    let error = prepared.unwrap_err();
    assert_eq!(error.class(), FailureClass::Repository, "{error}");
    assert!(error.to_string().contains("larger than"), "{error}");
    for checkouts in fs::read_dir(place.home.checkouts()).unwrap().flatten() {
        assert_eq!(fs::read_dir(checkouts.path()).unwrap().count(), 0, "nothing of it is on the disk");
    }
}

#[test]
fn a_blob_that_unfolds_to_more_than_is_allowed_is_not_checked_out() {
    let place = Place::new();
    let root = place.repository("zeros", "head -c 67108864 /dev/zero > zeros");
    assert_too_large(&place, prepare_for_others(&place, &root, 8 * MIB));
    assert!(prepare_for_others(&place, &root, 128 * MIB).is_ok(), "where as much is allowed it is");
}

/// A few trees that hold each other ten times are more entries than anybody can write or count.
#[test]
fn folders_that_hold_each_other_without_end_are_not_checked_out() {
    let place = Place::new();
    let root = place.repository("folders", "echo a > a");
    shell(
        &root,
        "t=$(git mktree </dev/null); for i in $(seq 12); do t=$(for j in $(seq 10); do printf '040000 tree %s\\t%s\\n' $t $j; done | git mktree); done; git reset -q --soft $(git commit-tree -m bomb $t)",
    );
    assert_too_large(&place, prepare_for_others(&place, &root, 8 * MIB));
}

#[test]
fn a_mirror_that_becomes_larger_than_is_allowed_is_not_kept() {
    let place = Place::new();
    let root = place.repository("noise", "head -c 4194304 /dev/urandom > noise");
    assert_too_large(&place, prepare_for_others(&place, &root, 2 * MIB));
    let kept = fs::read_dir(place.home.mirrors()).unwrap().flatten();
    let kept: Vec<_> = kept
        .map(|entry| entry.file_name())
        .filter(|name| !name.to_string_lossy().ends_with(".lock"))
        .collect();
    assert!(kept.is_empty(), "{kept:?}");
}
