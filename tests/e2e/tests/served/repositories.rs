//! Repositories that a service cannot fetch: that is the caller's or the host's doing, and no error of the service.

use std::net::TcpListener;
use std::process::Command;

use cofferdam_e2e::{Fixture, Service};
use cofferdam_test_marks::once;
use serde_json::{Value, json};

/// The status and the body of `POST /execute` for a repository.
fn execute(service: &Service, repo: &str) -> (u16, Value) {
    let body = json!({ "task": "Look at it", "repo": repo });
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
        let (answered, body) = execute(&service, repo);
        assert_eq!((answered, body["error_code"].as_str()), (status, Some(code)), "{body:#}");
        assert_eq!(body["details"]["outcome"]["class"], class, "{body:#}");
        assert!(body["details"]["outcome"]["hint"].is_string(), "{body:#}");
    }
    service.stop();
}
