//! Taking secrets out of what is recorded.

use std::fs;
use std::io;
use std::path::PathBuf;

use cofferdam_core::{AttemptRef, NewEvent, Outcome, Redactor, SandboxId, Seal};
use serde_json::Value;

use crate::home::Home;

/// In the workspace's own folder, which the agent does not see and which is gone with the attempt.
const FILE: &str = "allowed.json";

/// The redactor of an attempt for a broker, which may be in another process than the attempt's node.
pub(crate) fn with_remembered(redactor: &Redactor, home: &Home, attempt: &AttemptRef) -> Redactor {
    redactor.with(remembered(home, &SandboxId::of(attempt)).iter().map(String::as_str))
}

/// Redacts events, in place.
pub(crate) fn redact_events(redactor: &Redactor, events: &mut [NewEvent]) {
    for event in events {
        redactor.value(&mut event.data);
    }
}

/// Redacts what is said of an end.
pub(crate) fn redact_outcome(redactor: &Redactor, mut outcome: Outcome) -> Outcome {
    match &mut outcome {
        Outcome::Failed { message, hint, .. } => {
            redactor.string(message);
            hint.iter_mut().for_each(|hint| redactor.string(hint));
        }
        Outcome::Succeeded | Outcome::Cancelled | Outcome::TimedOut { .. } => {}
    }
    outcome
}

/// Redacts a seal as it is recorded: a mount may lie at a path that is an allowed value.
pub(crate) fn redact_seal(redactor: &Redactor, seal: &Seal) -> Seal {
    let mut value = serde_json::to_value(seal).unwrap_or(Value::Null);
    redactor.value(&mut value);
    // A number that looks like a secret becomes text, which is no seal; measured numbers are no secrets.
    serde_json::from_value(value).unwrap_or_else(|_| seal.clone())
}

/// Redacts anything that has a JSON form, and says whether something was taken out.
pub(crate) fn redact_data<T>(redactor: &Redactor, data: &T) -> io::Result<(T, bool)>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let before = serde_json::to_value(data).map_err(io::Error::from)?;
    let mut after = before.clone();
    redactor.value(&mut after);
    let has_redacted = after != before;
    Ok((serde_json::from_value(after).map_err(io::Error::from)?, has_redacted))
}

/// What was written down of an attempt that the agent is allowed to see.
pub(crate) fn remembered(home: &Home, id: &SandboxId) -> Vec<String> {
    let content = fs::read(remembered_path(home, id)).unwrap_or_default();
    serde_json::from_slice(&content).unwrap_or_default()
}

/// Where that is written down.
pub(crate) fn remembered_path(home: &Home, id: &SandboxId) -> PathBuf {
    home.workspaces().join(id.to_string()).join(FILE)
}
