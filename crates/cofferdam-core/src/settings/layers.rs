//! Settings from several places, one over the other, and where each value came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::Settings;
use super::key_path::KeyPath;

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it is built in.
    Default,
    /// In the settings file of the state folder.
    Global(PathBuf),
    /// In the settings file of a repository that was trusted as it is.
    Local(PathBuf),
    /// In the settings file of a repository, which is not trusted and may make a value stricter.
    Untrusted(PathBuf),
    /// In a variable.
    Environment(&'static str),
    /// In the record, by an operator, under this key.
    SystemConfig(&'static str),
}

/// What one place sets: leaves of the tree of settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layer {
    leaves: BTreeMap<KeyPath, (Value, Origin)>,
}

/// What holds after all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effective {
    leaves: BTreeMap<KeyPath, (Value, Origin)>,
    /// The values.
    pub settings: Settings,
}

impl Origin {
    /// In one word, for programs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Global(_) => "global",
            Self::Local(_) => "local",
            Self::Untrusted(_) => "untrusted",
            Self::Environment(_) => "environment",
            Self::SystemConfig(_) => "system_config",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Global(path) => write!(f, "{}", path.display()),
            Self::Local(path) => write!(f, "{} (trusted)", path.display()),
            Self::Untrusted(path) => write!(f, "{} (not trusted, and stricter)", path.display()),
            Self::Environment(name) => write!(f, "variable {name}"),
            Self::SystemConfig(key) => write!(f, "system_config ({key})"),
        }
    }
}

impl Layer {
    /// All that a tree sets, from one origin. The tree was read into [`Settings`] before.
    pub(super) fn of(tree: &Value, origin: &Origin) -> Self {
        let mut layer = Self::default();
        collect(tree, &KeyPath::default(), &mut |path, value| layer.set(path, value.clone(), origin.clone()));
        layer
    }

    /// Sets one value. It is a leaf: text, a number, a list, or an object with nothing in it.
    pub(crate) fn set(&mut self, path: KeyPath, value: Value, origin: Origin) {
        self.leaves.insert(path, (value, origin));
    }

    /// Sets a text by a variable.
    pub fn set_text(&mut self, keys: &[&str], value: &impl fmt::Display, origin: Origin) {
        self.set(KeyPath::new(keys.iter().copied()), Value::String(value.to_string()), origin);
    }

    /// Whether it sets nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// The leaves.
    pub(super) fn leaves(&self) -> impl Iterator<Item = (&KeyPath, &Value, &Origin)> {
        self.leaves.iter().map(|(path, (value, origin))| (path, value, origin))
    }

    /// What it alone would make of the settings.
    pub(super) fn alone(&self) -> Settings {
        settings_of(&self.leaves)
    }
}

impl Effective {
    /// The same with a further layer over it. Objects are merged key by key; a list is one value.
    #[must_use]
    pub fn under(mut self, layer: &Layer) -> Self {
        self.leaves.extend(layer.leaves.clone());
        self.settings = settings_of(&self.leaves);
        self
    }

    /// Where a value was set.
    #[must_use]
    pub fn origin(&self, path: &KeyPath) -> &Origin {
        self.leaves.get(path).map_or(&Origin::Default, |(_, origin)| origin)
    }

    /// The same by its keys.
    #[must_use]
    pub fn origin_of(&self, keys: &[&str]) -> &Origin {
        self.origin(&KeyPath::new(keys.iter().copied()))
    }

    /// Every value that holds, in the order of the keys, with where it was set.
    #[must_use]
    pub fn values(&self) -> Vec<(KeyPath, Value, Origin)> {
        let tree = serde_json::to_value(&self.settings).expect("settings are plain values");
        let mut values = Vec::new();
        collect(&tree, &KeyPath::default(), &mut |path, value| {
            let origin = self.origin(&path).clone();
            values.push((path, value.clone(), origin));
        });
        values
    }
}

fn collect(tree: &Value, path: &KeyPath, see: &mut dyn FnMut(KeyPath, &Value)) {
    match tree {
        Value::Object(members) if !members.is_empty() => {
            members.iter().for_each(|(key, value)| collect(value, &path.with(key), see));
        }
        leaf => see(path.clone(), leaf),
    }
}

fn settings_of(leaves: &BTreeMap<KeyPath, (Value, Origin)>) -> Settings {
    let mut root = Map::new();
    for (path, (value, _)) in leaves {
        if let Some((last, way)) = path.keys().split_last() {
            let object = way.iter().fold(&mut root, |object, key| {
                let next = object.entry(*key).or_insert_with(|| Value::Object(Map::new()));
                next.as_object_mut().expect("what holds further keys is an object in every layer")
            });
            object.insert((*last).to_owned(), value.clone());
        }
    }
    serde_json::from_value(Value::Object(root)).expect("each layer was read into the same types")
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
