//! Files in a bucket: put there before the attempt's end is recorded, and fetched by whoever wants to read them.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use cofferdam_core::{EventType, FailureClass, NewEvent, Outcome, with_causes};
use cofferdam_store::{Artifact, ArtifactError, ArtifactPlace, ArtifactStore, Left};
use futures_util::TryStreamExt;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use crate::home::Home;
use crate::node::{Node, now_ms};

/// Puts what an attempt left where all nodes find it. Only a success claims that its files are there.
pub(crate) async fn share(node: &Node, left: &mut Left, outcome: Outcome) -> Outcome {
    for artifact in &mut left.artifacts {
        match node.artifacts.keep(&node.home.runs(), artifact.clone()).await {
            Ok(shared) => *artifact = shared,
            Err(error) if outcome == Outcome::Succeeded => {
                return Outcome::failed(FailureClass::Collect, with_causes(&error));
            }
            Err(error) => {
                let text = format!("what the agent left could not be shared: {}", with_causes(&error));
                left.events.push(NewEvent::new(now_ms(), EventType::Log, json!({ "text": text })));
            }
        }
    }
    outcome
}

/// The file on this machine: as it was made here, or as it is fetched now.
///
/// # Errors
/// If it cannot be fetched, or is not what was kept.
pub async fn fetch(
    artifacts: &ArtifactStore,
    home: &Home,
    artifact: &Artifact,
) -> Result<PathBuf, ArtifactError> {
    let object = match &artifact.place {
        ArtifactPlace::File(path) => return find(home, &artifact.place, path),
        ArtifactPlace::Object(object) => object,
    };
    let path = home.runs().join(local_name(object));
    if fingerprint(&path).await.is_ok_and(|found| found == artifact.sha256) {
        return Ok(path);
    }
    let failed = |source| ArtifactError::File { what: "write", path: path.clone(), source };
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let mut content = artifacts.read(artifact).await?;
    // Written beside and renamed, so that a cut download is never taken for the file.
    let partial = path.with_extension(format!("partial-{}", std::process::id()));
    let mut file = tokio::fs::File::create(&partial).await.map_err(failed)?;
    let mut hash = Sha256::new();
    while let Some(part) = content.parts.try_next().await? {
        hash.update(&part);
        file.write_all(&part).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    if hex(hash) != artifact.sha256 {
        let _ = tokio::fs::remove_file(&partial).await;
        let why = "its SHA-256 is another".to_owned();
        return Err(ArtifactError::Changed { place: object.clone(), why });
    }
    tokio::fs::rename(&partial, &path).await.map_err(failed)?;
    Ok(path)
}

/// A file that was made on this machine. It may have been made in another state folder, whose record was copied here: then
/// it is in this folder if it was copied as well, and else where it was made.
fn find(home: &Home, place: &ArtifactPlace, made_at: &Path) -> Result<PathBuf, ArtifactError> {
    let here = place.file_below(&home.runs());
    let found = [here.as_deref(), Some(made_at)].into_iter().flatten().find(|path| path.is_file());
    found.map(Path::to_owned).ok_or_else(|| ArtifactError::File {
        what: "find",
        path: here.unwrap_or_else(|| made_at.to_owned()),
        source: io::ErrorKind::NotFound.into(),
    })
}

/// Removes a file that the record no longer names. A file of another state folder is left alone, also if the record names
/// it: it may be the evidence of that folder's own record, which this one is a copy of.
///
/// # Errors
/// If it is still there.
pub async fn remove(
    artifacts: &ArtifactStore,
    home: &Home,
    place: &ArtifactPlace,
) -> Result<(), ArtifactError> {
    artifacts.remove_below(&home.runs(), place).await
}

/// The last parts of an object's name: the run, the attempt and the file, as they are in the folder of runs.
fn local_name(object: &str) -> PathBuf {
    let name = object.split_once("://").map_or(object, |(_, name)| name);
    let parts: Vec<&str> = name.split('/').collect();
    let from = parts.iter().position(|part| part.starts_with("run_")).unwrap_or(0);
    let path: PathBuf = parts[from..].iter().collect();
    path.components().filter(|part| matches!(part, Component::Normal(_))).collect()
}

async fn fingerprint(path: &Path) -> io::Result<String> {
    let path = path.to_owned();
    let read = tokio::task::spawn_blocking(move || super::keep::fingerprint(&path).map(|(_, sha256)| sha256));
    read.await.unwrap_or_else(|panic| Err(io::Error::other(panic)))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_kept_in_the_folder_of_its_run_and_nowhere_else() {
        assert_eq!(local_name("s3://bucket/a/run_1/2/diff.patch"), Path::new("run_1/2/diff.patch"));
        assert_eq!(local_name("s3://bucket/run_1/2/../../../etc/x"), Path::new("run_1/2/etc/x"));
        assert_eq!(local_name("s3:///etc/passwd"), Path::new("etc/passwd"));
    }

    #[tokio::test]
    async fn a_record_that_was_copied_finds_its_files_and_leaves_those_of_the_original_alone() {
        let folder = tempfile::tempdir().unwrap();
        let home = |name: &str| Home::open(&folder.path().join(name)).unwrap();
        let (original, copy) = (home("original"), home("copy"));
        let name = format!("{}/1/diff.patch", cofferdam_core::RunId::new(1, 1));
        let (made, copied) = (original.runs().join(&name), copy.runs().join(&name));
        let place = ArtifactPlace::File(made.clone());
        let write = |path: &Path| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "diff").unwrap();
        };
        assert!(find(&copy, &place, &made).unwrap_err().is_not_found(), "it is nowhere");
        write(&made);
        assert_eq!(find(&copy, &place, &made).unwrap(), made, "it was not copied, and is where it was made");
        write(&copied);
        assert_eq!(find(&copy, &place, &made).unwrap(), copied);
        assert_eq!(find(&original, &place, &made).unwrap(), made);

        for _ in 0..2 {
            remove(&ArtifactStore::Folder, &copy, &place).await.unwrap();
            assert!(made.exists() && !copied.exists(), "the original's file stays");
        }
        let elsewhere = folder.path().join("secret");
        write(&elsewhere);
        remove(&ArtifactStore::Folder, &copy, &elsewhere.clone().into()).await.unwrap();
        assert!(elsewhere.exists());
        remove(&ArtifactStore::Folder, &original, &place).await.unwrap();
        assert!(!made.exists());
    }
}
