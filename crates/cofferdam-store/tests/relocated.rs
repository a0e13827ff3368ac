//! A record that was copied into another state folder.

use cofferdam_core::{PlaceId, Placement, RunRequest, RunState};
use cofferdam_store::{NodeHealth, NodeRecord, NodeReport, Owner, Slots};

use crate::fixture::{Fixture, LEASE_MS, at, node, request, rules};

fn told_by(number: u128, place: &PlaceId) -> NodeRecord {
    NodeRecord {
        id: node(number),
        place: place.clone(),
        started_at_ms: 1_000,
        seen_at_ms: 1_000,
        report: NodeReport {
            name: "main".to_owned(),
            host: "builder".to_owned(),
            version: "0.1.0".to_owned(),
            roles: Vec::new(),
            capacity: 1,
            running: 0,
            health: NodeHealth::Ready,
            modes: Vec::new(),
        },
    }
}

#[tokio::test]
async fn a_copy_in_another_folder_has_the_runs_of_the_first_and_not_its_nodes() {
    let fixture = Fixture::sqlite();
    let store = fixture.open().await;
    let (first, second) = (PlaceId::new(1, 1), PlaceId::new(1, 2));
    let bound = |number: u128, place: &PlaceId| RunRequest {
        placement: Placement { place: Some(place.clone()), ..Placement::default() },
        ..request(number)
    };
    for number in [1, 2] {
        store.enqueue(&at(1_000), &bound(number, &first), None).await.expect("accepted");
    }
    store.enqueue(&at(1_000), &request(3), None).await.expect("accepted");
    let here = |place: &PlaceId| Owner { node: node(1), place: place.clone() };
    let any = rules(Slots::Unlimited);
    for number in [2, 3] {
        let claimed = store.claim_run(&request(number).id, &here(&first), 1_000, LEASE_MS, &any).await;
        claimed.expect("claiming works").expect("it is claimable");
    }
    store.report_node(&told_by(1, &first)).await.expect("it is told");
    assert_eq!(store.relocate(&first).await.expect("it is known"), 0, "it is where it was");
    assert_eq!(store.nodes().await.expect("they can be read").len(), 1);

    assert_eq!(store.relocate(&second).await.expect("it is brought here"), 3);
    assert_eq!(store.relocate(&second).await.expect("it is known"), 0, "once is enough");
    assert_eq!(store.nodes().await.expect("they can be read"), []);
    for live in store.live_runs().await.expect("they can be read") {
        assert_eq!(live.place.as_ref(), Some(&second), "whether it lives is for this folder to say");
    }
    let bound = store.claim_run(&request(1).id, &here(&second), 1_000, LEASE_MS, &any).await;
    assert!(bound.expect("claiming works").is_some(), "this folder is the only one there is");
    assert_eq!(store.run(&request(2).id).await.expect("it is there").state, RunState::Running);
    assert_eq!(store.check().await.expect("it can be looked at").problems, []);
}

#[tokio::test]
async fn a_database_of_many_folders_belongs_to_none_of_them() {
    let Some(fixture) = Fixture::postgres().await else { return };
    let store = fixture.open().await;
    let (first, second) = (PlaceId::new(1, 1), PlaceId::new(1, 2));
    store.report_node(&told_by(1, &first)).await.expect("it is told");
    store.enqueue(&at(1_000), &request(1), None).await.expect("accepted");
    let owner = Owner { node: node(1), place: first.clone() };
    store.claim(&owner, 1_000, LEASE_MS, &rules(Slots::Unlimited)).await.expect("claiming works");
    assert_eq!(store.relocate(&second).await.expect("nothing is done"), 0);
    assert_eq!(store.live_runs().await.expect("they can be read")[0].place, Some(first));
    assert_eq!(store.nodes().await.expect("they can be read").len(), 1);
}
