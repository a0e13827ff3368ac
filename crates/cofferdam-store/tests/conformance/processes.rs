//! The processes of services, and what is wanted of them.

use cofferdam_core::{Action, DesiredState, ProcessName, ProcessStatus};
use cofferdam_store::{ProcessReport, ServiceRecord, ServiceReport};

use crate::fixture::{entries, mandate, node, owner};
use crate::on_every_store;

fn service(number: u128, seen_at_ms: u64) -> ServiceRecord {
    ServiceRecord {
        id: node(number),
        place: owner(1).place,
        started_at_ms: 1_000,
        seen_at_ms,
        report: ServiceReport {
            name: "main".to_owned(),
            host: "builder".to_owned(),
            listen: "127.0.0.1:8787".to_owned(),
            works: true,
        },
    }
}

on_every_store! {
    async fn a_service_is_known_by_what_it_told_last(fixture: Fixture) {
        let store = fixture.open().await;
        store.report_service(&service(1, 2_000)).await.unwrap();
        store.report_service(&service(1, 3_000)).await.unwrap();
        assert_eq!(store.services().await.unwrap(), [service(1, 3_000)]);
        store.remove_service(&node(1)).await.unwrap();
        assert_eq!(store.services().await.unwrap(), []);
    }

    async fn what_is_wanted_of_a_process_is_one_services_own_and_audited_once(fixture: Fixture) {
        let store = fixture.open().await;
        let name = ProcessName::Dispatcher;
        store.add_process(&node(1), name).await.unwrap();
        store.add_process(&node(2), name).await.unwrap();
        let stop = mandate("ci", Action::StopProcess, "dispatcher", 5_000);
        let wanted = [(name, DesiredState::Stopped)];
        assert!(store.set_desired(&stop, &node(1), &wanted).await.unwrap());
        assert!(!store.set_desired(&stop, &node(1), &wanted).await.unwrap(), "it is wanted already");
        store.add_process(&node(1), name).await.unwrap();
        let desired = async |service| {
            let found = store.processes(&node(service)).await.unwrap();
            (found[0].desired, found[0].asked)
        };
        assert_eq!(desired(1).await, (DesiredState::Stopped, 1), "a supervisor that comes back changes nothing");
        assert_eq!(desired(2).await, (DesiredState::Running, 0));
        assert_eq!(entries(&store).await.len(), 1);
    }

    async fn a_report_changes_nothing_that_is_wanted(fixture: Fixture) {
        let store = fixture.open().await;
        let name: ProcessName = "worker-3".parse().unwrap();
        let start = mandate("ci", Action::StartProcess, "worker-3", 5_000);
        assert!(store.set_desired(&start, &node(1), &[(name, DesiredState::Running)]).await.unwrap());
        let report = ProcessReport {
            heard: 1,
            status: ProcessStatus::Running,
            pid: Some(17),
            log_path: "/logs/worker-3-main.log".to_owned(),
            node: Some(node(7)),
            ..ProcessReport::default()
        };
        store.report_process(&node(1), name, &report).await.unwrap();
        let found = store.processes(&node(1)).await.unwrap();
        assert_eq!((found.len(), found[0].name, found[0].asked), (1, name, 1));
        assert_eq!(found[0].report, Some(report));
    }
}
