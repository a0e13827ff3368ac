//! A state folder and a repository of one test.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::leftovers::leftovers;
use crate::processes::{brokers_of, wait_until};
use crate::run::{Finished, Running};

/// How long a broker may take to see that nobody needs it.
const BROKERS_LINGER: Duration = Duration::from_secs(30);

/// The real binary, built with failpoints. `./dev test` names it when the tests run as another user; a
/// plain `cargo test` finds it beside the tests.
#[must_use]
pub fn binary() -> PathBuf {
    match std::env::var_os("COFFERDAM_TEST_BINARY") {
        Some(path) => PathBuf::from(path),
        None => test_binary("cofferdam"),
    }
}

/// A program that is built beside the tests.
///
/// # Panics
/// If it was not built.
#[must_use]
pub fn test_binary(name: &str) -> PathBuf {
    let beside = std::env::var_os("COFFERDAM_TEST_BINARY").map(PathBuf::from);
    let own = std::env::current_exe().expect("a test knows its own path");
    let folder = match &beside {
        Some(binary) => binary.parent(),
        // target/TRIPLE/debug/deps/TEST
        None => own.parent().and_then(Path::parent),
    };
    let path = folder.expect("a binary is in a folder").join(name);
    assert!(path.exists(), "{} is not built; run ./dev test, or cargo build --workspace", path.display());
    path
}

/// A state folder and a repository of one test, and what runs on them.
pub struct Fixture {
    folder: TempDir,
    env: Vec<(String, String)>,
    checks: bool,
}

impl Fixture {
    /// A state folder and a small committed repository.
    ///
    /// # Panics
    /// If they cannot be made.
    #[must_use]
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// The same in a folder below `parent`.
    ///
    /// # Panics
    /// If they cannot be made.
    #[must_use]
    pub fn below(parent: &Path) -> Self {
        let fixture = Self::in_folder(parent);
        let repository = fixture.repository();
        fs::create_dir(&repository).expect("a new folder");
        fixture.write("README.md", "hello\n");
        fixture.write("src/main.txt", "one\ntwo\nthree\n");
        fixture.git(&["init", "--quiet", "--initial-branch=main"]);
        fixture.git(&["add", "--all"]);
        fixture.git(&["commit", "--quiet", "--message=first"]);
        fixture
    }

    /// A state folder alone.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn without_repository() -> Self {
        Self::in_folder(&std::env::temp_dir())
    }

    fn in_folder(parent: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("cofferdam-e2e-").tempdir_in(parent);
        let folder = folder.expect("a temp folder");
        fs::create_dir(folder.path().join("home")).expect("a new folder");
        Self { folder, env: Vec::new(), checks: true }
    }

    /// A path in the test's own folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The repository.
    #[must_use]
    pub fn repository(&self) -> PathBuf {
        self.path("repo")
    }

    /// The state folder.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// The caller's home.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Sets a variable for every command of this fixture from here on.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.env.push((name.to_owned(), value.to_owned()));
    }

    /// The variables that were set.
    pub(crate) fn env(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Writes a file of the repository.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.repository().join(name);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a new folder");
        fs::write(path, content).expect("a new file");
    }

    /// Runs git in the repository.
    ///
    /// # Panics
    /// If git fails.
    pub fn git(&self, args: &[&str]) -> String {
        let output = self.git_command(&self.repository()).args(args).output().expect("git is installed");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Git in a folder, with a configuration of the test's own.
    #[must_use]
    pub fn git_command(&self, folder: &Path) -> Command {
        let mut command = Command::new("git");
        command.current_dir(folder).env("HOME", self.home()).env("GIT_CONFIG_NOSYSTEM", "1");
        for role in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{role}_NAME"), "Test")
                .env(format!("GIT_{role}_EMAIL"), "test@localhost");
        }
        command
    }

    /// The real binary in the repository, ready for arguments.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(binary());
        let folder =
            if self.repository().is_dir() { self.repository() } else { self.folder.path().to_owned() };
        command.current_dir(folder).env("HOME", self.home()).env("COFFERDAM_HOME", self.state());
        // Services of several tests at once must not want the same port.
        command.env("COFFERDAM_LISTEN", "127.0.0.1:0");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the binary to its end.
    pub fn cofferdam<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Finished {
        let mut command = self.command();
        command.args(args);
        Finished::of(command)
    }

    /// `cofferdam run --json FLAGS -- sh -c SCRIPT`, to its end.
    pub fn run(&self, flags: &[&str], script: &str) -> Finished {
        self.cofferdam(run_arguments(flags, script))
    }

    /// The same, still running.
    pub fn start(&self, flags: &[&str], script: &str) -> Running {
        let mut command = self.command();
        command.args(run_arguments(flags, script));
        Running::of(command)
    }

    /// The events of a run, as `runs events --json` prints them.
    ///
    /// # Panics
    /// If there is no such run.
    #[must_use]
    pub fn events(&self, run: &str) -> Vec<Value> {
        let printed = self.cofferdam(["runs", "events", "--json", run]);
        assert_eq!(printed.code, Some(0), "{}", printed.stderr);
        let text = String::from_utf8(printed.stdout).expect("JSON is text");
        text.lines().map(|line| serde_json::from_str(line).expect("a line is an event")).collect()
    }

    /// What the agent of a run printed on stdout, line by line.
    #[must_use]
    pub fn printed(&self, run: &str) -> Vec<String> {
        let events = self.events(run);
        let said = events.iter().filter(|event| event["type"] == "agent.message");
        said.filter_map(|event| event["data"]["text"].as_str().map(str::to_owned)).collect()
    }

    /// Puts a program that is built beside the tests into the repository.
    ///
    /// # Panics
    /// If it was not built.
    pub fn add_program(&self, name: &str) {
        fs::copy(test_binary(name), self.repository().join(name)).expect("a copy of a program");
    }

    /// Leaves the look for leftovers out: for a test that ends in the middle of things on purpose.
    pub fn leave_as_it_is(&mut self) {
        self.checks = false;
    }
}

impl Default for Fixture {
    fn default() -> Self {
        Self::new()
    }
}

fn run_arguments(flags: &[&str], script: &str) -> Vec<String> {
    let mut args: Vec<String> = vec!["run".to_owned(), "--json".to_owned()];
    args.extend(flags.iter().map(|&flag| flag.to_owned()));
    args.extend(["--", "sh", "-c", script].map(String::from));
    args
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if self.checks && !std::thread::panicking() {
            // A broker stays for a moment after its node, which may only be being restarted.
            wait_until(BROKERS_LINGER, "the brokers end by themselves", || {
                brokers_of(&self.state()).is_empty()
            });
            let found = leftovers(&self.state());
            assert!(found.is_empty(), "left behind: {found:#?}");
        }
    }
}
