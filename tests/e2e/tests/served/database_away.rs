//! The database goes away for a while, and comes back.

use std::time::Duration;

use cofferdam_api::{CreateRunRequest, ErrorCode, HealthStatus, MountRequest, RunOptions};
use cofferdam_core::{EventType, RunState};
use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{Database, Fixture, Marks, Service};
use cofferdam_test_marks::once;

const AWAY: Duration = Duration::from_secs(30);
const IN_TIME: Duration = Duration::from_secs(120);
/// What the run says while the database is away and after.
const LINES: usize = 40;

#[once]
#[test]
fn a_database_that_is_away_for_a_while_loses_nothing_and_is_told_by_health() {
    let Some(database) = Database::create() else { return };
    let mut fixture = Fixture::without_repository();
    fixture.set_env("COFFERDAM_STORE_URL", &database.url());
    let marks = Marks::new(&fixture);
    let service = Service::start(&fixture, &[]);
    let client = service.client();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let says = marks.script(&format!("for i in $(seq {LINES}); do echo line $i; sleep 1; done"));
    let mount = MountRequest { path: marks.folder().display().to_string(), writable: true };
    let request = CreateRunRequest {
        command: Some(vec!["sh".to_owned(), "-c".to_owned(), says]),
        options: RunOptions { mounts: vec![mount], ..RunOptions::default() },
        ..CreateRunRequest::default()
    };
    let run = runtime.block_on(client.create_run(&request, None)).expect("it is accepted").id;
    wait_until(IN_TIME, "the agent works", || marks.starts() == 1);

    let is_well = || {
        let health = runtime.block_on(client.health()).expect("health is answered in any case");
        health.status == HealthStatus::Healthy
    };
    wait_until(IN_TIME, "all is well", is_well);
    database.close();
    wait_until(IN_TIME, "health tells of it", || !is_well());
    let refused = runtime.block_on(client.create_run(&request, None)).expect_err("nothing is accepted now");
    assert_eq!(refused.code(), Some(ErrorCode::StoreUnavailable), "{refused}");
    std::thread::sleep(AWAY);
    assert!(!is_well(), "it is still away");
    database.open();
    wait_until(IN_TIME, "all is well again", is_well);

    let ended = || runtime.block_on(client.run(&run)).is_ok_and(|run| run.state.is_final());
    wait_until(IN_TIME, "the run ends", ended);
    let record = runtime.block_on(client.run(&run)).expect("it is on record");
    assert_eq!((record.state, record.attempts), (RunState::Succeeded, 1), "{record:?}");
    assert_eq!((marks.starts(), marks.ends()), (1, 1), "no work was repeated");
    let events = runtime.block_on(async {
        let mut stream = client.stream(&run, 0);
        let mut events = Vec::new();
        while let cofferdam_api::client::Next::Event(event) = stream.next().await.expect("events can be read")
        {
            events.push(event);
        }
        events
    });
    let said: Vec<&str> = events
        .iter()
        .filter(|event| event.known_type() == Some(EventType::AgentMessage))
        .filter_map(|event| event.data["text"].as_str())
        .collect();
    let expected: Vec<String> = (1..=LINES).map(|line| format!("line {line}")).collect();
    assert_eq!(said, expected, "every line once and in order, also those of the time without a record");
    service.stop();
}
