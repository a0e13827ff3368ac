//! The record in PostgreSQL and files in a bucket: what one state folder did, another one reads.

use std::io::{Read, Write};
use std::net::TcpStream;

use cofferdam_e2e::{Database, Fixture, bucket_server};
use cofferdam_test_marks::once;
use serde_json::json;

fn on(database: &Database) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.set_env("COFFERDAM_STORE_URL", &database.url());
    fixture
}

/// Makes a bucket, and says so in the settings of a state folder.
fn with_bucket(fixture: &mut Fixture, server: &str, bucket: &str) {
    let host = server.strip_prefix("http://").expect("a plain address");
    let mut stream = TcpStream::connect(host).expect("the server answers");
    let request =
        format!("PUT /{bucket} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it takes requests");
    stream.read_to_string(&mut String::new()).expect("an answer");
    let settings = json!({ "artifacts": { "url": format!("s3://{bucket}/runs"), "endpoint": server } });
    std::fs::create_dir_all(fixture.state()).expect("a new folder");
    std::fs::write(fixture.state().join("settings.json"), settings.to_string()).expect("a new file");
    fixture.set_env("AWS_ACCESS_KEY_ID", "key-id");
    fixture.set_env("AWS_SECRET_ACCESS_KEY", "secret-of-the-bucket");
}

#[once]
#[test]
fn a_run_is_on_record_in_postgresql_and_no_file_is_made() {
    let Some(database) = Database::create() else { return };
    let fixture = on(&database);
    let finished = fixture.run(&[], "echo more >> README.md; echo said");
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert!(finished.diff().contains("+more"), "{}", finished.diff());
    let run = finished.run_id();
    let events = fixture.events(&run);
    assert!(events.iter().zip(1..).all(|(event, seq)| event["seq"] == seq), "numbered without gaps");
    assert!(!fixture.state().join("cofferdam.db").exists());
    let checked = fixture.cofferdam(["db", "check", "--json"]);
    assert_eq!((checked.code, &checked.json()["problems"]), (Some(0), &json!([])), "{}", checked.stderr);
    let password =
        database.url().split(':').nth(2).and_then(|rest| rest.split('@').next()).map(str::to_owned);
    let shown = fixture.cofferdam(["sandbox", "show"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let password = password.expect("the server of the tests has one");
    assert!(shown.contains("store.url") && !shown.contains(&password), "{shown}");
}

#[once]
#[test]
fn a_run_goes_on_when_every_connection_is_cut() {
    let Some(database) = Database::create() else { return };
    let fixture = on(&database);
    let script = "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.2; done; echo more >> README.md";
    let running = fixture.start(&[], script);
    let finished = std::thread::scope(|scope| {
        scope.spawn(|| (0..20).for_each(|_| database.cut_connections()));
        running.finish()
    });
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    assert!(finished.diff().contains("+more"), "{}", finished.diff());
    let printed = fixture.printed(&finished.run_id());
    let lines: Vec<String> = (1..=8).map(|number| format!("line {number}")).collect();
    assert_eq!(printed, lines, "nothing is lost and nothing is there twice");
    assert_eq!(fixture.cofferdam(["db", "check"]).code, Some(0));
}

#[once]
#[test]
fn what_a_run_left_is_read_from_another_state_folder() {
    let (Some(database), Some(server)) = (Database::create(), bucket_server()) else { return };
    let bucket = format!("e2e-{}", std::process::id());
    let (mut first, mut second) = (on(&database), on(&database));
    with_bucket(&mut first, &server, &bucket);
    with_bucket(&mut second, &server, &bucket);
    let finished = first.run(&[], "echo more >> README.md; echo said: secret-of-the-''bucket");
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let run = finished.run_id();
    let read = second.cofferdam(["runs", "diff", &run]);
    assert_eq!(read.code, Some(0), "{}", read.stderr);
    assert!(String::from_utf8_lossy(&read.stdout).contains("+more"));
    assert_eq!(second.printed(&run), ["said: [redacted]"], "keys are taken out of what is said");
    assert_eq!(second.cofferdam(["runs", "rm", &run]).code, Some(0));
    assert_eq!(first.cofferdam(["runs", "diff", &run]).code, Some(2), "it is gone for both");
}

#[once]
#[test]
fn a_bucket_without_keys_is_refused_with_what_to_type() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.state()).expect("a new folder");
    let settings = json!({ "artifacts": { "url": "s3://artifacts" } });
    std::fs::write(fixture.state().join("settings.json"), settings.to_string()).expect("a new file");
    let refused = fixture.run(&[], "true");
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("AWS_ACCESS_KEY_ID"), "{}", refused.stderr);
}
