//! Messages to agents: in order for each, side by side for several, and never two in one folder.

use cofferdam_core::{Conversation, Outcome, RunRequest, SessionStart, Source, WorkspaceKind};
use cofferdam_store::{Left, Slots};

use crate::fixture::{LEASE_MS, at, node, owner, request, rules};
use crate::on_every_store;

fn message(number: u128, agent: &str, folder: &str) -> RunRequest {
    RunRequest {
        source: Source::Local { path: folder.into() },
        workspace: WorkspaceKind::Direct,
        conversation: Some(Conversation {
            agent: agent.parse().expect("it is a name"),
            session: SessionStart::Continue,
        }),
        claimable_by: Some(node(number)),
        ..request(number)
    }
}

on_every_store! {
    async fn messages_to_one_agent_are_claimed_in_the_order_of_their_acceptance(fixture: Fixture) {
        let store = fixture.open().await;
        // Neither the ids nor the clocks of several processes say who was first.
        let accepted = [(3, 1_002), (1, 1_005), (2, 1_000)];
        for (number, now_ms) in accepted {
            store.enqueue(&at(now_ms), &message(number, "coder", &format!("/w/{number}")), None).await.unwrap();
        }
        for (at, (number, _)) in accepted.iter().enumerate() {
            for (later, _) in &accepted[at + 1..] {
                assert_eq!(store.claim(&owner(*later), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap(), None, "{later} waits");
            }
            let claimed = store.claim(&owner(*number), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().expect("it is its turn");
            for (later, _) in &accepted[at + 1..] {
                assert_eq!(store.claim(&owner(*later), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap(), None, "{later} waits");
            }
            store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), 2_000).await.unwrap();
        }
    }

    async fn agents_do_not_wait_for_each_other(fixture: Fixture) {
        let store = fixture.open().await;
        store.enqueue(&at(1_000), &message(1, "coder", "/w/a"), None).await.unwrap();
        store.enqueue(&at(1_000), &message(2, "tester", "/w/ab"), None).await.unwrap();
        assert!(store.claim(&owner(1), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().is_some());
        assert!(store.claim(&owner(2), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().is_some());
    }

    async fn a_folder_has_one_run_at_a_time_and_so_has_what_is_above_and_below(fixture: Fixture) {
        let store = fixture.open().await;
        for (number, folder) in [(1, "/w/a"), (2, "/w/a/b"), (3, "/w"), (4, "/w/a"), (5, "/w/c")] {
            let agent = format!("agent-{number}");
            store.enqueue(&at(1_000), &message(number, &agent, folder), None).await.unwrap();
        }
        let first = store.claim(&owner(1), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().expect("nobody is there");
        for number in [2, 3, 4] {
            assert_eq!(store.claim(&owner(number), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap(), None, "{number} waits");
        }
        assert!(store.claim(&owner(5), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().is_some(), "another folder");
        store.finish(&first.lease, &Outcome::Succeeded, &Left::default(), 2_000).await.unwrap();
        assert!(store.claim(&owner(2), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().is_some());
    }

    async fn a_run_on_a_layer_waits_for_nobody(fixture: Fixture) {
        let store = fixture.open().await;
        store.enqueue(&at(1_000), &message(1, "coder", "/w/a"), None).await.unwrap();
        let layered = RunRequest { source: Source::Local { path: "/w/a".into() }, ..request(2) };
        store.enqueue(&at(1_000), &layered, None).await.unwrap();
        assert!(store.claim(&owner(1), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().is_some());
        assert!(store.claim(&owner(9), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().is_some());
    }

    async fn a_message_that_was_cancelled_lets_the_next_one_through(fixture: Fixture) {
        let store = fixture.open().await;
        let first = message(1, "coder", "/w/a");
        store.enqueue(&at(1_000), &first, None).await.unwrap();
        store.enqueue(&at(1_000), &message(2, "coder", "/w/a"), None).await.unwrap();
        assert_eq!(store.claim(&owner(2), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap(), None);
        store.request_cancel(&at(1_500), &first.id).await.unwrap();
        assert!(store.claim(&owner(2), 2_000, LEASE_MS, &rules(Slots::Unlimited)).await.unwrap().is_some());
    }
}
