//! Settings of TinyClaw as ours: what each key becomes, or why it is left out.

use serde_json::{Map, Value, json};

use super::agents::Agent;
use super::key_path::KeyPath;
use super::layers::Origin;
use super::read::{SettingsError, locate, read_layer};
use crate::run_input::MODEL_KEYS;

/// Its default image, which holds no agent.
const THEIR_IMAGE: &str = "tinyclaw/agent-runner:latest";
/// Its default program for Apple's containers, which nobody has.
const THEIR_RUNTIME: &str = "apple-container";

/// What a file becomes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Imported {
    /// Our settings, each key with its value. An agent is one of them.
    pub settings: Vec<(KeyPath, Value)>,
    /// What is not among them. What stands in keys that we do not know is not repeated: it may be a secret.
    pub left_out: Vec<LeftOut>,
}

/// A key, or a part of its value, that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The key, as it is in the file.
    pub path: KeyPath,
    /// Why.
    pub why: String,
}

impl Imported {
    /// The settings as one tree.
    #[must_use]
    pub fn tree(&self) -> Value {
        let mut root = Map::new();
        for (path, value) in &self.settings {
            let keys = path.keys();
            let Some((last, way)) = keys.split_last() else { continue };
            let mut object = &mut root;
            for key in way {
                let next = object.entry(*key).or_insert_with(|| json!({}));
                let Value::Object(next) = next else { unreachable!("no value is below another one") };
                object = next;
            }
            object.insert((*last).to_owned(), value.clone());
        }
        Value::Object(root)
    }

    /// Takes a value, if it is one that our own settings take.
    fn take(&mut self, path: &KeyPath, value: Value) {
        match problem(path, &value) {
            None => self.settings.push((path.clone(), value)),
            Some(problem) => self.leave(path, problem),
        }
    }

    fn leave(&mut self, path: &KeyPath, why: impl Into<String>) {
        self.left_out.push(LeftOut { path: path.clone(), why: why.into() });
    }
}

/// Reads a `settings.json` of TinyClaw.
///
/// # Errors
/// It is not JSON, or no object.
pub fn import(text: &str) -> Result<Imported, SettingsError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let located = locate(text)?;
    let Ok(Value::Object(file)) = serde_json::from_str(text) else {
        let problem = "this is not a settings file; name a `settings.json` of TinyClaw";
        return Err(SettingsError::at(text, located.span.start, KeyPath::default(), problem));
    };
    let mut imported = Imported::default();
    for (key, value) in &file {
        let path = KeyPath::new([key.as_str()]);
        match (key.as_str(), value) {
            ("sandbox", Value::Object(members)) => sandbox(&mut imported, &path, members),
            ("agents", Value::Object(agents)) => {
                agents.iter().for_each(|(name, settings)| agent(&mut imported, &path.with(name), settings));
            }
            (key, _) => imported.leave(&path, of_another_kind(key)),
        }
    }
    Ok(imported)
}

fn of_another_kind(key: &str) -> &'static str {
    match key {
        "channels" => "there are no chat channels here: messages come by `cofferdam message` or over HTTP",
        "models" => "a model is an agent's own: set `agents.NAME.model`",
        "workspace" => "a folder is an agent's own: set `agents.NAME.working_directory`",
        "monitoring" => "the service watches its runs by itself",
        "sandbox" | "agents" => "it is not an object",
        _ => "Cofferdam has no such setting",
    }
}

fn sandbox(imported: &mut Imported, above: &KeyPath, members: &Map<String, Value>) {
    for (key, value) in members {
        let path = above.with(key);
        match (key.as_str(), value) {
            ("mode", Value::String(mode)) => mode_of(imported, &path, mode),
            ("timeout_seconds" | "max_attempts", value) if is_unset(value) => {
                imported.leave(&path, "an empty value is the default there, and here it is left out");
            }
            ("env_allowlist", Value::Array(names)) => variables(imported, &path, names),
            ("docker" | "apple", Value::Object(members)) => container(imported, &path, members),
            (_, value) => imported.take(&path, value.clone()),
        }
    }
}

/// A wall is not taken away by copying a file in which it never was.
fn mode_of(imported: &mut Imported, path: &KeyPath, mode: &str) {
    match mode {
        "host" => imported.leave(
            path,
            "`host` puts no wall around agents, and `native` is the default here; if you mean it: \
             `cofferdam sandbox set host`",
        ),
        mode => imported.take(path, json!(mode)),
    }
}

fn variables(imported: &mut Imported, path: &KeyPath, names: &[Value]) {
    let is_key = |name: &&Value| name.as_str().is_some_and(|name| MODEL_KEYS.contains(&name));
    let (keys, others): (Vec<&Value>, Vec<&Value>) = names.iter().partition(is_key);
    if !keys.is_empty() {
        let keys: Vec<&str> = keys.into_iter().filter_map(Value::as_str).collect();
        let why = format!("{}: agents need no key inside, the broker adds it outside", keys.join(", "));
        imported.leave(path, why);
    }
    if !others.is_empty() {
        imported.take(path, json!(others));
    }
}

fn container(imported: &mut Imported, above: &KeyPath, members: &Map<String, Value>) {
    for (key, value) in members {
        let path = above.with(key);
        match (key.as_str(), value.as_str()) {
            (_, _) if is_unset(value) => {
                imported.leave(&path, "an empty value is the default there, and here it is left out");
            }
            ("image", Some(THEIR_IMAGE)) => imported.leave(
                &path,
                "there is no agent in that image; `cofferdam sandbox build-image` makes one with all of them",
            ),
            ("runtime_command", Some(THEIR_RUNTIME)) => {
                imported.leave(&path, "there is no such program: Apple's is called `container`");
            }
            ("network", Some("restricted")) => {
                imported
                    .leave(&path, "it restricted nothing; here runs are sealed unless `open` is asked for");
            }
            ("network", Some("none")) => {
                imported.leave(&path, "agents reach their model and nothing else here, without a network");
            }
            (_, _) => imported.take(&path, value.clone()),
        }
    }
}

fn agent(imported: &mut Imported, path: &KeyPath, settings: &Value) {
    let Value::Object(members) = settings else {
        return imported.leave(path, "it is not an object");
    };
    let provider = members.get("provider").and_then(Value::as_str).and_then(|name| name.parse().ok());
    let Some(provider): Option<Agent> = provider else {
        return imported.leave(path, "its `provider` is none of `anthropic`, `openai` and `opencode`");
    };
    let mut agent = json!({ "provider": provider });
    for (key, value) in members.iter().filter(|(key, _)| *key != "provider") {
        let path = path.with(key);
        if key == "sandbox_mode" && value == "host" {
            mode_of(imported, &path, "host");
            continue;
        }
        let mut with = agent.clone();
        with[key] = value.clone();
        match problem_of_agent(&with) {
            None => agent = with,
            Some(problem) => imported.leave(&path, problem),
        }
    }
    imported.take(path, agent);
}

/// Whether a value means nothing there: it falls back to the default.
fn is_unset(value: &Value) -> bool {
    value == "" || value == 0 || value.is_null()
}

/// Why our own settings do not take a value, in their own words.
fn problem(path: &KeyPath, value: &Value) -> Option<String> {
    let tree = path.keys().iter().rev().fold(value.clone(), |value, key| json!({ *key: value }));
    read_layer(&tree.to_string(), &Origin::Default).err().map(|error| error.problem)
}

fn problem_of_agent(agent: &Value) -> Option<String> {
    problem(&KeyPath::new(["agents", "x"]), agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What its documents show, with what people have besides.
    const FILE: &str = r#"{
        "channels": {"telegram": {"bot_token": "hunter2hunter2"}},
        "models": {"provider": "anthropic"},
        "sandbox": {
            "mode": "host", "timeout_seconds": 900, "max_attempts": 0, "max_concurrency": 0,
            "env_allowlist": ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "LANG"], "path_mapping_mode": "same-path",
            "docker": {"image": "tinyclaw/agent-runner:latest", "network": "restricted", "memory": "2g", "cpus": "1.0",
                       "pids_limit": 256},
            "apple": {"runtime_command": "apple-container", "image": "Mine/Agents", "network": "default"},
            "color": "red"
        },
        "agents": {
            "coder": {"name": "Coder", "provider": "openai", "model": "gpt-5.3-codex", "working_directory": "/w/coder",
                      "sandbox_mode": "docker", "mood": "good"},
            "loose": {"provider": "anthropic", "sandbox_mode": "host"},
            "other": {"provider": "someone"}
        }
    }"#;

    #[test]
    fn each_key_becomes_one_of_ours_or_is_left_out_with_a_reason() {
        let imported = import(FILE).unwrap();
        assert_eq!(
            imported.tree(),
            json!({
                "sandbox": {
                    "timeout_seconds": 900, "max_concurrency": 0, "env_allowlist": ["LANG"],
                    "path_mapping_mode": "same-path",
                    "docker": {"memory": "2g", "cpus": "1.0", "pids_limit": 256},
                    "apple": {"network": "default"},
                },
                "agents": {
                    "coder": {"name": "Coder", "provider": "codex", "model": "gpt-5.3-codex",
                        "working_directory": "/w/coder", "sandbox_mode": "docker"},
                    "loose": {"provider": "claude_code"},
                },
            })
        );
        let left: Vec<String> =
            imported.left_out.iter().map(|left| format!("{}: {}", left.path, left.why)).collect();
        let keys: Vec<&str> = left.iter().map(|line| line.split(": ").next().unwrap()).collect();
        let expected = [
            "channels",
            "models",
            "sandbox.mode",
            "sandbox.max_attempts",
            "sandbox.env_allowlist",
            "sandbox.docker.image",
            "sandbox.docker.network",
            "sandbox.apple.runtime_command",
            "sandbox.apple.image",
            "sandbox.color",
            "agents.coder.mood",
            "agents.loose.sandbox_mode",
            "agents.other",
        ];
        let sorted = |mut keys: Vec<&str>| -> Vec<String> {
            keys.sort_unstable();
            keys.into_iter().map(str::to_owned).collect()
        };
        assert_eq!(sorted(keys), sorted(expected.to_vec()), "{left:#?}");
        assert!(!left.concat().contains("hunter2"), "{left:#?}");
        assert!(read_layer(&imported.tree().to_string(), &Origin::Default).is_ok());
    }

    #[test]
    fn what_is_no_file_of_settings_is_refused() {
        for text in ["", "[]", "7", "{"] {
            assert!(import(text).is_err(), "{text}");
        }
        assert_eq!(import("{}").unwrap(), Imported::default());
    }
}
