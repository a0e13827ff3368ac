//! Whose runs are: what owners share, and what they do not.

use cofferdam_core::{Action, ErrorClass, Outcome, OwnerName, RunId, RunRequest, RunState};
use cofferdam_store::{ClaimRules, Error, Replay, RunCursor, RunFilter, Slots, Store};

use crate::fixture::{LEASE_MS, dead, entries, left, lost, mandate, owner, request, rules};
use crate::on_every_store;

fn name(owner: &str) -> OwnerName {
    owner.parse().expect("the name of an owner")
}

async fn enqueue(store: &Store, owner: &str, request: &RunRequest, now_ms: u64) -> RunId {
    let mandate = mandate(owner, Action::CreateRun, request.id.as_str(), now_ms);
    store.enqueue(&mandate, request, None).await.expect("it is accepted").run
}

async fn claim(store: &Store) -> Option<RunId> {
    let claimed = store.claim(&owner(1), 2_000, LEASE_MS, &ClaimRules::default()).await;
    claimed.expect("claiming works").map(|claimed| claimed.attempt.run)
}

on_every_store! {
    async fn a_run_belongs_to_the_owner_whom_its_maker_acts_for(fixture: Fixture) {
        let store = fixture.open().await;
        let run = enqueue(&store, "ci", &request(1), 1_000).await;
        assert_eq!(store.run(&run).await.unwrap().owner, name("ci"));
        let claimed = store.claim(&owner(1), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().unwrap();
        store.finish(&claimed.lease, &Outcome::Succeeded, &left(&[]), 3_000).await.unwrap();
        assert_eq!(store.run(&run).await.unwrap().owner, name("ci"), "to its end");
        assert_eq!(store.list_runs(&RunFilter::newest(1)).await.unwrap()[0].owner, name("ci"));
    }

    async fn runs_are_listed_by_owner_newest_first_and_page_by_page(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=6_u64 {
            let owner = if number % 2 == 0 { "even" } else { "odd" };
            enqueue(&store, owner, &request(number.into()), 1_000 + number / 4).await;
        }
        let mut filter = RunFilter { owner: Some(name("odd")), ..RunFilter::newest(2) };
        let mut seen = Vec::new();
        loop {
            let page = store.list_runs(&filter).await.unwrap();
            let Some(last) = page.last() else { break };
            filter.after = Some(RunCursor { created_at_ms: last.created_at_ms, run: last.request.id.clone() });
            assert!(page.iter().all(|run| run.owner == name("odd")), "{page:?}");
            seen.extend(page.into_iter().map(|run| run.request.id));
        }
        assert_eq!(seen, [5, 3, 1].map(|number| request(number).id));
        let nobodys = RunFilter { owner: Some(name("nobody")), ..RunFilter::newest(9) };
        assert_eq!(store.list_runs(&nobodys).await.unwrap(), []);
        claim(&store).await.expect("the first of all");
        let running = RunFilter { owner: Some(name("odd")), states: vec![RunState::Running], ..RunFilter::newest(9) };
        assert_eq!(store.list_runs(&running).await.unwrap().len(), 1);
        assert_eq!(store.list_runs(&RunFilter::newest(9)).await.unwrap().len(), 6);
    }

    async fn a_lane_is_its_owners_own(fixture: Fixture) {
        let store = fixture.open().await;
        let in_lane = |number| {
            let mut request = request(number);
            request.placement.lane = Some("release".parse().expect("a lane"));
            request
        };
        for (number, owner) in [(1, "one"), (2, "one"), (3, "other"), (4, "other")] {
            enqueue(&store, owner, &in_lane(number), 1_000).await;
        }
        let first = store.claim(&owner(1), 2_000, LEASE_MS, &ClaimRules::default()).await.unwrap().unwrap();
        assert_eq!(first.attempt.run, request(1).id);
        assert_eq!(claim(&store).await, Some(request(3).id), "another owner's lane of that name does not wait");
        assert_eq!(claim(&store).await, None, "each has one under way");
        store.finish(&first.lease, &Outcome::Succeeded, &left(&[]), 3_000).await.unwrap();
        assert_eq!(claim(&store).await, Some(request(2).id));
        assert_eq!(claim(&store).await, None);
    }

    async fn an_idempotency_key_is_its_owners_own(fixture: Fixture) {
        let store = fixture.open().await;
        let accept = async |owner: &str, number: u128| {
            let mandate = mandate(owner, Action::CreateRun, "a run", 1_000);
            store.enqueue(&mandate, &request(number), Some("nightly")).await.unwrap()
        };
        assert!(accept("one", 1).await.created);
        assert!(accept("other", 2).await.created);
        for (owner, first) in [("one", 1), ("other", 2)] {
            let again = accept(owner, 3).await;
            assert_eq!((again.run, again.created), (request(first).id, false), "{owner}");
        }
        assert_eq!(entries(&store).await.len(), 2);
    }

    async fn another_owners_run_is_no_answer_to_a_repeated_request(fixture: Fixture) {
        let store = fixture.open().await;
        enqueue(&store, "one", &request(1), 1_000).await;
        let other = mandate("other", Action::CreateRun, "a run", 1_001);
        for key in [None, Some("key")] {
            let refused = store.enqueue(&other, &request(1), key).await.unwrap_err();
            assert!(matches!(refused, Error::RunExists { .. }), "{refused:?}");
        }
    }

    async fn dead_letters_are_listed_by_owner(fixture: Fixture) {
        let store = fixture.open().await;
        for (number, owner_name) in [(1, "one"), (2, "other")] {
            enqueue(&store, owner_name, &request(number), 1_000).await;
            let claimed = store.claim(&owner(1), 2_000, LEASE_MS, &ClaimRules::default()).await.unwrap().unwrap();
            let left = dead(ErrorClass::Transient);
            store.finish(&claimed.lease, &lost(), &left, 2_000 + number as u64).await.unwrap();
        }
        let replay = RunRequest { replay_of: Some(request(1).id), ..request(3) };
        enqueue(&store, "other", &replay, 3_000).await;
        let of = async |owner: Option<&OwnerName>| {
            let letters = store.letters(owner).await.unwrap();
            letters.into_iter().map(|kept| (kept.run, kept.owner)).collect::<Vec<_>>()
        };
        let (one, other) = ((request(1).id, name("one")), (request(2).id, name("other")));
        assert_eq!(of(None).await, [other.clone(), one.clone()]);
        assert_eq!(of(Some(&name("one"))).await, [one]);
        assert_eq!(of(Some(&name("other"))).await, [other]);
        assert_eq!(of(Some(&name("nobody"))).await, []);
        let kept = store.letter(&request(1).id).await.unwrap().expect("it is one");
        let replayed = Replay { run: request(3).id, owner: name("other"), state: RunState::Queued };
        assert_eq!((kept.owner, kept.replay), (name("one"), Some(replayed)));
    }
}
