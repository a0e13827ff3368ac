//! What an attempt must not leave behind: which secrets it could have seen, and taking them out of its record.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use cofferdam_core::{AttemptRef, NewEvent, Outcome, Policy, Redactor, SHORTEST_SECRET, SandboxId, Seal};
use cofferdam_store::Claimed;
use serde_json::Value;

use crate::home::Home;
use crate::node::Node;
use crate::workspace;

/// In the workspace's own folder, which the agent does not see and which is gone with the attempt.
const FILE: &str = "allowed.json";

/// Allowed variables whose values are no secrets: redacting a path like `/usr/bin:/bin` or `en_US.UTF-8` out of
/// every diff would help nobody.
const PUBLIC: [&str; 17] = [
    "COLORTERM",
    "EDITOR",
    "HOME",
    "HOSTNAME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NODE_ENV",
    "PAGER",
    "PATH",
    "PWD",
    "RUST_LOG",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
];

/// The redactor of an attempt: what the node knows, and the values that the agent is allowed to see.
pub(crate) fn redactor_of(node: &Node, claimed: &Claimed) -> Redactor {
    if node.is_without("redaction") {
        return Redactor::default();
    }
    let allowed = allowed(node, &claimed.request.policy);
    let remembered = remembered(&node.home, &SandboxId::of(&claimed.attempt));
    node.redactor.with(allowed.iter().chain(&remembered).map(String::as_str))
}

/// Whether the values that the agent may have seen are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedValues {
    /// They are, and the attempt's redactor has them.
    Known,
    /// The process that knew them is dead and had not written them down.
    Forgotten,
}

/// Whether the redactor of an attempt that a dead process has left has all that it should have.
pub(crate) fn values_left(node: &Node, claimed: &Claimed) -> AllowedValues {
    let named = claimed.request.policy.env.iter().any(|name| !is_public(name));
    let path = path(&node.home, &SandboxId::of(&claimed.attempt));
    if named && !path.exists() { AllowedValues::Forgotten } else { AllowedValues::Known }
}

/// The same for a broker, which may be in another process than the attempt's node.
pub(crate) fn with_remembered(redactor: &Redactor, home: &Home, attempt: &AttemptRef) -> Redactor {
    redactor.with(remembered(home, &SandboxId::of(attempt)).iter().map(String::as_str))
}

/// Writes down what the agent is allowed to see, before it sees it.
///
/// The attack: the process dies, and the next command, typed in a shell without these variables, collects what
/// the agent printed. Until the attempt has ended these values are in the sandbox on the same disk anyway.
pub(crate) fn remember(node: &Node, claimed: &Claimed) -> Result<(), workspace::Error> {
    let id = SandboxId::of(&claimed.attempt);
    let mut values = remembered(&node.home, &id);
    values.extend(allowed(node, &claimed.request.policy));
    values.sort_unstable();
    values.dedup();
    if values.is_empty() {
        return Ok(());
    }
    let path = path(&node.home, &id);
    let scratch = path.with_extension("partial");
    let write = |json: Vec<u8>| {
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&scratch)?;
        file.write_all(&json)?;
        fs::rename(&scratch, &path)
    };
    let written = serde_json::to_vec(&values).map_err(io::Error::from).and_then(write);
    written.map_err(|error| workspace::Error::writing(&path, error))
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

fn allowed(node: &Node, policy: &Policy) -> Vec<String> {
    let secret = policy.env.iter().filter(|name| !is_public(name));
    let values = secret.filter_map(|name| (node.env)(name));
    values.filter(|value| value.trim().chars().count() >= SHORTEST_SECRET).collect()
}

fn is_public(name: &str) -> bool {
    PUBLIC.contains(&name) || name.starts_with("LC_")
}

fn remembered(home: &Home, id: &SandboxId) -> Vec<String> {
    let content = fs::read(path(home, id)).unwrap_or_default();
    serde_json::from_slice(&content).unwrap_or_default()
}

fn path(home: &Home, id: &SandboxId) -> PathBuf {
    home.workspaces().join(id.to_string()).join(FILE)
}
