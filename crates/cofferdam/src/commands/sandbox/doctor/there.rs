//! The same asked of a service: every node looks at its own machine.

use cofferdam_api::{Client, DoctorQuery, NodeDoctor};
use serde_json::{Value, json};

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::records::client_failure;
use crate::{sanitize, terminal};

/// Asks, and shows what each node found.
pub(super) async fn run(client: &Client, mode: Option<&str>, json: bool) -> Result<ExitCode, Failure> {
    let query = DoctorQuery { mode: mode.map(str::to_owned) };
    let found = client.doctor(&query).await.map_err(|error| client_failure(&error))?;
    terminal::write_answer(json, || json!(found), || found.nodes.iter().map(text).collect())?;
    let would_start = |node: &NodeDoctor| {
        node.report.as_ref().is_some_and(|report| report["would_start"]["command"] == true)
    };
    Ok(if found.nodes.iter().any(would_start) { ExitCode::Succeeded } else { ExitCode::Refused })
}

fn text(node: &NodeDoctor) -> String {
    let word = |value: &Value| sanitize::line(value.as_str().unwrap_or_default());
    let mut text = format!("node {} on {}\n", sanitize::line(&node.name), sanitize::line(&node.host));
    let Some(report) = &node.report else {
        text.push_str("  it did not answer in time\n");
        return text;
    };
    for finding in report["findings"].as_array().into_iter().flatten() {
        let (status, name) = (word(&finding["status"]), word(&finding["name"]));
        text.push_str(&format!("  {status:<8} {name:<16} {}\n", word(&finding["detail"])));
        if let Some(remedy) = finding["remedy"].as_str() {
            text.push_str(&format!("  {:<25} > {}\n", "", sanitize::line(remedy)));
        }
    }
    text
}
