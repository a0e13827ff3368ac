//! Calls of the system routes.

use std::process::Command;

use cofferdam_e2e::Service;
use serde_json::Value;

/// The status and the body of a call with the operator's key.
pub(super) fn call(service: &Service, method: &str, path: &str, body: Option<&str>) -> (u16, Value) {
    let mut curl = Command::new("curl");
    curl.args([
        "--silent",
        "--show-error",
        "-X",
        method,
        &format!("{}/system/processes{path}", service.url()),
    ])
    .args(["-H", &format!("X-API-Key: {}", service.key()), "-w", "\n%{http_code}"]);
    if let Some(body) = body {
        curl.args(["-H", "Content-Type: application/json", "-d", body]);
    }
    let output = curl.output().expect("curl is installed");
    let text = String::from_utf8(output.stdout).expect("JSON is text");
    let (body, status) = text.rsplit_once('\n').expect("a line of its own for the status");
    (status.parse().expect("a number"), serde_json::from_str(body).unwrap_or_else(|_| panic!("JSON: {text}")))
}

pub(super) fn get(service: &Service, path: &str) -> Value {
    let (status, body) = call(service, "GET", path, None);
    assert_eq!(status, 200, "{body:#}");
    body
}

pub(super) fn post(service: &Service, path: &str, body: &str) -> Value {
    let (status, answer) = call(service, "POST", path, Some(body));
    assert!(matches!(status, 200 | 202), "{path}: {status} {answer:#}");
    answer
}

/// What a stream says within a few seconds.
pub(super) fn stream(service: &Service, path: &str) -> String {
    let output = Command::new("curl")
        .args(["--silent", "-N", "--max-time", "3", "-H", "Accept: text/event-stream"])
        .args(["-H", &format!("X-API-Key: {}", service.key())])
        .arg(format!("{}/system/processes{path}", service.url()))
        .output()
        .expect("curl is installed");
    String::from_utf8(output.stdout).expect("frames are text")
}
