use std::time::Duration;

use super::*;

fn node(number: u128) -> NodeId {
    NodeId::new(1, number)
}

async fn is_woken(listener: &WakeListener) -> bool {
    tokio::time::timeout(Duration::from_secs(5), listener.hear(&mut [])).await.is_ok()
}

#[tokio::test]
async fn a_wake_reaches_every_listener_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = WakeListener::register(folder.path(), &node(1), Listens::Worker).unwrap();
    let second = WakeListener::register(folder.path(), &node(2), Listens::Worker).unwrap();
    wake_all(folder.path()).unwrap();
    assert!(is_woken(&first).await && is_woken(&second).await);
}

#[tokio::test]
async fn a_wake_never_waits_for_a_listener_that_does_not_listen() {
    let folder = tempfile::tempdir().unwrap();
    let deaf = WakeListener::register(folder.path(), &node(1), Listens::Worker).unwrap();
    for _ in 0..10_000 {
        wake_all(folder.path()).unwrap();
    }
    assert!(is_woken(&deaf).await);
}

#[tokio::test]
async fn a_folder_with_a_path_longer_than_a_socket_address_works() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("x".repeat(200));
    std::fs::create_dir(&deep).unwrap();
    let listener = WakeListener::register(&deep, &node(1), Listens::Worker).unwrap();
    wake_all(&deep).unwrap();
    assert!(is_woken(&listener).await);
}

#[tokio::test]
async fn a_socket_is_closed_to_others_and_goes_with_its_listener() {
    let folder = tempfile::tempdir().unwrap();
    let listener = WakeListener::register(folder.path(), &node(1), Listens::Worker).unwrap();
    let path = folder.path().join(format!("{}.sock", node(1)));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    drop(listener);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn what_is_for_readers_wakes_no_worker() {
    let folder = tempfile::tempdir().unwrap();
    let worker = WakeListener::register(folder.path(), &node(1), Listens::Worker).unwrap();
    let reader = WakeListener::register(folder.path(), &node(1), Listens::Reader).unwrap();
    wake_readers(folder.path()).unwrap();
    assert!(is_woken(&reader).await);
    assert!(worker.socket.try_recv(&mut [0; 1]).is_err(), "nothing has come");
    wake_all(folder.path()).unwrap();
    assert!(is_woken(&reader).await && is_woken(&worker).await);
}

#[test]
fn the_socket_of_a_dead_process_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dead.sock");
    drop(std::os::unix::net::UnixDatagram::bind(&path).unwrap());
    assert!(path.exists());
    wake_all(folder.path()).unwrap();
    assert!(!path.exists());
}
