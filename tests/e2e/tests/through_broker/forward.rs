use cofferdam_e2e::Fixture;
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
