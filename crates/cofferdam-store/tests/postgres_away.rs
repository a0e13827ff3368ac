//! A database that goes away and comes back, under load: what was acknowledged is there, and nothing is there twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cofferdam_core::{Action, Outcome, Project, ProjectId, RunId, RunState, Source};
use cofferdam_store::{Audit, Error, PostgresOptions, Slots, Store};

use crate::fixture::{LEASE_MS, at, left, line, mandate, node, owner, request, rules};
use crate::server::Server;

/// How often the server is killed.
const KILLS: u32 = 6;
const CLIENTS: u128 = 4;

/// Accepts, claims, writes and finishes runs until it is told to stop; tells which runs were acknowledged as ended.
async fn work(store: Store, client: u128, stop: Arc<AtomicBool>) -> Vec<(RunId, RunState, u64)> {
    let mut ended = Vec::new();
    let mut number = client << 64;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let subject = request(number).id;
        let by = |action| mandate("ci", action, subject.as_str(), 1_000);
        let run = store.enqueue(&by(Action::CreateRun), &request(number), None).await.expect("accepted").run;
        assert_eq!(run, subject);
        // What leaves no event is proven by its entry alone.
        let project = Project {
            id: ProjectId::new(1, number),
            name: format!("shop-{number}").parse().expect("a name"),
            source: Source::Empty,
            max_concurrency: None,
        };
        assert!(store.create_project(&by(Action::CreateProject), &project).await.expect("it is made"));
        assert!(store.remove_project(&by(Action::RemoveProject), &project.id).await.expect("it is one"));
        let claimed = store
            .claim(&owner(client), 1_000, LEASE_MS, &rules(Slots::Unlimited))
            .await
            .expect("claiming works")
            .expect("there is one for each client");
        let mut events = 2;
        for first in [1, 4] {
            let lines: Vec<_> = (first..first + 3).map(line).collect();
            events += store.append(&claimed.lease, &lines).await.expect("stored").len() as u64;
            // Without a number of the worker's, nothing but the store itself keeps them from being there twice.
            let own = cofferdam_core::NewEvent::new(
                1_000,
                cofferdam_core::EventType::Log,
                serde_json::json!("own"),
            );
            events += store.append(&claimed.lease, &[own]).await.expect("stored").len() as u64;
        }
        let after =
            store.finish(&claimed.lease, &Outcome::Succeeded, &left(&[]), 2_000).await.expect("ended");
        events += after.events.len() as u64;
        ended.push((claimed.attempt.run.clone(), after.state, events));
    }
    ended
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_killed_under_load_loses_nothing_and_repeats_nothing() {
    let Some(mut server) = Server::start() else { return };
    let options = PostgresOptions::at(server.url());
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = Vec::new();
    for client in 1..=CLIENTS {
        let store = Store::open_postgres(&options).await.expect("it opens");
        clients.push(tokio::spawn(work(
            store.with_patience(Duration::from_secs(120)),
            client,
            Arc::clone(&stop),
        )));
    }
    let watcher =
        Store::open_postgres(&options).await.expect("it opens").with_patience(Duration::from_secs(120));
    for _ in 0..KILLS {
        // Something must be under way each time.
        let before = watcher.state_counts(1_000).await.expect("counted").counts;
        while watcher.state_counts(1_000).await.expect("counted").counts == before {
            tokio::task::yield_now().await;
        }
        server.kill();
        server.restart();
    }
    stop.store(true, Ordering::Relaxed);
    let mut ended = Vec::new();
    for client in clients {
        ended.extend(client.await.expect("no operation failed"));
    }
    let distinct: BTreeSet<&RunId> = ended.iter().map(|(run, ..)| run).collect();
    assert_eq!(distinct.len(), ended.len(), "no run was ended twice");
    for (run, state, events) in &ended {
        let record = watcher.run(run).await.expect("it is there");
        assert_eq!((record.state, record.attempts, record.last_seq), (*state, 1, *events), "{run}");
    }
    let examined = watcher.check().await.expect("it can be looked at");
    assert_eq!(examined.problems, [], "{examined:?}");
    let mut written = Vec::new();
    while let page =
        watcher.audit_before(written.last().map_or(u64::MAX, |entry: &Audit| entry.seq), 500).await
        && let page = page.expect("they can be read")
        && !page.is_empty()
    {
        written.extend(page);
    }
    let distinct: BTreeSet<_> = written.iter().map(|entry| (&entry.action, &entry.subject)).collect();
    assert_eq!(distinct.len(), written.len(), "no change was written down twice");
    for (run, ..) in &ended {
        for action in ["run.create", "project.create", "project.remove"] {
            assert!(distinct.contains(&(&action.to_owned(), &run.to_string())), "{action} of {run}");
        }
    }
    assert!(ended.len() >= CLIENTS as usize, "{} runs", ended.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_is_said_so_and_found_again() {
    let Some(mut server) = Server::start() else { return };
    let store = Store::open_postgres(&PostgresOptions::at(server.url())).await.expect("it opens");
    let hasty = store.with_patience(Duration::ZERO);
    let wakes = store.wakes(&node(1), cofferdam_store::Listens::Worker);
    store.enqueue(&at(1_000), &request(1), None).await.expect("accepted");
    server.kill();
    let failed = hasty.run(&request(1).id).await.expect_err("it is away");
    assert!(failed.is_transient(), "{failed:?}");
    let failed = hasty.enqueue(&at(1_000), &request(2), None).await.expect_err("it is away");
    assert!(matches!(failed, Error::Unavailable(_)), "{failed:?}");
    assert!(store.ping().await.is_err());
    let heard = *wakes.count().borrow();
    server.restart();
    let patient = store.with_patience(Duration::from_secs(60));
    assert_eq!(patient.run(&request(1).id).await.expect("it is back").state, RunState::Queued);
    patient.enqueue(&at(1_000), &request(2), None).await.expect("accepted");
    store.ping().await.expect("it is back");
    // Whoever listens is told that it may have missed something.
    let mut count = wakes.count();
    let woken = tokio::time::timeout(Duration::from_secs(60), count.wait_for(|count| *count > heard));
    woken.await.expect("in time").expect("it still counts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_found_by_its_name_and_over_its_socket() {
    let Some(server) = Server::start() else { return };
    for url in [server.url_by_name(), server.url_by_socket()] {
        let store = Store::open_postgres(&PostgresOptions::at(url)).await.expect("it opens");
        store.enqueue(&at(1_000), &request(1), None).await.expect("accepted");
        store.close().await;
    }
}

#[tokio::test]
async fn an_address_that_leads_nowhere_is_told_without_its_password() {
    let url: cofferdam_core::StoreUrl = "postgres://me:hunter22@127.0.0.1:1/x".parse().expect("an address");
    let error = Store::open_postgres(&PostgresOptions::at(url)).await.expect_err("nobody is there");
    let told = format!("{error:?} {}", cofferdam_core::with_causes(&error));
    assert!(told.contains("postgres://me:***@127.0.0.1:1/x") && !told.contains("hunter22"), "{told}");
}
