//! The repository of somebody who may start runs on a service, and nothing else: it is fetched from public hosts, with nothing
//! of the operator's own, unless the operator listed it.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cofferdam_e2e::Service;
use cofferdam_test_marks::once;
use serde_json::json;

use crate::through_broker::git::Forge;

/// A service of this machine that no caller is to reach, and how often somebody did.
fn canary() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("0.0.0.0:0").expect("a free port");
    let port = listener.local_addr().expect("a socket has an address").port();
    let reached = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&reached);
    std::thread::spawn(move || {
        while listener.accept().is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, reached)
}

/// Has everything that the fixture does done by a key that may start runs.
fn as_caller(forge: &mut Forge, service: &Service) {
    let made =
        forge.fixture.cofferdam(["keys", "create", "--name", "ci", "--scopes", "run,read", "--json"]).json();
    forge.fixture.set_env("COFFERDAM_API_KEY", made["key"].as_str().expect("a text"));
    forge.fixture.set_env("COFFERDAM_SERVER", &service.url());
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_does_not_have_the_node_fetch_from_its_own_machine() {
    let mut forge = Forge::open().await;
    let (port, reached) = canary();
    // A name that the machine's own resolver knows too, which git would ask.
    let machine = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
    forge.outside.names.set(&machine, &["127.0.0.1"]);
    let service = Service::start(&forge.fixture, &[]);
    as_caller(&mut forge, &service);
    let run = forge.fixture.run(&["--repo", &format!("https://{machine}:{port}/team/app.git")], "true");
    assert_eq!(run.outcome(), "failed/repository", "{}", run.stderr);
    assert!(run.stderr.contains("which is not a public address"), "{}", run.stderr);
    for address in ["ssh://git@git.test/team/app", "git://git.test/team/app", "git@git.test:team/app"] {
        let refused = forge.fixture.run(&["--repo", address], "true");
        assert_eq!(refused.code, Some(3), "{address}: {}", refused.stderr);
        assert!(refused.stderr.contains("this address is not allowed"), "{address}: {}", refused.stderr);
    }
    assert_eq!(reached.load(Ordering::SeqCst), 0, "the canary was reached");
    service.stop();
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_that_the_operator_listed_is_fetched_by_its_name_with_nothing_of_the_operators_own() {
    let mut forge = Forge::open().await;
    let host = format!("git.test:{}", forge.host.address().port());
    forge.set(&json!({
        "service": { "allowed_repos": [format!("https://{host}/team/*")] },
        "git": { "credentials": [{ "host": host, "path": "team/app", "token_env": "COFFERDAM_GIT_TOKEN" }] },
    }));
    // Whoever reads it would ask another host, and run a program of the operator's.
    let left = forge.fixture.path("asked");
    let config = format!(
        "[url \"https://127.0.0.1:1/\"]\n\tinsteadOf = https://\n[credential]\n\thelper = \"!touch {}\"\n",
        left.display()
    );
    std::fs::write(forge.fixture.home().join(".gitconfig"), config).expect("a new file");
    let service = Service::start(&forge.fixture, &[]);
    as_caller(&mut forge, &service);
    let run = forge.fixture.run(&["--repo", &forge.url("app")], "cat README.md");
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    assert!(forge.got_token() && !left.exists());
    // The same host, and a repository that there is no token for: the operator's helper is not asked either.
    let run = forge.fixture.run(&["--repo", &forge.url("other")], "true");
    assert_eq!(run.outcome(), "failed/repository", "{}", run.stderr);
    assert!(!left.exists());
    service.stop();
}
