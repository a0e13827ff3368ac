//! What an operator changes while the service runs: `system_config` in the record.
//!
//! Its keys are a closed list ([`CONFIG_KEYS`]). What is set forms a [`Layer`] over the service's files and variables, and
//! below what a request and an agent's own `sandbox_mode` say. It concerns what the service accepts, and nobody's own shell.

mod keys;
mod reference;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

pub use self::keys::{CONFIG_KEYS, ConfigKey, Sets};
use self::keys::{DEFAULT_AGENT, MODE};
pub use self::reference::reference;
pub use self::report::{ConfigReport, ConfigValue, LaunchMode};
use crate::policy::Mode;
use crate::run_input::InputError;
use crate::settings::{Agent, Effective, KeyPath, Layer, Origin, nearest, read_layer};

/// The longest value, in bytes.
pub const LONGEST_CONFIG_VALUE: usize = 4096;

/// The word for the default agent.
const INHERIT: &str = "inherit";

/// What is set. Each value was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemConfig(BTreeMap<&'static str, String>);

/// What is to be changed: a value, or `None` to unset the key.
pub type ConfigUpdates = BTreeMap<String, Option<String>>;

impl SystemConfig {
    /// What is on record. A key or value that this version does not know is left out: a newer one may have written it.
    pub fn of_record(entries: impl IntoIterator<Item = (String, String)>) -> Self {
        let known = |(name, value): (String, String)| {
            let key = key_of(&name).ok()?;
            Some((key.name, checked(key, &value).ok()?))
        };
        Self(entries.into_iter().filter_map(known).collect())
    }

    /// The same after a change, all of it or nothing. Without a value, or with an empty one, a key is unset.
    ///
    /// # Errors
    /// The first key that is not known, or whose value cannot be used.
    pub fn changed(&self, updates: &ConfigUpdates) -> Result<Self, InputError> {
        let mut changed = self.clone();
        for (name, value) in updates {
            let key = key_of(name)?;
            match value.as_deref().map(str::trim).filter(|value| !value.is_empty()) {
                Some(value) => changed.0.insert(key.name, checked(key, value)?),
                None => changed.0.remove(key.name),
            };
        }
        Ok(changed)
    }

    /// What a key is set to.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Every key that is set.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// A folder in the place of the variable of this name.
    #[must_use]
    pub fn folder(&self, variable: &str) -> Option<PathBuf> {
        let key = key_of(variable).ok().filter(|key| key.sets == Sets::Folder)?;
        self.get(key.name).map(PathBuf::from)
    }

    /// The settings with this over them.
    #[must_use]
    pub fn over(&self, below: &Effective) -> Effective {
        if self.0.is_empty() {
            return below.clone();
        }
        let mut effective = below.clone();
        // One by one, since what some of them mean depends on what is below: the key before it, or a file.
        for key in CONFIG_KEYS {
            if let Some(value) = self.get(key.name)
                && let Some(layer) = layer(key, value, &effective)
            {
                effective = effective.under(&layer);
            }
        }
        effective
    }
}

/// The mode that `sandbox` stands for: the one that was set, if it has walls, and docker where none was. That is what the
/// word meant where it comes from.
#[must_use]
pub fn sandboxed(below: &Effective) -> Mode {
    let mode = below.settings.sandbox.mode;
    let is_set = below.origin_of(MODE) != &Origin::Default;
    if is_set && mode.is_sandboxed() { mode } else { Mode::Docker }
}

/// What a key sets; `None` for what only nodes look at.
fn layer(key: &'static ConfigKey, value: &str, below: &Effective) -> Option<Layer> {
    let value = match key.sets {
        Sets::Environment if value == "host" => Mode::Host.to_string(),
        Sets::Environment => sandboxed(below).to_string(),
        Sets::RoleAgent(_) if value == INHERIT => below.settings.service.default_agent.to_string(),
        Sets::SealedMode | Sets::Setting(_) | Sets::RoleAgent(_) => value.to_owned(),
        Sets::Folder => return None,
    };
    let mut layer = Layer::default();
    layer.set_text(key.path()?, &value, Origin::SystemConfig(key.name));
    Some(layer)
}

fn key_of(name: &str) -> Result<&'static ConfigKey, InputError> {
    CONFIG_KEYS.iter().find(|key| key.name == name).ok_or_else(|| {
        let names: BTreeMap<String, &str> =
            CONFIG_KEYS.iter().map(|key| (key.name.to_ascii_lowercase(), key.name)).collect();
        let meant = nearest(name, names.keys().map(String::as_str)).map(|lower| names[lower]);
        let hint = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "see docs/reference/config.md for every key".to_owned(),
        };
        let shown = crate::egress::printable(name);
        InputError::invalid("updates", format!("`{shown}` is not a key; {hint}"), hint)
    })
}

/// The value as it is kept.
fn checked(key: &'static ConfigKey, value: &str) -> Result<String, InputError> {
    let refuse = |problem: &str, hint: &str| {
        InputError::invalid("updates", format!("{}: {problem}; {hint}", key.name), hint)
    };
    let shown = crate::egress::printable(value);
    if value.len() > LONGEST_CONFIG_VALUE || value.chars().any(char::is_control) {
        return Err(refuse("is not one line of text", "type less, and no control characters"));
    }
    match key.sets {
        Sets::Environment => match value.to_lowercase().as_str() {
            word @ ("host" | "sandbox") => Ok(word.to_owned()),
            _ => Err(refuse(&format!("`{shown}` is not an environment"), "type `host` or `sandbox`")),
        },
        Sets::SealedMode if value == "host" => {
            Err(refuse("`host` has no walls", "type EXECUTION_ENVIRONMENT=host for that"))
        }
        Sets::RoleAgent(_) if value == INHERIT => Ok(INHERIT.to_owned()),
        // A name of the seed's, whichever way it is spelt; other agents are named in `roles`.
        Sets::RoleAgent(_) | Sets::Setting(DEFAULT_AGENT) => value
            .to_lowercase()
            .parse::<Agent>()
            .map(|provider| provider.to_string())
            .map_err(|error| refuse(&error.problem, &format!("type {}", Agent::choice("")))),
        Sets::Setting(path) => readable(path, value, &refuse),
        Sets::SealedMode => readable(MODE, value, &refuse),
        Sets::Folder => match Path::new(value).is_absolute() {
            true => Ok(value.to_owned()),
            false => {
                Err(refuse(&format!("`{shown}` is not an absolute path"), "type one such as `/srv/claude`"))
            }
        },
    }
}

/// The value, if the settings file would take it in this place.
fn readable(
    path: &[&str],
    value: &str,
    refuse: &dyn Fn(&str, &str) -> InputError,
) -> Result<String, InputError> {
    let tree = path.iter().rev().fold(json!(value), |value, key| json!({ *key: value }));
    match read_layer(&tree.to_string(), &Origin::Default) {
        Ok(_) => Ok(value.to_owned()),
        Err(error) => {
            let (problem, hint) =
                error.problem.split_once("; ").unwrap_or((&error.problem, "type another value"));
            Err(refuse(problem, hint))
        }
    }
}

/// How a setting is shown: texts without quotation marks.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// A setting that is in force, as text.
fn in_force(effective: &Effective, path: &[&str]) -> Option<String> {
    let wanted = KeyPath::new(path.iter().copied());
    let found = effective.values().into_iter().find(|(path, ..)| *path == wanted);
    found.and_then(|(_, value, _)| shown(&value))
}

#[cfg(test)]
#[path = "system_config_tests.rs"]
mod tests;
