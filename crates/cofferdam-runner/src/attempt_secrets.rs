//! What an attempt must not leave behind: which secrets it could have seen.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use cofferdam_core::{Policy, Redactor, SHORTEST_SECRET, SandboxId};
use cofferdam_store::Claimed;

use crate::node::Node;
use crate::redaction::{remembered, remembered_path};
use crate::workspace;

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
    let path = remembered_path(&node.home, &SandboxId::of(&claimed.attempt));
    if named && !path.exists() { AllowedValues::Forgotten } else { AllowedValues::Known }
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
    let path = remembered_path(&node.home, &id);
    let scratch = path.with_extension("partial");
    let write = |json: Vec<u8>| {
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&scratch)?;
        file.write_all(&json)?;
        fs::rename(&scratch, &path)
    };
    let written = serde_json::to_vec(&values).map_err(io::Error::from).and_then(write);
    written.map_err(|error| workspace::Error::writing(&path, error))
}

fn allowed(node: &Node, policy: &Policy) -> Vec<String> {
    let secret = policy.env.iter().filter(|name| !is_public(name));
    let values = secret.filter_map(|name| (node.env)(name));
    values.filter(|value| value.trim().chars().count() >= SHORTEST_SECRET).collect()
}

fn is_public(name: &str) -> bool {
    PUBLIC.contains(&name) || name.starts_with("LC_")
}
