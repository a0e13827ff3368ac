//! A repository, a model that plays a script, and a real CLI between them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cofferdam_e2e::{Agents, Finished, Fixture, Tree, tree_of};
use cofferdam_scripted_model::{Answer, Kind, Script, ScriptedModel};

use crate::agents::hunt::{encodings, files_with};

/// One of the three CLIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cli {
    Claude,
    Codex,
    OpenCode,
}

impl Cli {
    /// How `run` is asked for it. Codex offers plain tools to some models, and programs that call them to others.
    pub(crate) fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["--agent", "claude_code"],
            Self::Codex => &["--agent", "codex", "--model", "gpt-5.5"],
            Self::OpenCode => &["--agent", "opencode"],
        }
    }
}

/// A fixture whose commands find the agents, and have the key of a model that plays a script.
pub(crate) struct Stage {
    pub(crate) fixture: Fixture,
    pub(crate) model: ScriptedModel,
    pub(crate) key: String,
}

impl Stage {
    /// With a key of its own.
    pub(crate) fn new(agents: &Agents, answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with_key(agents, &new_secret("sk-e2e"), Script::new(answers))
    }

    /// With this key, which alone the model lets in.
    pub(crate) fn with_key(agents: &Agents, key: &str, script: Script) -> Self {
        let mut stage = Self::without_agents(key, script);
        stage.fixture.set_env("PATH", agents.path().to_str().expect("a plain path"));
        stage
    }

    /// The same for a program that is no agent.
    pub(crate) fn without_agents(key: &str, script: Script) -> Self {
        let mut fixture = Fixture::new();
        let model = ScriptedModel::start(script.expecting_key(key));
        fixture.set_env("ANTHROPIC_API_KEY", key);
        fixture.set_env("ANTHROPIC_BASE_URL", &model.base_url());
        fixture.set_env("OPENAI_API_KEY", key);
        fixture.set_env("OPENAI_BASE_URL", &format!("{}/v1", model.base_url()));
        Self { fixture, model, key: key.to_owned() }
    }

    /// Runs an agent to its end.
    pub(crate) fn run(&self, cli: Cli, flags: &[&str]) -> Finished {
        let args = [&["run", "--json"], cli.flags(), flags, &["do what there is to do"]].concat();
        let mut command = self.fixture.command();
        command.args(args);
        without_foreign_keys(&mut command);
        Finished::of(command)
    }

    /// Every request brought the key, and nothing that stands in for it.
    pub(crate) fn assert_the_model_had_the_key(&self) {
        let requests = self.model.requests();
        assert!(requests.iter().any(|request| request.kind == Kind::Call));
        for request in requests {
            assert_eq!(request.key(), Some(&*self.key), "{} {}", request.method, request.path);
            assert_ne!(request.kind, Kind::WrongKey, "{} {}", request.method, request.path);
            let headers = format!("{:?}", request.headers);
            assert!(!headers.contains("sk-cofferdam-"), "the placeholder went out: {headers}");
        }
    }

    /// No byte of the key, however it is written, is in the state folder, the repository or the caller's home.
    pub(crate) fn assert_the_key_is_nowhere(&self) {
        let own = self.fixture.path("");
        assert_eq!(files_with(&encodings(&self.key), &own), Vec::<PathBuf>::new());
    }
}

/// Takes the vendors' variables of whoever runs the tests away, but not those that were set for the command.
pub(crate) fn without_foreign_keys(command: &mut Command) {
    let is_theirs = |name: &OsStr| {
        let name = name.to_string_lossy();
        ["ANTHROPIC_", "OPENAI_", "CLAUDE_", "CODEX_", "OPENCODE_"].iter().any(|of| name.starts_with(of))
    };
    let own: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_theirs(name) && !own.contains(name)) {
        command.env_remove(name);
    }
}

/// Something that occurs nowhere else.
pub(crate) fn new_secret(prefix: &str) -> String {
    use std::hash::{BuildHasher, RandomState};
    let random = || RandomState::new().hash_one(std::time::Instant::now());
    format!("{prefix}-{:016x}{:016x}", random(), random())
}

/// A folder's content, with the times of each file.
#[derive(Debug, PartialEq)]
pub(crate) struct Snapshot {
    tree: Tree,
    changed_at: BTreeMap<PathBuf, (i64, i64)>,
}

impl Snapshot {
    pub(crate) fn of(folder: &Path) -> Self {
        let tree = tree_of(folder, &[]);
        let time = |name: &PathBuf| {
            let found = fs::symlink_metadata(folder.join(name)).expect("it is there");
            (name.clone(), (found.mtime(), found.mtime_nsec()))
        };
        Self { changed_at: tree.keys().map(time).collect(), tree }
    }
}

/// What `git status` says after a diff was applied to the repository, with the content of each file.
pub(crate) fn applied(fixture: &Fixture, diff: &str) -> BTreeMap<String, String> {
    let patch = fixture.path("applied.patch");
    fs::write(&patch, diff).expect("a new file");
    fixture.git(&["apply", patch.to_str().expect("a plain path")]);
    let status = fixture.git(&["status", "--porcelain", "--untracked-files=all"]);
    let content = |line: &str| {
        let name = line[3..].to_owned();
        let text = fs::read_to_string(fixture.repository().join(&name)).unwrap_or_default();
        (name, text)
    };
    status.lines().map(content).collect()
}
