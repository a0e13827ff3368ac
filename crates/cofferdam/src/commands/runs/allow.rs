//! `cofferdam runs allow`: lets a live run reach one more place.

use cofferdam_core::{Network, RunId, ValueError, allow_rules};
use serde_json::json;

use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::records::Records;
use crate::{settings, terminal};

/// Adds to what the broker lets through.
pub(crate) async fn run(
    records: &Records,
    id: &RunId,
    texts: &[String],
    caller: &crate::caller::Caller,
    json: bool,
) -> Result<ExitCode, Failure> {
    let record = records.run(id).await?;
    if record.state.is_final() {
        return Err(Failure::new(ExitCode::Refused, format!("{id} has ended already: {}", record.state))
            .hint(format!("type `cofferdam runs show {id}` to see how")));
    }
    let network = record.request.policy.network;
    if network != Network::Sealed {
        return Err(Failure::new(
            ExitCode::Refused,
            format!(
                "{id} has the network `{network}`, and an allow-list means something to a sealed run only"
            ),
        )
        .hint("start it with `--network sealed`"));
    }
    let settings = settings::read(caller)?;
    let mut added = Vec::new();
    for text in texts {
        let named = |error: ValueError| UsageError::new(format!("--allow: {}", error.problem), error.hint);
        for rule in allow_rules(text, &settings.egress).map_err(named)? {
            if records.allow(id, &rule).await? {
                added.push(rule);
            }
        }
    }
    if json {
        terminal::write_json(&json!({ "run": id, "added": added }))?;
    } else {
        let names: Vec<String> = added.iter().map(ToString::to_string).collect();
        let what = if names.is_empty() { "nothing new".to_owned() } else { names.join(", ") };
        terminal::write_stderr(&format!("cofferdam: {id} may now reach {what}\n"));
    }
    Ok(ExitCode::Succeeded)
}
