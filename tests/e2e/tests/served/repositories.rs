//! Repositories that a service cannot fetch: that is the caller's or the host's doing, and no error of the service.

use std::net::TcpListener;
use std::process::Command;

use cofferdam_e2e::{Fixture, Service};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

use crate::through_broker::git::Forge;

/// The status and the body of `POST /execute` for a repository.
fn execute(service: &Service, repo: &str, reference: Option<&str>) -> (u16, Value) {
    let mut body = json!({ "task": "Look at it", "repo": repo });
    if let Some(reference) = reference {
        body["ref"] = json!(reference);
    }
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "-X", "POST", &format!("{}/execute", service.url())])
        .args(["-H", "Content-Type: application/json", "-H", &format!("X-API-Key: {}", service.key())])
        .args(["-w", "\n%{http_code}", "-d", &body.to_string()])
        .output()
        .expect("curl is installed");
    let text = String::from_utf8(output.stdout).expect("JSON is text");
    let (body, status) = text.rsplit_once('\n').expect("a line of its own for the status");
    (status.parse().expect("a number"), serde_json::from_str(body).expect("JSON"))
}

#[once]
#[test]
fn a_repository_that_cannot_be_fetched_is_no_error_of_the_service() {
    let Some(agents) = cofferdam_e2e::Agents::find() else { return };
    let mut fixture = Fixture::new();
    fixture.set_env("PATH", agents.path().to_str().expect("folders with plain names"));
    fixture.set_env("ANTHROPIC_API_KEY", "sk-ant-the-key-of-the-operator");
    let service = Service::start(&fixture, &[]);
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let closed = format!("https://{}/team/app.git", closed.expect("a free port"));
    for (repo, status, code, class) in [
        ("https://nowhere.invalid/team/app", 422, "REPOSITORY_REFUSED", "repository"),
        (closed.as_str(), 502, "REPOSITORY_UNREACHABLE", "repository_host"),
    ] {
        let (answered, body) = execute(&service, repo, None);
        assert_eq!((answered, body["error_code"].as_str()), (status, Some(code)), "{body:#}");
        assert_eq!(body["details"]["outcome"]["class"], class, "{body:#}");
        assert!(body["details"]["outcome"]["hint"].is_string(), "{body:#}");
    }
    service.stop();
}

/// The host answers: what is wrong is what was asked of it.
#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ref_that_is_not_there_and_a_fetch_that_is_refused_are_the_callers_to_mend() {
    let Some(agents) = cofferdam_e2e::Agents::find() else { return };
    let mut forge = Forge::open().await;
    let host = forge.host.address().to_string();
    forge.set_credentials(&json!([
        { "host": host, "path": "team/app", "token_env": "COFFERDAM_GIT_TOKEN" },
    ]));
    forge.fixture.set_env("PATH", agents.path().to_str().expect("folders with plain names"));
    forge.fixture.set_env("ANTHROPIC_API_KEY", "sk-ant-the-key-of-the-operator");
    let service = Service::start(&forge.fixture, &[]);
    for (name, reference, words) in [
        ("app", Some("no-such-branch"), "no-such-branch"),
        // There is no token for this one, and its host wants one.
        ("other", None, "could not read Username"),
    ] {
        let repo = format!("https://{host}/team/{name}.git");
        let (answered, body) = execute(&service, &repo, reference);
        let code = body["error_code"].as_str();
        assert_eq!((answered, code), (422, Some("REPOSITORY_REFUSED")), "{body:#}");
        assert_eq!(body["details"]["outcome"]["class"], "repository", "{body:#}");
        let message = body["details"]["outcome"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{body:#}");
    }
    service.stop();
}
