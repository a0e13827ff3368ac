//! Files that runs leave, in a folder and in a bucket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use cofferdam_store::{
    Artifact, ArtifactError, ArtifactPlace, ArtifactStore, BucketKeys, BucketOptions, NewArtifact,
};
use futures_util::TryStreamExt;

/// A server that speaks S3.
const SERVER: &str = "COFFERDAM_TEST_S3";

/// A bucket of one test's own; `None` without a server, where the test is skipped; not in CI.
fn bucket(name: &str) -> Option<ArtifactStore> {
    let Some(server) = std::env::var(SERVER).ok().filter(|server| !server.is_empty()) else {
        assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{SERVER} is not set");
        eprintln!("skipped: {SERVER} is not set; type ./dev postgres");
        return None;
    };
    let name = format!("{name}-{}", std::process::id());
    let host = server.strip_prefix("http://").expect("a plain address");
    let mut stream = TcpStream::connect(host).expect("the server answers");
    write!(stream, "PUT /{name} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .expect("it takes requests");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let options = BucketOptions {
        url: format!("s3://{name}/some/prefix").parse().expect("a bucket"),
        endpoint: Some(server.replace("127.0.0.1", "localhost").parse().expect("an address")),
        region: "us-east-1".to_owned(),
        keys: BucketKeys {
            access_key_id: "id".to_owned(),
            secret_access_key: "secret-of-it".to_owned(),
            session_token: None,
        },
    };
    let store = ArtifactStore::bucket(&options).expect("it can be used");
    assert!(!format!("{options:?} {store:?}").contains("secret-of-it"));
    Some(store)
}

fn file(folder: &Path, name: &str, content: &[u8]) -> NewArtifact {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
    std::fs::write(&path, content).expect("a file");
    NewArtifact {
        name: "diff".to_owned(),
        place: path.into(),
        bytes: content.len() as u64,
        sha256: String::new(),
    }
}

fn recorded(artifact: &NewArtifact) -> Artifact {
    let NewArtifact { name, place, bytes, sha256 } = artifact.clone();
    Artifact { attempt: 1, name, place, bytes, sha256 }
}

async fn content(store: &ArtifactStore, artifact: &Artifact) -> Result<Vec<u8>, ArtifactError> {
    let content = store.read(artifact).await?;
    assert_eq!(content.bytes, artifact.bytes);
    Ok(content.parts.try_collect::<Vec<_>>().await?.concat())
}

#[tokio::test]
async fn a_file_stays_where_it_was_made_and_is_read_there() {
    let folder = tempfile::tempdir().unwrap();
    let kept = ArtifactStore::Folder.keep(folder.path(), file(folder.path(), "a", b"abc")).await.unwrap();
    assert_eq!(kept.place, ArtifactPlace::File(folder.path().join("a")));
    assert_eq!(content(&ArtifactStore::Folder, &recorded(&kept)).await.unwrap(), b"abc");
    std::fs::write(folder.path().join("a"), "abcd").unwrap();
    let changed = content(&ArtifactStore::Folder, &recorded(&kept)).await;
    assert!(matches!(changed, Err(ArtifactError::Changed { .. })));
    ArtifactStore::Folder.remove(&kept.place).await.unwrap();
    ArtifactStore::Folder.remove(&kept.place).await.expect("once more is no error");
    assert!(content(&ArtifactStore::Folder, &recorded(&kept)).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_file_in_a_bucket_is_read_by_those_who_never_had_it() {
    let Some(store) = bucket("small") else { return };
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in
        [("run_1/1/diff.patch", &b"abc"[..]), ("run_1/1/attachments/a b%c.txt", b"x"), ("run_1/1/empty", b"")]
    {
        let artifact = file(folder.path(), name, bytes);
        let kept = store.keep(folder.path(), artifact.clone()).await.unwrap();
        let ArtifactPlace::Object(object) = &kept.place else { panic!("{:?}", kept.place) };
        assert!(object.contains("/some/prefix/run_1/1/"), "{object}");
        assert_eq!(store.keep(folder.path(), artifact).await.unwrap(), kept, "again gives the same");
        assert_eq!(content(&store, &recorded(&kept)).await.unwrap(), bytes);
        store.remove(&kept.place).await.unwrap();
        store.remove(&kept.place).await.expect("once more is no error");
        assert!(content(&store, &recorded(&kept)).await.unwrap_err().is_not_found());
    }
}

#[tokio::test]
async fn a_large_file_is_sent_in_parts_and_comes_back_whole() {
    let Some(store) = bucket("large") else { return };
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..20_u32 << 20).map(|number| (number % 251) as u8).collect();
    let kept =
        store.keep(folder.path(), file(folder.path(), "run_1/1/transcript.log", &bytes)).await.unwrap();
    assert!(content(&store, &recorded(&kept)).await.unwrap() == bytes);
}

#[tokio::test]
async fn a_bucket_is_never_asked_for_what_is_in_another() {
    let Some(store) = bucket("other") else { return };
    let place = ArtifactPlace::Object("s3://somebody-elses/run_1/1/diff.patch".to_owned());
    let artifact = Artifact { attempt: 1, name: "diff".to_owned(), place, bytes: 1, sha256: String::new() };
    assert!(matches!(store.read(&artifact).await, Err(ArtifactError::Elsewhere(_))));
    assert!(matches!(ArtifactStore::Folder.read(&artifact).await, Err(ArtifactError::Elsewhere(_))));
}
