//! Runs in containers: how a caller chooses them, and what a stranger at the same engine sees of them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::{Engine, Finished, Fixture, Marks, Running};

/// A way to run containers. Another one is one more of these.
#[derive(Debug)]
pub struct ContainerMode {
    /// In tables and in the names of tests.
    pub name: &'static str,
    /// What `--mode` is told.
    pub mode: &'static str,
    /// The command by which somebody else lays hands on its containers; `None` where there is none.
    pub command: fn(&Engine) -> Option<PathBuf>,
    /// What a caller has in the environment so that this engine and this image are used.
    pub env: fn(&Engine, image: &str) -> Vec<(&'static str, String)>,
    /// What a caller has in the settings for that, if the environment is not enough.
    pub settings: fn(command: &Path, image: &str) -> Option<Value>,
}

/// Through the engine's own interface.
pub const DOCKER: ContainerMode = ContainerMode {
    name: "docker",
    mode: "docker",
    command: |engine| Some(engine.docker_command().to_owned()),
    env: |engine, image| {
        vec![("DOCKER_HOST", engine.address().to_owned()), ("SANDBOX_DOCKER_IMAGE", image.to_owned())]
    },
    settings: |_, _| None,
};

/// Through podman's command.
pub const APPLE_PODMAN: ContainerMode = apple("apple-podman", |engine| engine.podman_command());
/// Through docker's command.
pub const APPLE_DOCKER: ContainerMode =
    apple("apple-docker", |engine| Some(engine.docker_command().to_owned()));

const fn apple(name: &'static str, command: fn(&Engine) -> Option<PathBuf>) -> ContainerMode {
    ContainerMode {
        name,
        mode: "apple",
        command,
        env: |_, _| Vec::new(),
        settings: |command, image| {
            Some(json!({ "sandbox": { "apple": { "runtime_command": command, "image": image } } }))
        },
    }
}

/// A fixture whose runs are in containers.
pub struct InContainers {
    /// State folder and repository.
    pub fixture: Fixture,
    /// The engine.
    pub engine: Engine,
    mode: &'static ContainerMode,
    command: PathBuf,
}

impl InContainers {
    /// With the smallest image; `None`, said on stderr, where there is no engine.
    ///
    /// # Panics
    /// If there is none in CI.
    #[must_use]
    pub fn new(mode: &'static ContainerMode) -> Option<Self> {
        Self::below(mode, &std::env::temp_dir())
    }

    /// The same in a folder below `parent`.
    ///
    /// # Panics
    /// If there is no engine in CI.
    #[must_use]
    pub fn below(mode: &'static ContainerMode, parent: &Path) -> Option<Self> {
        let engine = Engine::find()?;
        let command = (mode.command)(&engine)?;
        let mut fixture = Fixture::below(parent);
        for (name, value) in (mode.env)(&engine, engine.small_image()) {
            fixture.set_env(name, &value);
        }
        if let Some(settings) = (mode.settings)(&command, engine.small_image()) {
            let state = fixture.state();
            std::fs::create_dir_all(&state).expect("a state folder");
            std::fs::set_permissions(&state, PermissionsExt::from_mode(0o700)).expect("the folder is ours");
            std::fs::write(state.join("settings.json"), settings.to_string()).expect("a new file");
        }
        Some(Self { fixture, engine, mode, command })
    }

    /// `cofferdam run --json --mode MODE FLAGS -- sh -c SCRIPT`, to its end.
    #[must_use]
    pub fn run(&self, flags: &[&str], script: &str) -> Finished {
        self.fixture.run(&self.with_mode(flags), script)
    }

    /// The same, still running.
    #[must_use]
    pub fn start(&self, flags: &[&str], script: &str) -> Running {
        self.fixture.start(&self.with_mode(flags), script)
    }

    fn with_mode<'a>(&self, flags: &[&'a str]) -> Vec<&'a str> {
        ["--mode", self.mode.mode].into_iter().chain(flags.iter().copied()).collect()
    }

    /// What somebody does with the engine's own command. Its output.
    ///
    /// # Panics
    /// If the command fails.
    #[must_use]
    pub fn by_hand(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.command).args(arguments).output().expect("the engine's command");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The containers of this state folder, dead or alive, by their names.
    #[must_use]
    pub fn containers(&self) -> Vec<String> {
        self.labelled(&["ps", "--all", "--format", "{{.Names}}"])
    }

    /// The engine's volumes of this state folder.
    #[must_use]
    pub fn volumes(&self) -> Vec<String> {
        self.labelled(&["volume", "ls", "--format", "{{.Name}}"])
    }

    fn labelled(&self, listing: &[&str]) -> Vec<String> {
        let Ok(id) = std::fs::read_to_string(self.fixture.state().join("id")) else { return Vec::new() };
        let label = format!("label=dev.cofferdam.state={id}");
        let listing: Vec<&str> = listing.iter().copied().chain(["--filter", &label]).collect();
        self.by_hand(&listing).lines().map(str::to_owned).collect()
    }

    /// A folder that the user inside may write, too.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn marks(&self) -> Marks {
        let marks = Marks::new(&self.fixture);
        let everybody = PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(marks.folder(), everybody).expect("the folder is ours");
        marks
    }

    /// Gives the repository to an ordinary user, if we are root: the agent is whoever owns it, and never root.
    ///
    /// # Panics
    /// If it cannot be given away.
    #[must_use]
    pub fn owned_repository(&self) -> u32 {
        let own = rustix::process::geteuid();
        if !own.is_root() {
            return own.as_raw();
        }
        let mut open = vec![self.fixture.repository()];
        while let Some(path) = open.pop() {
            std::os::unix::fs::lchown(&path, Some(OWNER), Some(OWNER)).expect("root may give files away");
            if path.is_dir() && !path.is_symlink() {
                open.extend(std::fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
            }
        }
        OWNER
    }
}

/// Nobody whom a machine knows.
const OWNER: u32 = 54_321;
