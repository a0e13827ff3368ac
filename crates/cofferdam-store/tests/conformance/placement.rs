//! Who takes which run: priorities, lanes, roles, modes, places, and how many at once.

use std::num::NonZeroU32;

use cofferdam_core::{
    Mode, Outcome, PlaceId, Placement, Project, ProjectId, Role, RunId, RunRequest, Source,
};
use cofferdam_store::{ClaimRules, Owner, Slots, Store};

use crate::fixture::{LEASE_MS, at, left, node, owner, request};
use crate::on_every_store;

async fn enqueue(store: &Store, number: u128, change: impl FnOnce(&mut RunRequest)) -> RunId {
    let mut request = request(number);
    change(&mut request);
    store.enqueue(&at(1_000), &request, None).await.expect("it is accepted");
    request.id
}

fn placed(change: impl FnOnce(&mut Placement)) -> impl FnOnce(&mut RunRequest) {
    move |request| change(&mut request.placement)
}

async fn claim(store: &Store, rules: &ClaimRules) -> Option<RunId> {
    let claimed = store.claim(&owner(1), 2_000, LEASE_MS, rules).await.expect("claiming works");
    claimed.map(|claimed| claimed.attempt.run)
}

fn at_most(number: u32) -> Slots {
    Slots::AtMost(NonZeroU32::new(number).expect("more than none"))
}

on_every_store! {
    async fn the_highest_priority_is_claimed_first_and_among_equals_the_oldest(fixture: Fixture) {
        let store = fixture.open().await;
        let low = enqueue(&store, 1, placed(|p| p.priority = (-1).try_into().unwrap())).await;
        let first = enqueue(&store, 2, |_| {}).await;
        let second = enqueue(&store, 3, |_| {}).await;
        let high = enqueue(&store, 4, placed(|p| p.priority = 100.try_into().unwrap())).await;
        for expected in [high, first, second, low] {
            assert_eq!(claim(&store, &ClaimRules::default()).await, Some(expected));
        }
    }

    async fn of_one_lane_at_most_one_run_is_under_way(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 1..=3 {
            enqueue(&store, number, placed(|p| p.lane = Some("release".parse().unwrap()))).await;
        }
        let other = enqueue(&store, 4, placed(|p| p.lane = Some("docs".parse().unwrap()))).await;
        let rules = ClaimRules::default();
        let first = store.claim(&owner(1), 2_000, LEASE_MS, &rules).await.unwrap().unwrap();
        assert_eq!(first.attempt.run, request(1).id);
        assert_eq!(claim(&store, &rules).await, Some(other), "another lane does not wait");
        assert_eq!(claim(&store, &rules).await, None);
        store.finish(&first.lease, &Outcome::Succeeded, &left(&[]), 3_000).await.unwrap();
        assert_eq!(claim(&store, &rules).await, Some(request(2).id));
        assert_eq!(claim(&store, &rules).await, None);
    }

    async fn concurrent_claims_keep_to_the_lane(fixture: Fixture) {
        let stores = [fixture.open().await, fixture.open().await];
        for number in 1..=8 {
            enqueue(&stores[0], number, placed(|p| p.lane = Some("release".parse().unwrap()))).await;
        }
        let claims = (0..8_usize).map(|number| {
            let store = stores[number % 2].clone();
            tokio::spawn(async move {
                store.claim(&owner(number as u128), 2_000, LEASE_MS, &ClaimRules::default()).await.unwrap()
            })
        });
        let mut taken = 0;
        for claim in claims.collect::<Vec<_>>() {
            taken += usize::from(claim.await.unwrap().is_some());
        }
        assert_eq!(taken, 1);
    }

    async fn a_node_takes_its_roles_and_modes_only(fixture: Fixture) {
        let store = fixture.open().await;
        let tester = enqueue(&store, 1, placed(|p| p.role = Role::Tester)).await;
        let docker = enqueue(&store, 2, |request| request.policy.mode = Mode::Docker).await;
        let rules = |roles: &[Role], modes: &[Mode]| ClaimRules {
            roles: roles.to_vec(),
            modes: modes.to_vec(),
            ..ClaimRules::default()
        };
        assert_eq!(claim(&store, &rules(&[Role::Docser], &[])).await, None);
        assert_eq!(claim(&store, &rules(&[Role::Worker], &[Mode::Native])).await, None);
        assert_eq!(claim(&store, &rules(&[Role::Worker, Role::Docser], &[Mode::Docker])).await, Some(docker));
        assert_eq!(claim(&store, &rules(&Role::ALL, &[Mode::Native])).await, Some(tester));
    }

    async fn a_run_of_one_place_is_not_taken_in_another(fixture: Fixture) {
        let store = fixture.open().await;
        let here = enqueue(&store, 1, placed(|p| p.place = Some(owner(1).place))).await;
        let elsewhere = Owner { node: node(2), place: PlaceId::new(1, 2) };
        let rules = ClaimRules::default();
        assert_eq!(store.claim(&elsewhere, 2_000, LEASE_MS, &rules).await.unwrap(), None);
        assert_eq!(claim(&store, &rules).await, Some(here));
        assert_eq!(store.live_runs().await.unwrap()[0].place, Some(owner(1).place));
        let token = store.live_runs().await.unwrap()[0].token;
        store.adopt_for_recovery(&request(1).id, token, &elsewhere, 3_000, LEASE_MS).await.unwrap().unwrap();
        assert_eq!(store.live_runs().await.unwrap()[0].place, Some(elsewhere.place));
    }

    async fn a_project_has_at_most_as_many_runs_under_way_as_it_may(fixture: Fixture) {
        let store = fixture.open().await;
        let (own, plain) = (ProjectId::new(1, 1), ProjectId::new(1, 2));
        let project = Project {
            id: own.clone(),
            name: "own".parse().unwrap(),
            source: Source::Empty,
            max_concurrency: NonZeroU32::new(1),
        };
        assert!(store.create_project(&at(1_000), &project).await.unwrap());
        for number in 0..3 {
            enqueue(&store, 10 + number, placed(|p| p.project = Some(own.clone()))).await;
            enqueue(&store, 20 + number, placed(|p| p.project = Some(plain.clone()))).await;
        }
        let rules = ClaimRules { per_project: at_most(2), ..ClaimRules::default() };
        let mut taken = Vec::new();
        while let Some(run) = claim(&store, &rules).await {
            taken.push(run);
        }
        taken.sort();
        assert_eq!(taken, [request(10).id, request(20).id, request(21).id]);
    }

    async fn an_agent_has_at_most_as_many_runs_under_way_as_it_may(fixture: Fixture) {
        let store = fixture.open().await;
        for number in 0..3 {
            enqueue(&store, 10 + number, placed(|p| p.agent = Some("coder".parse().unwrap()))).await;
            enqueue(&store, 20 + number, placed(|p| p.agent = Some("writer".parse().unwrap()))).await;
        }
        let rules = ClaimRules {
            per_agent: at_most(1),
            agents: [("writer".parse().unwrap(), NonZeroU32::new(2).unwrap())].into(),
            ..ClaimRules::default()
        };
        let mut taken = Vec::new();
        while let Some(run) = claim(&store, &rules).await {
            taken.push(run);
        }
        taken.sort();
        assert_eq!(taken, [request(10).id, request(20).id, request(21).id]);
    }
}
