//! A database that dies in the middle of the handshake is a lost connection; one that answers is believed. What became of
//! a commit that was not answered is found out.

use std::time::Duration;

use cofferdam_core::{
    Action, EventType, KeyId, NewEvent, OwnerName, Project, ProjectId, RunState, Scopes, Source, StoreUrl,
};
use cofferdam_store::{
    CancelAnswer, Error, Listens, MessageKind, NewKey, OpenError, PostgresOptions, Slots, Store, StoreOptions,
};
use serde_json::json;

use crate::doorman::{Doorman, Fall};
use crate::fixture::{Fixture, LEASE_MS, at, entries, event_types, mandate, node, owner, request, rules};

/// How many connections fall, one after the other.
const FALLS: usize = 3;
/// Longer than a server takes to come back.
const PATIENCE: Duration = Duration::from_secs(60);

/// The changes that are made, in this order.
const CHANGES: [Action; 9] = [
    Action::CreateRun,
    Action::AllowHost,
    Action::SendMessage,
    Action::CancelRun,
    Action::RemoveRun,
    Action::CreateProject,
    Action::RemoveProject,
    Action::CreateKey,
    Action::RevokeKey,
];

fn project(number: u128) -> Project {
    let name = "shop".parse().expect("a plain name");
    Project { id: ProjectId::new(1, number), name, source: Source::Empty, max_concurrency: None }
}

fn key(number: u128) -> NewKey {
    let (name, owner, sha256) = ("ci".to_owned(), OwnerName::system(), number.to_string());
    NewKey { id: KeyId::new(1, number), name, owner, sha256, scopes: Scopes::all() }
}

fn address(fixture: &Fixture) -> StoreUrl {
    match fixture.options() {
        StoreOptions::Postgres(options) => options.url,
        StoreOptions::Sqlite(_) => panic!("a file has no handshake"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_opens_once_the_server_gets_through_a_handshake() {
    let Some(fixture) = Fixture::postgres().await else { return };
    let doorman = Doorman::before(&address(&fixture)).await;
    for (fall, number) in Fall::OF_A_DEAD_SERVER.into_iter().zip(1..) {
        doorman.let_fall(fall, FALLS);
        let store = Store::open_postgres(&PostgresOptions::at(doorman.url())).await;
        let store = store.unwrap_or_else(|error| panic!("{fall:?}: {error:?}"));
        store.enqueue(&at(1_000), &request(number), None).await.expect("accepted");
        assert!(doorman.is_done(), "{fall:?}");
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_goes_on_after_handshakes_that_were_cut_and_is_done_once() {
    let Some(fixture) = Fixture::postgres().await else { return };
    let doorman = Doorman::before(&address(&fixture)).await;
    let opened = Store::open_postgres(&PostgresOptions::at(doorman.url())).await.expect("it opens");
    let (store, hasty) = (opened.with_patience(PATIENCE), opened.with_patience(Duration::ZERO));
    store.enqueue(&at(1_000), &request(1), None).await.expect("accepted");
    let claimed = store.claim(&owner(1), 1_000, LEASE_MS, &rules(Slots::Unlimited)).await;
    let lease = claimed.expect("claiming works").expect("it is claimable").lease;
    for fall in Fall::OF_A_DEAD_SERVER {
        // Whoever does not wait is told that it may ask again, reading and writing.
        doorman.cut().await;
        doorman.let_fall(fall, FALLS);
        while !doorman.is_done() {
            let failed = match doorman.seen() % 2 {
                0 => hasty.run(&request(1).id).await.map(drop),
                _ => hasty.enqueue(&at(1_000), &request(2), None).await.map(drop),
            };
            assert!(matches!(failed, Err(Error::Unavailable(_))), "{fall:?}: {failed:?}");
        }
        doorman.let_fall(fall, FALLS);
        let said = NewEvent::new(1_000, EventType::Log, json!(format!("{fall:?}")));
        let stored = store.append(&lease, &[said]).await;
        assert_eq!(stored.unwrap_or_else(|error| panic!("{fall:?}: {error:?}")).len(), 1);
        doorman.cut().await;
        doorman.let_fall(fall, FALLS);
        let record = store.run(&request(1).id).await.unwrap_or_else(|error| panic!("{fall:?}: {error:?}"));
        assert_eq!(record.state, RunState::Running);
        assert!(doorman.is_done(), "{fall:?}");
    }
    let mut expected = vec!["run.queued", "run.claimed"];
    expected.extend(Fall::OF_A_DEAD_SERVER.map(|_| "log"));
    assert_eq!(event_types(&store, &request(1).id).await, expected, "each was stored once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_commit_was_not_answered_is_made_and_written_down_once() {
    let Some(fixture) = Fixture::postgres().await else { return };
    let doorman = Doorman::before(&address(&fixture)).await;
    let opened = Store::open_postgres(&PostgresOptions::at(doorman.url())).await.expect("it opens");
    let store = opened.with_patience(PATIENCE);
    let mut expected = Vec::new();
    for (fall, round) in [Fall::AtTheCommit, Fall::AfterTheCommit].into_iter().zip(1..) {
        let (run, key, project) = (request(round).id, key(round), project(round));
        let rule = "registry.example:443".parse().expect("a rule");
        for action in CHANGES {
            let mandate = mandate("ci", action, &format!("{fall:?}"), 1_000);
            doorman.cut().await;
            doorman.let_fall(fall, 1);
            let is_new = match action {
                Action::CreateRun => {
                    store.enqueue(&mandate, &request(round), None).await.map(|made| made.created)
                }
                Action::AllowHost => store.allow(&mandate, &run, &rule).await,
                Action::SendMessage => {
                    store.add_message(&mandate, &run, MessageKind::Steer, "left").await.map(|_| true)
                }
                Action::CancelRun => {
                    store.request_cancel(&mandate, &run).await.map(|answer| answer == CancelAnswer::Cancelled)
                }
                Action::RemoveRun => store.remove_run(&mandate, &run).await.map(|()| true),
                Action::CreateProject => store.create_project(&mandate, &project).await,
                Action::RemoveProject => store.remove_project(&mandate, &project.id).await,
                Action::CreateKey => store.create_key(&mandate, &key).await.map(|()| true),
                Action::RevokeKey => store.revoke_key(&mandate, &key.id).await,
                other => panic!("{other} is not among them"),
            };
            assert!(
                is_new.unwrap_or_else(|error| panic!("{fall:?}, {action}: {error:?}")),
                "{fall:?}, {action}"
            );
            assert!(doorman.is_done(), "{fall:?}, {action}");
            expected.push((action.as_str().to_owned(), format!("{fall:?}")));
            if action == Action::CancelRun {
                let told = event_types(&store, &run).await;
                let once =
                    ["run.queued", "egress.changed", "message.accepted", "message.refused", "run.cancelled"];
                assert_eq!(told[..5], once, "{fall:?}");
            }
        }
    }
    let written = entries(&store).await.into_iter().map(|entry| (entry.action, entry.subject));
    assert_eq!(written.collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_hears_again_after_handshakes_that_were_cut() {
    let Some(fixture) = Fixture::postgres().await else { return };
    let doorman = Doorman::before(&address(&fixture)).await;
    let options =
        PostgresOptions { listen_url: Some(doorman.url()), ..PostgresOptions::at(address(&fixture)) };
    let store = Store::open_postgres(&options).await.expect("it opens");
    // It waits twice as long each time.
    for fall in [Fall::WithoutAnAnswer, Fall::InTls, Fall::InAuthentication, Fall::BeforeItIsReady] {
        doorman.let_fall(fall, 1);
    }
    let wakes = store.wakes(&node(1), Listens::Worker);
    let mut count = wakes.count();
    for _ in 0..2 {
        let before = *count.borrow();
        store.wake();
        let woken = tokio::time::timeout(PATIENCE, count.wait_for(|count| *count > before));
        woken.await.expect("in time").expect("it still counts");
    }
    assert!(doorman.is_done());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_answers_is_told_at_once_and_not_asked_again() {
    let Some(fixture) = Fixture::postgres().await else { return };
    let real = address(&fixture);
    let doorman = Doorman::before(&real).await;
    let password = real.password().expect("the server of the tests wants one").to_owned();
    let name = real.secret().rsplit_once('/').expect("it names a database").1.to_owned();
    let cases = [
        ("a wrong password", doorman.url_with(|url| url.replace(&password, "wrong")), "password"),
        ("no such database", doorman.url_with(|url| url.replace(&name, "nowhere")), "does not exist"),
        ("a server without TLS", doorman.url_with(|url| url + "?sslmode=require"), "does not support TLS"),
        ("a bad certificate", doorman.url_with(|url| url + "?sslmode=verify-full"), "certificate"),
    ];
    for (case, url, said) in cases {
        if case == "a bad certificate" {
            doorman.let_fall(Fall::BadCertificate, 1);
        }
        let before = doorman.seen();
        let error = Store::open_postgres(&PostgresOptions::at(url)).await.expect_err(case);
        assert_eq!(doorman.seen() - before, 1, "{case}: {error:?}");
        assert!(matches!(error, OpenError::Database(_)), "{case}: {error:?}");
        let told = cofferdam_core::with_causes(&error);
        assert!(told.contains(said) && !told.contains(&password), "{case}: {told}");
    }
}
