use cofferdam_e2e::{Fixture, HostServices};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

/// A service that is no HTTP: it speaks first.
async fn greeter() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a socket has an address").to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"220 a service outside\n").await;
        }
    });
    address
}

const ASK: &str = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/5432 && head -n 1 <&3'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forwarded_service_is_at_the_sandboxs_own_loopback() {
    let fixture = Fixture::new();
    let address = greeter().await;
    let run = fixture.run(&["--forward", &format!("5432={address}")], ASK);
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    assert_eq!(fixture.printed(&run.run_id()), ["220 a service outside"]);
    let events = fixture.events(&run.run_id());
    let told = events.iter().find(|event| event["type"] == "egress.allowed").expect("an event");
    assert_eq!(told["data"]["kind"], "forward");
    assert!(told["data"]["target"].as_str().is_some_and(|target| target.contains(&address)), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_is_not_forwarded_is_not_there() {
    let fixture = Fixture::new();
    let address = greeter().await;
    let port = address.rsplit(':').next().unwrap();
    let direct = ASK.replace("5432", port);
    // The same port outside is another machine's for the sandbox.
    let run = fixture.run(&["--network", "sealed"], &direct);
    assert_eq!(run.outcome(), "failed/agent", "{}", run.stderr);
    assert!(fixture.printed(&run.run_id()).is_empty());
}

#[test]
fn section_6_services_of_the_settings_are_where_the_callers_own_addresses_say() {
    let services = HostServices::start();
    let mut fixture = Fixture::new();
    services.name_to(&mut fixture);
    // Each variable is passed because it is listed, as every one.
    let settings = json!({ "sandbox": {
        "forwards": services.forwards(), "env_allowlist": ["DATABASE_URL", "REDIS_URL"],
    } });
    std::fs::create_dir(fixture.state()).expect("a new folder");
    std::fs::write(fixture.state().join("settings.json"), settings.to_string()).expect("a new file");
    let run = fixture.run(&["--network", "sealed", "--forward", "db"], HostServices::ASK);
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    assert_eq!(fixture.printed(&run.run_id()), HostServices::FOUND);

    // One is for every sealed run, and the other for whoever asks.
    let run = fixture.run(&["--network", "sealed"], HostServices::ASK);
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    assert!(fixture.printed(&run.run_id()).iter().any(|line| line == HostServices::FOUND[1]));
    assert!(!fixture.printed(&run.run_id()).iter().any(|line| line == HostServices::FOUND[0]));

    let unknown = fixture.run(&["--forward", "queue"], "true");
    assert_eq!(unknown.code, Some(2), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("no service `queue`") && unknown.stderr.contains("cache, db"));
}

#[test]
fn a_file_that_came_with_a_repository_forwards_nothing() {
    let fixture = Fixture::new();
    let forwards = json!({ "db": { "port": 5432, "target": "127.0.0.1:5432", "always": true } });
    fixture.write(".cofferdam/settings.json", json!({ "sandbox": { "forwards": forwards } }).to_string());
    let run = fixture.run(&["--network", "sealed"], ASK);
    assert_eq!(run.outcome(), "failed/agent", "{}", run.stderr);
    assert!(run.stderr.contains("left out: sandbox.forwards.db."), "{}", run.stderr);
    let asked = fixture.run(&["--forward", "db"], ASK);
    assert_eq!(asked.code, Some(2), "{}", asked.stderr);
}
