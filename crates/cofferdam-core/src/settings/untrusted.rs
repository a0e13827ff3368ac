//! What a settings file may do that came with a repository and that nobody has looked at.
//!
//! It may make values stricter and nothing else. Whoever writes a repository would otherwise choose the program that
//! starts containers, the image, the address that keys are sent to, or no sandbox at all.

use serde_json::Value;

use super::key_path::KeyPath;
use super::layers::{Effective, Layer};
use super::{AllowRule, SandboxSettings, Settings, StoreUrl};
use crate::egress::preset;
use crate::policy::Network;

/// What an untrusted file may do with one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Make it lower.
    Lower,
    /// Make it lower, where 0 is no limit.
    LowerThanNone,
    /// Close the network further.
    Close,
    /// Leave out members of the list.
    Shorten,
    /// Add members to the list.
    Lengthen,
    /// Nothing, and it says nothing.
    Ignore,
    /// Nothing.
    Never,
}

/// A key that an untrusted file sets in vain.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// The key.
    pub path: KeyPath,
    /// What it would be set to.
    pub value: Value,
}

impl Rule {
    /// The rule of a key. What is not named here is refused, so that a new key is.
    pub(super) fn of(keys: &[&str]) -> Self {
        match keys {
            ["sandbox", "timeout_seconds" | "max_attempts"]
            | ["sandbox", "limits", _]
            | ["sandbox", "docker" | "apple", "memory" | "cpus" | "pids_limit"] => Self::Lower,
            ["sandbox", "max_concurrency"] => Self::LowerThanNone,
            ["sandbox", "network"] => Self::Close,
            ["sandbox", "env_allowlist"] | ["sandbox", "mask", "show"] | ["egress", "sets", _] => {
                Self::Shorten
            }
            ["sandbox", "mask", "hide"] => Self::Lengthen,
            ["$schema"] => Self::Ignore,
            _ => Self::Never,
        }
    }

    /// In words, for the reference.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Lower | Self::LowerThanNone => "may lower it",
            Self::Close => "may close it further",
            Self::Shorten => "may shorten it",
            Self::Lengthen => "may add to it",
            Self::Ignore | Self::Never => "no effect",
        }
    }
}

/// What is left of an untrusted layer over `base`: what makes a value stricter. The rest is named.
#[must_use]
pub fn tighten(base: &Effective, layer: &Layer) -> (Layer, Vec<Refused>) {
    let (now, asked) = (&base.settings, &layer.alone());
    let mut stricter = Layer::default();
    let mut refused = Vec::new();
    for (path, value, origin) in layer.leaves() {
        let refuse = |value: &Value| Refused { path: path.clone(), value: shown(path, value) };
        let keys = path.keys();
        match Rule::of(&keys) {
            Rule::Ignore => {}
            Rule::Never => refused.push(refuse(value)),
            Rule::Lower | Rule::LowerThanNone | Rule::Close => match strictness(&keys, asked, now) {
                Strictness::Same => {}
                Strictness::Stricter => stricter.set(path.clone(), value.clone(), origin.clone()),
                Strictness::Looser => refused.push(refuse(value)),
            },
            Rule::Shorten | Rule::Lengthen => {
                let listed = |settings: &Settings| list(&keys, settings);
                let (before, wanted) = (listed(now), listed(asked));
                let new: Vec<_> = wanted.iter().filter(|one| !before.contains(one)).cloned().collect();
                let after: Vec<_> = match Rule::of(&keys) {
                    Rule::Lengthen => before.iter().chain(&new).cloned().collect(),
                    _ => before.iter().filter(|one| wanted.contains(one)).cloned().collect(),
                };
                if after.len() != before.len() {
                    stricter.set(path.clone(), Value::from(after), origin.clone());
                }
                if Rule::of(&keys) == Rule::Shorten && !new.is_empty() {
                    refused.push(refuse(&Value::from(new)));
                }
            }
        }
    }
    (stricter, refused)
}

/// A value as it may be printed.
fn shown(path: &KeyPath, value: &Value) -> Value {
    match (path.keys().as_slice(), value) {
        (["store", "url" | "listen_url"], Value::String(text)) => Value::String(
            text.parse::<StoreUrl>().map_or_else(|error| error.to_string(), |url| url.to_string()),
        ),
        _ => value.clone(),
    }
}

enum Strictness {
    Same,
    Stricter,
    Looser,
}

fn strictness(keys: &[&str], asked: &Settings, now: &Settings) -> Strictness {
    let (asked, now) = (measure(keys, &asked.sandbox), measure(keys, &now.sandbox));
    match asked.cmp(&now) {
        std::cmp::Ordering::Less => Strictness::Stricter,
        std::cmp::Ordering::Equal => Strictness::Same,
        std::cmp::Ordering::Greater => Strictness::Looser,
    }
}

/// How loose a value is.
fn measure(keys: &[&str], sandbox: &SandboxSettings) -> u64 {
    let limits = sandbox.limits.limits();
    let docker = (sandbox.docker.memory, sandbox.docker.cpus, sandbox.docker.pids_limit);
    let apple = (sandbox.apple.memory, sandbox.apple.cpus, sandbox.apple.pids_limit);
    match keys {
        ["sandbox", "timeout_seconds"] => u64::from(sandbox.timeout_seconds.count()),
        ["sandbox", "max_attempts"] => u64::from(sandbox.max_attempts.count()),
        ["sandbox", "max_concurrency"] => match sandbox.max_concurrency.count() {
            0 => u64::MAX,
            most => u64::from(most),
        },
        // Where nothing is set, programs have none at all, so that anything else would open something.
        ["sandbox", "network"] => match sandbox.network {
            Some(Network::None) => 0,
            None => 1,
            Some(Network::Sealed) => 2,
            Some(Network::Open) => 3,
        },
        ["sandbox", "limits", "memory"] => limits.memory_bytes,
        ["sandbox", "limits", "cpus"] => u64::from(limits.cpus_milli),
        ["sandbox", "limits", "pids"] => u64::from(limits.pids),
        ["sandbox", "limits", "open_files"] => limits.open_files,
        ["sandbox", "limits", "output"] => limits.output_bytes,
        ["sandbox", "limits", "disk"] => limits.workspace_bytes,
        ["sandbox", mode, limit] => {
            let (memory, cpus, pids) = if *mode == "docker" { docker } else { apple };
            // What is not set for a mode is as set for all.
            match *limit {
                "memory" => memory.map_or(limits.memory_bytes, |memory| memory.bytes()),
                "cpus" => u64::from(cpus.map_or(limits.cpus_milli, |cpus| cpus.milli())),
                _ => u64::from(pids.map_or(limits.pids, |pids| pids.count())),
            }
        }
        _ => u64::MAX,
    }
}

/// The members of a list, as text.
fn list(keys: &[&str], settings: &Settings) -> Vec<String> {
    fn texts<T: ToString>(members: &[T]) -> Vec<String> {
        members.iter().map(ToString::to_string).collect()
    }
    match keys {
        ["sandbox", "env_allowlist"] => texts(&settings.sandbox.env_allowlist),
        ["sandbox", "mask", "show"] => texts(&settings.sandbox.mask.show),
        ["sandbox", "mask", "hide"] => texts(&settings.sandbox.mask.hide),
        ["egress", "sets", name] => match settings.egress.sets.get(*name) {
            Some(rules) => texts::<AllowRule>(rules),
            None => texts(preset(name).unwrap_or_default()),
        },
        _ => Vec::new(),
    }
}

#[cfg(test)]
#[path = "untrusted_tests.rs"]
mod tests;
