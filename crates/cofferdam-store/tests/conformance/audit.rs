//! Who asked for what: written down with the change, once, and bounded.

use cofferdam_core::{
    Action, DesiredState, ErrorClass, KeyId, Outcome, OwnerName, Phase, ProcessName, Project, ProjectId,
    Scopes, Source,
};
use cofferdam_store::{
    Audit, AuditOutcome, Error, Left, Mandate, MessageKind, NewKey, Retention, SpecEdit, Store,
};

use crate::fixture::specs::{execution, new_spec, passes, spec, spec_id, stretch};
use crate::fixture::{at, claimed_run, dead, entries, lost, mandate, node, request};
use crate::on_every_store;

const MINUTE_MS: u64 = 60_000;

fn project(number: u128) -> Project {
    let name = "shop".parse().expect("a plain name");
    Project { id: ProjectId::new(1, number), name, source: Source::Empty, max_concurrency: None }
}

fn key(number: u128, sha256: &str) -> NewKey {
    let (name, owner, sha256) = ("ci".to_owned(), OwnerName::system(), sha256.to_owned());
    NewKey { id: KeyId::new(1, number), name, owner, sha256, scopes: Scopes::all() }
}

fn by_ci(action: Action, now_ms: u64) -> Mandate {
    mandate("ci", action, &format!("subject of {action}"), now_ms)
}

/// Makes every change that there is; `number` of each is what nobody has touched before.
async fn change_everything(store: &Store, number: u128) {
    let live = claimed_run(store, number).await.attempt.run;
    let ended = claimed_run(store, number + 1).await;
    store.finish(&ended.lease, &lost(), &dead(ErrorClass::Transient), 2_000).await.expect("it ends");
    let ended = ended.attempt.run;
    store.enqueue(&by_ci(Action::CreateRun, 3_000), &request(number + 2), None).await.expect("accepted");
    let rule = "registry.example:443".parse().expect("a rule");
    store.allow(&by_ci(Action::AllowHost, 3_001), &live, &rule).await.expect("it lives");
    let message = by_ci(Action::SendMessage, 3_002);
    store.add_message(&message, &live, MessageKind::Steer, "left").await.expect("it lives");
    store.request_cancel(&by_ci(Action::CancelRun, 3_003), &live).await.expect("it lives");
    let waiting = request(number + 2).id;
    store.request_cancel(&by_ci(Action::CancelRun, 3_004), &waiting).await.expect("it waits");
    store.remove_letter(&by_ci(Action::RemoveDeadLetter, 3_005), &ended).await.expect("it is one");
    store.remove_run(&by_ci(Action::RemoveRun, 3_006), &ended).await.expect("it has ended");
    store.create_project(&by_ci(Action::CreateProject, 3_007), &project(1)).await.expect("it is new");
    store.remove_project(&by_ci(Action::RemoveProject, 3_008), &project(1).id).await.expect("it is one");
    store.create_key(&by_ci(Action::CreateKey, 3_009), &key(1, "aa")).await.expect("it is new");
    store.revoke_key(&by_ci(Action::RevokeKey, 3_010), &key(1, "aa").id).await.expect("it is one");
    let wanted = [(ProcessName::Dispatcher, DesiredState::Running)];
    store.set_desired(&by_ci(Action::StartProcess, 3_011), &node(1), &wanted).await.expect("it is new");
    change_specs(store, number).await;
}

async fn change_specs(store: &Store, number: u128) {
    let id = spec_id(1);
    store.create_spec(&by_ci(Action::CreateSpec, 3_012), &new_spec(1)).await.expect("it is new");
    let edit = SpecEdit { title: Some("Night mode".to_owned()), ..SpecEdit::default() };
    let edited = store.update_spec(&by_ci(Action::UpdateSpec, 3_013), &id, &edit).await.expect("it rests");
    let execution = execution(&edited, stretch(number + 3, 1));
    store.execute_spec(&by_ci(Action::ExecuteSpec, 3_014), &id, &execution).await.expect("it rests");
    passes(store, number + 3, &[Phase::Explore]).await;
    let (seen, next) = (spec(store, 1).await.revision, stretch(number + 4, 1));
    let reject = by_ci(Action::DecideSpec, 3_015);
    store.reject_phase(&reject, &id, Phase::Explore, "no tests", seen, &next).await.expect("it waits");
    passes(store, number + 4, &[Phase::Explore]).await;
    let seen = spec(store, 1).await.revision;
    let approve = by_ci(Action::DecideSpec, 3_016);
    store.approve_phase(&approve, &id, Phase::Explore, seen, None).await.expect("it waits");
}

/// The entries that are not of the tests' own preparations.
async fn by_keys(store: &Store) -> Vec<Audit> {
    entries(store).await.into_iter().filter(|entry| entry.actor != "local").collect()
}

on_every_store! {
    async fn every_change_is_written_down_as_its_mandate_says(fixture: Fixture) {
        let store = fixture.open().await;
        change_everything(&store, 1).await;
        let written = by_keys(&store).await;
        let actions = [
            Action::CreateRun, Action::AllowHost, Action::SendMessage, Action::CancelRun, Action::CancelRun,
            Action::RemoveDeadLetter, Action::RemoveRun, Action::CreateProject, Action::RemoveProject,
            Action::CreateKey, Action::RevokeKey, Action::StartProcess, Action::CreateSpec, Action::UpdateSpec,
            Action::ExecuteSpec, Action::DecideSpec, Action::DecideSpec,
        ];
        let expected: Vec<Audit> = actions
            .into_iter()
            .zip(3_000..)
            .zip(&written)
            .map(|((action, at_ms), found)| {
                let mandate = by_ci(action, at_ms);
                Audit {
                    seq: found.seq,
                    at_ms,
                    actor: KeyId::new(1, 1).to_string(),
                    action: action.as_str().to_owned(),
                    subject: mandate.subject().to_owned(),
                    data: mandate.data().clone(),
                    outcome: AuditOutcome::Done,
                    count: 1,
                }
            })
            .collect();
        assert_eq!(written, expected);
        assert!(written.is_sorted_by(|one, next| one.seq < next.seq), "{written:?}");
    }

    async fn the_times_of_a_change_are_those_of_its_mandate(fixture: Fixture) {
        let store = fixture.open().await;
        change_everything(&store, 1).await;
        let record = store.run(&request(3).id).await.unwrap();
        let times = (record.created_at_ms, record.cancel_requested_at_ms, record.finished_at_ms);
        assert_eq!(times, (3_000, Some(3_004), Some(3_004)));
        assert_eq!(store.messages_page(&request(1).id, 0, 500).await.unwrap().rows[0].message.created_at_ms, 3_002);
        let key = store.keys().await.unwrap().remove(0);
        assert_eq!((key.created_at_ms, key.revoked_at_ms), (3_009, Some(3_010)));
    }

    async fn whoever_asks_again_for_what_is_done_leaves_no_entry(fixture: Fixture) {
        let store = fixture.open().await;
        let live = claimed_run(&store, 1).await;
        let run = &live.attempt.run;
        store.enqueue(&at(1_000), &request(2), Some("key")).await.unwrap();
        let rule = "registry.example:443".parse().unwrap();
        store.allow(&at(1_000), run, &rule).await.unwrap();
        store.request_cancel(&at(1_000), run).await.unwrap();
        store.create_project(&at(1_000), &project(1)).await.unwrap();
        store.create_key(&at(1_000), &key(1, "aa")).await.unwrap();
        store.revoke_key(&at(1_000), &KeyId::new(1, 1)).await.unwrap();
        let before = entries(&store).await;

        assert!(!store.enqueue(&at(2_000), &request(3), Some("key")).await.unwrap().created);
        assert!(!store.enqueue(&at(2_000), &request(2), Some("key")).await.unwrap().created);
        assert!(!store.allow(&at(2_000), run, &rule).await.unwrap());
        store.request_cancel(&at(2_000), run).await.unwrap();
        assert!(!store.create_project(&at(2_000), &project(1)).await.unwrap());
        assert!(!store.create_project(&at(2_000), &project(2)).await.unwrap(), "its name is taken");
        assert!(!store.remove_project(&at(2_000), &ProjectId::new(1, 9)).await.unwrap());
        assert!(store.revoke_key(&at(2_000), &KeyId::new(1, 1)).await.unwrap());
        assert!(!store.revoke_key(&at(2_000), &KeyId::new(1, 9)).await.unwrap());
        assert!(!store.remove_letter(&at(2_000), run).await.unwrap());
        assert_eq!(store.keys().await.unwrap()[0].revoked_at_ms, Some(1_000), "when it was first revoked");

        store.finish(&live.lease, &Outcome::Cancelled, &Left::default(), 2_000).await.unwrap();
        store.request_cancel(&at(2_000), run).await.unwrap();
        assert_eq!(entries(&store).await, before);
    }

    async fn what_cannot_be_done_leaves_no_entry(fixture: Fixture) {
        let store = fixture.open().await;
        let live = claimed_run(&store, 1).await;
        let run = &live.attempt.run;
        store.create_key(&at(1_000), &key(1, "aa")).await.unwrap();
        store.enqueue(&at(1_000), &request(2), Some("key")).await.unwrap();
        let before = entries(&store).await;

        let rule = "registry.example:443".parse().unwrap();
        let other = cofferdam_core::RunRequest { replay_of: Some(run.clone()), ..request(3) };
        let differs = store.enqueue(&at(2_000), &other, Some("key")).await;
        assert!(matches!(differs, Err(Error::IdempotencyMismatch { .. })), "{differs:?}");
        assert!(matches!(store.remove_run(&at(2_000), run).await, Err(Error::NotFinal { .. })));
        assert!(store.create_key(&at(2_000), &key(2, "aa")).await.is_err(), "the same key twice");
        assert!(store.request_cancel(&at(2_000), &request(9).id).await.is_err());
        store.finish(&live.lease, &Outcome::Succeeded, &Left::default(), 2_000).await.unwrap();
        assert!(matches!(store.allow(&at(2_000), run, &rule).await, Err(Error::RunEnded { .. })));
        let late = store.add_message(&at(2_000), run, MessageKind::Steer, "late").await;
        assert!(matches!(late, Err(Error::RunEnded { .. })), "{late:?}");
        assert_eq!(entries(&store).await, before);
    }

    async fn refusals_are_one_entry_for_each_actor_action_and_minute(fixture: Fixture) {
        let store = fixture.open().await;
        let refused = |action, subject: &str, at_ms| mandate("ci", action, subject, at_ms);
        for (subject, at_ms) in [("first", 0), ("second", 1), ("third", MINUTE_MS - 1), ("fourth", MINUTE_MS)] {
            store.record_refusal(&refused(Action::CancelRun, subject, at_ms)).await.unwrap();
        }
        store.record_refusal(&refused(Action::RemoveRun, "fifth", 2)).await.unwrap();
        store.record_refusal(&at(3)).await.unwrap();
        let counted: Vec<_> = entries(&store).await;
        assert!(counted.iter().all(|entry| entry.outcome == AuditOutcome::Refused), "{counted:?}");
        let counted: Vec<_> = counted
            .iter()
            .map(|entry| (entry.action.as_str(), entry.subject.as_str(), entry.at_ms, entry.count))
            .collect();
        assert_eq!(counted, [
            ("run.cancel", "first", 0, 3),
            ("run.cancel", "fourth", MINUTE_MS, 1),
            ("run.remove", "fifth", 2, 1),
            ("run.create", "", 3, 1),
        ]);
        let data = &entries(&store).await[0].data;
        assert_eq!(*data, serde_json::json!({ "about": "first" }));
    }

    async fn refusals_that_come_at_once_are_all_counted(fixture: Fixture) {
        let stores = [fixture.open().await, fixture.open().await];
        let refusals: Vec<_> = (0..20_usize)
            .map(|number| {
                let store = stores[number % 2].clone();
                tokio::spawn(async move { store.record_refusal(&at(1_000 + number as u64)).await.unwrap() })
            })
            .collect();
        for refusal in refusals {
            refusal.await.unwrap();
        }
        let counted: Vec<u64> = entries(&stores[0]).await.iter().map(|entry| entry.count).collect();
        assert_eq!(counted, [20]);
    }

    async fn changes_are_never_counted_together(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=3 {
            store.enqueue(&at(1_000), &request(number), None).await.unwrap();
        }
        store.record_refusal(&at(1_000)).await.unwrap();
        let counted: Vec<_> = entries(&store).await.iter().map(|entry| (entry.outcome, entry.count)).collect();
        let done = (AuditOutcome::Done, 1);
        assert_eq!(counted, [done, done, done, (AuditOutcome::Refused, 1)]);
    }

    async fn entries_are_read_page_by_page_newest_first(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=3 {
            store.enqueue(&at(number), &request(number.into()), None).await.unwrap();
        }
        let page = store.audit_before(u64::MAX, 2).await.unwrap();
        assert_eq!(page.iter().map(|one| one.at_ms).collect::<Vec<_>>(), [3, 2]);
        let rest = store.audit_before(page[1].seq, 2).await.unwrap();
        assert_eq!(rest.iter().map(|one| one.at_ms).collect::<Vec<_>>(), [1]);
    }

    async fn old_entries_are_forgotten_a_part_at_a_time(fixture: Fixture) {
        let store = fixture.open().await;
        // One entry for each minute.
        for minute in 0..600 {
            store.record_refusal(&at(minute * MINUTE_MS)).await.unwrap();
        }
        store.enqueue(&at(600 * MINUTE_MS), &request(1), None).await.unwrap();
        assert_eq!(store.expire(&Retention::default()).await.unwrap().audit, 0, "they are kept for ever");
        let retention = Retention { audit_before_ms: Some(590 * MINUTE_MS), ..Retention::default() };
        let mut rounds = Vec::new();
        loop {
            let expired = store.expire(&retention).await.unwrap();
            assert!(expired.runs.is_empty() && expired.events == 0 && expired.artifacts.is_empty());
            if expired.audit == 0 {
                break;
            }
            rounds.push(expired.audit);
        }
        assert!(rounds.len() > 1, "nobody waits long for one round: {rounds:?}");
        assert_eq!(rounds.iter().sum::<u64>(), 590);
        let left = entries(&store).await;
        assert_eq!((left.len(), left[0].at_ms), (11, 590 * MINUTE_MS));
        assert!(store.run(&request(1).id).await.is_ok());
    }
}
