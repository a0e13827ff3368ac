//! What the service keeps beside runs: nodes, projects, keys; and what it forgets.

use std::path::PathBuf;

use crate::fixture::{at, claimed_run, dead, event_types, left, line, lost, node, owner, request, seal};
use crate::on_every_store;
use cofferdam_core::{
    KeyId, MessageKind, Mode, Outcome, Project, ProjectId, Role, RunState, Scope, Scopes, Source, Work,
};
use cofferdam_store::{
    ArtifactPlace, Expired, Left, ModeReport, NewArtifact, NewKey, NodeHealth, NodeRecord, NodeReport,
    Receipt, Retention, RunCursor, RunFilter,
};

fn report(running: u32, health: NodeHealth) -> NodeRecord {
    NodeRecord {
        id: node(1),
        place: owner(1).place,
        started_at_ms: 1_000,
        seen_at_ms: 2_000 + u64::from(running),
        report: NodeReport {
            name: "main".to_owned(),
            host: "builder".to_owned(),
            version: "0.1.0".to_owned(),
            roles: vec![Role::Worker],
            capacity: 4,
            running,
            health,
            modes: vec![ModeReport { mode: Mode::Native, missing: None }],
        },
    }
}

fn key(number: u128, sha256: &str) -> NewKey {
    let scopes: Scopes = [Scope::Read, Scope::Run].into_iter().collect();
    let (name, owner) = ("ci".to_owned(), "the ci team".parse().expect("the name of an owner"));
    NewKey { id: KeyId::new(1, number), name, owner, sha256: sha256.to_owned(), scopes }
}

fn file(number: u32) -> ArtifactPlace {
    ArtifactPlace::File(format!("/runs/{number}/diff.patch").into())
}

fn artifact(number: u32) -> NewArtifact {
    NewArtifact { name: "diff".to_owned(), place: file(number), bytes: 1, sha256: "aa".to_owned() }
}

on_every_store! {
    async fn a_node_is_known_by_what_it_told_last(fixture: Fixture) {
        let store = fixture.open().await;
        store.report_node(&report(0, NodeHealth::Ready)).await.unwrap();
        let resting = NodeHealth::Resting { reason: "no engine".to_owned(), until_ms: 9_000 };
        store.report_node(&report(1, resting.clone())).await.unwrap();
        assert_eq!(store.nodes().await.unwrap(), [report(1, resting)]);
        store.remove_node(&node(1)).await.unwrap();
        assert_eq!(store.nodes().await.unwrap(), []);
    }

    async fn a_key_is_found_by_its_hash_and_stays_on_record_when_it_is_revoked(fixture: Fixture) {
        let store = fixture.open().await;
        store.create_key(&at(1_000), &key(1, "aa")).await.unwrap();
        store.create_key(&at(1_001), &key(2, "bb")).await.unwrap();
        assert!(store.create_key(&at(1_002), &key(3, "aa")).await.is_err(), "the same key twice");
        assert_eq!(store.key_of("cc").await.unwrap(), None);
        let found = store.key_of("bb").await.unwrap().unwrap();
        assert_eq!((found.id.clone(), found.scopes.to_string().as_str()), (KeyId::new(1, 2), "read,run"));
        assert_eq!(found.owner.as_str(), "the ci team");
        store.use_key(&found.id, 5_000).await.unwrap();
        assert!(store.revoke_key(&at(6_000), &found.id).await.unwrap());
        assert!(store.revoke_key(&at(7_000), &found.id).await.unwrap(), "again changes nothing");
        assert!(!store.revoke_key(&at(7_000), &KeyId::new(1, 9)).await.unwrap());
        let keys = store.keys().await.unwrap();
        assert_eq!(keys.iter().map(|key| key.revoked_at_ms).collect::<Vec<_>>(), [None, Some(6_000)]);
        assert_eq!(keys[1].used_at_ms, Some(5_000));
    }

    async fn a_project_is_found_by_its_id_or_name_and_no_name_is_given_twice(fixture: Fixture) {
        let store = fixture.open().await;
        let project = |number: u128, name: &str| Project {
            id: ProjectId::new(1, number),
            name: name.parse().unwrap(),
            source: Source::Local { path: PathBuf::from("/srv/shop") },
            max_concurrency: None,
        };
        assert!(store.create_project(&at(1_000), &project(1, "shop")).await.unwrap());
        assert!(!store.create_project(&at(1_000), &project(2, "shop")).await.unwrap());
        assert!(store.create_project(&at(1_000), &project(3, "bar")).await.unwrap());
        assert_eq!(store.find_project("shop").await.unwrap(), Some(project(1, "shop")));
        let id = ProjectId::new(1, 3);
        assert_eq!(store.find_project(id.as_str()).await.unwrap(), Some(project(3, "bar")));
        assert_eq!(store.projects().await.unwrap(), [project(3, "bar"), project(1, "shop")]);
        assert!(store.remove_project(&at(9_000), &id).await.unwrap());
        assert!(!store.remove_project(&at(9_000), &id).await.unwrap());
    }

    async fn runs_are_listed_by_project_and_page_by_page(fixture: Fixture) {
        let store = fixture.open().await;
        let project = ProjectId::new(1, 1);
        for number in 1..=5_u64 {
            let mut request = request(number.into());
            if number != 3 {
                request.placement.project = Some(project.clone());
            }
            store.enqueue(&at(1_000 + number / 2), &request, None).await.unwrap();
        }
        let mut filter = RunFilter { project: Some(project), ..RunFilter::newest(2) };
        let mut seen = Vec::new();
        loop {
            let page = store.list_runs(&filter).await.unwrap();
            let Some(last) = page.last() else { break };
            filter.after = Some(RunCursor { created_at_ms: last.created_at_ms, run: last.request.id.clone() });
            seen.extend(page.iter().map(|run| run.request.id.clone()));
        }
        assert_eq!(seen, [5, 4, 2, 1].map(|number| request(number).id));
        let counts = store.state_counts(2_000).await.unwrap();
        assert_eq!((counts.counts, counts.oldest_waiting_ms), (vec![(RunState::Queued, 5)], Some(1_000)));
    }

    async fn a_page_of_runs_ends_where_it_is_long_and_the_next_one_goes_on(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=9_u64 {
            let mut request = request(number.into());
            request.work = Work::Program { argv: vec!["true".to_owned(), "x".repeat(1 << 20)] };
            store.enqueue(&at(1_000 + number / 2), &request, None).await.unwrap();
        }
        let owner = store.run(&request(1).id).await.unwrap().owner;
        for owner in [None, Some(owner)] {
            let mut filter = RunFilter { owner, ..RunFilter::newest(500) };
            let whole = store.list_runs(&filter).await.unwrap();
            assert_eq!(whole.len(), 9, "whoever wants all of them has all of them");
            let (mut pages, mut seen) = (Vec::new(), Vec::new());
            loop {
                let page = store.runs_page(&filter).await.unwrap();
                pages.push(page.rows.len());
                let Some(last) = page.rows.last() else { break };
                filter.after = Some(RunCursor { created_at_ms: last.created_at_ms, run: last.request.id.clone() });
                let is_full = page.is_full(filter.newest);
                seen.extend(page.rows);
                if !is_full {
                    break;
                }
            }
            assert_eq!(pages, [4, 4, 1]);
            assert_eq!(seen, whole);
        }
    }

    async fn attempts_and_messages_are_read_back(fixture: Fixture) {
        let store = fixture.open().await;
        let first = claimed_run(&store, 1).await;
        let run = &first.attempt.run;
        store.record_seal(&first.lease, &seal(), &[]).await.unwrap();
        let message = store.add_message(&at(1_100), run, MessageKind::Steer, "go left").await.unwrap();
        let late = store.add_message(&at(1_200), run, MessageKind::FollowUp, "and then").await.unwrap();
        let delivered = Receipt::Delivered { taken_as: None };
        store.mark_message(&first.lease, message, &delivered, 1_300).await.unwrap();
        store.finish(&first.lease, &lost(), &left(&[]), 2_000).await.unwrap();
        let attempts = store.attempts(run).await.unwrap();
        assert_eq!(attempts.len(), 1);
        assert_eq!((attempts[0].number, attempts[0].ended_at_ms), (1, Some(2_000)));
        assert_eq!((attempts[0].seal.clone(), attempts[0].outcome.clone()), (Some(seal()), Some(lost())));
        let messages = store.messages_page(run, 0, 500).await.unwrap().rows;
        let states: Vec<_> = messages.iter().map(|one| (one.message.id, one.receipt.clone())).collect();
        let refused = Receipt::Refused { reason: "run_ended".to_owned() };
        assert_eq!(states, [(message, Some(delivered)), (late, Some(refused))]);
    }

    async fn what_is_old_is_forgotten_and_dead_letters_and_living_runs_are_not(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=3_u32 {
            let claimed = claimed_run(&store, number.into()).await;
            let lines: Vec<_> = (0..5).map(line).collect();
            store.append(&claimed.lease, &lines).await.unwrap();
            let mut what = match number {
                2 => dead(cofferdam_core::ErrorClass::Transient),
                _ => left(&[]),
            };
            what.artifacts = vec![artifact(number)];
            let left: Left = what;
            store.finish(&claimed.lease, &Outcome::Succeeded, &left, 1_000 * u64::from(number)).await.unwrap();
        }
        let alive = claimed_run(&store, 4).await;
        let nothing = store.expire(&Retention::default()).await.unwrap();
        assert_eq!((nothing.runs.len(), nothing.events, nothing.artifacts.len()), (0, 0, 0));

        let retention = Retention { runs_before_ms: Some(2_500), ..Retention::default() };
        let expired = store.expire(&retention).await.unwrap();
        assert_eq!(expired.runs, [request(1).id]);
        assert_eq!(expired.artifacts, [file(1)]);
        assert!(store.run(&request(1).id).await.is_err());
        assert!(store.letter(&request(2).id).await.unwrap().is_some());

        let retention = Retention {
            events_before_ms: Some(5_000),
            artifacts_before_ms: Some(2_500),
            ..Retention::default()
        };
        let expired = store.expire(&retention).await.unwrap();
        assert_eq!(expired.artifacts, [file(2)]);
        assert!(expired.events > 0);
        let kept = store.events_after(&request(3).id, 0, 100).await.unwrap();
        let types: Vec<_> = kept.iter().map(|event| event.event_type.as_str()).collect();
        assert_eq!(types, ["run.queued", "run.finished"]);
        assert_eq!(event_types(&store, &alive.attempt.run).await, ["run.queued", "run.claimed"]);
        let again = store.expire(&retention).await.unwrap();
        assert_eq!((again.events, again.artifacts.len()), (0, 0), "nothing is left to forget");
    }

    async fn what_was_removed_is_said_to_be_and_the_first_files_go_when_all_take_too_much(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=4_u32 {
            let claimed = claimed_run(&store, number.into()).await;
            let what = Left { artifacts: vec![artifact(number)], ..left(&[]) };
            store.finish(&claimed.lease, &Outcome::Succeeded, &what, 1_000 * u64::from(number)).await.unwrap();
        }
        let removed = async |number: u32| {
            let run = store.run(&request(number.into()).id).await.unwrap();
            (run.events_removed_at_ms, run.files_removed_at_ms)
        };
        let all: u64 = (1..=4).map(|number| artifact(number).bytes).sum();
        let enough = Retention { artifacts_most_bytes: Some(all), now_ms: 6_000, ..Retention::default() };
        assert_eq!(store.expire(&enough).await.unwrap(), Expired::default());
        let less = Retention { artifacts_most_bytes: Some(all - artifact(1).bytes - 1), ..enough };
        assert_eq!(store.expire(&less).await.unwrap().artifacts, [file(1), file(2)]);
        assert_eq!(store.expire(&less).await.unwrap(), Expired::default());
        let old = Retention {
            events_before_ms: Some(3_500),
            artifacts_before_ms: Some(3_500),
            now_ms: 7_000,
            ..Retention::default()
        };
        assert_eq!(store.expire(&old).await.unwrap().artifacts, [file(3)]);
        let told = [removed(1).await, removed(2).await, removed(3).await, removed(4).await];
        let (early, late) = (Some(6_000), Some(7_000));
        assert_eq!(told, [(late, early), (late, early), (late, late), (None, None)]);
        let run = store.run(&request(1).id).await.unwrap();
        assert_eq!((run.state, run.outcome), (RunState::Succeeded, Some(Outcome::Succeeded)));
    }

    async fn marks_say_how_far_runs_are_and_leave_out_those_that_are_not(fixture: Fixture) {
        let store = fixture.open().await;
        let claimed = claimed_run(&store, 2).await;
        store.finish(&claimed.lease, &Outcome::Succeeded, &left(&[]), 2_000).await.unwrap();
        store.enqueue(&at(3_000), &request(1), None).await.unwrap();
        let ids = [request(1).id, request(2).id, request(3).id];
        let mut marks = store.run_marks(&ids).await.unwrap();
        marks.sort_by(|one, other| one.run.cmp(&other.run));
        let seen: Vec<_> = marks.iter().map(|mark| (&mark.run, mark.last_seq, mark.state)).collect();
        assert_eq!(seen, [(&ids[0], 1, RunState::Queued), (&ids[1], 3, RunState::Succeeded)]);
        assert_eq!(store.run_marks(&[]).await.unwrap(), []);
    }
}
