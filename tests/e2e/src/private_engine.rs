//! An engine of one test, which the test may kill.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::engine::Engine;
use crate::processes::{descendants_of, is_called, kill_9, naming};

const SOON: Duration = Duration::from_secs(60);
/// What a container is before it is one.
const STARTING: &str = "runc init ";

/// A dockerd of one test, with the small image.
#[derive(Debug)]
pub struct PrivateEngine {
    // Before the folder, in which it works.
    daemon: Option<Child>,
    /// What was starting containers when it was killed.
    starting: Vec<u32>,
    before: Vec<String>,
    folder: TempDir,
}

impl PrivateEngine {
    /// Starts one. Only root can; anybody else is told that the test is skipped.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(engine: &Engine) -> Option<Self> {
        Self::start_after(engine, &[])
    }

    /// Starts one behind a command that changes what it finds on the machine.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start_after(engine: &Engine, before: &[&str]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can start an engine");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("cofferdam-engine-").tempdir().expect("a temp folder");
        let before = before.iter().map(|&word| word.to_owned()).collect();
        let mut own = Self { daemon: None, starting: Vec::new(), before, folder };
        own.start_again();
        let image = own.path("image.tar");
        let image_path = image.to_str().expect("a plain path");
        let saved = engine.docker(["save", "--output", image_path, engine.small_image()]).status();
        assert!(saved.expect("docker runs").success());
        assert!(own.docker(&["load", "--input", image_path]).status().expect("docker runs").success());
        Some(own)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn socket(&self) -> PathBuf {
        self.path("docker.sock")
    }

    /// Where it listens, in the form of `DOCKER_HOST`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// A `docker` command that speaks to it.
    #[must_use]
    pub fn docker(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(docker_program());
        command.env("DOCKER_HOST", self.address()).args(arguments);
        command
    }

    /// Starts it, after it was killed. One that finds what a killed one has left may give up: then it is started anew.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_again(&mut self) {
        let until = Instant::now() + SOON;
        while !self.try_start() {
            assert!(Instant::now() < until, "the engine does not start; see {}", self.path("log").display());
        }
    }

    fn try_start(&mut self) -> bool {
        let log = std::fs::File::create(self.path("log")).expect("a new file");
        let mut words: Vec<String> = self.before.clone();
        words.push("dockerd".to_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        for (flag, name) in [("--data-root", "data"), ("--exec-root", "exec"), ("--pidfile", "pid")] {
            command.arg(flag).arg(self.path(name));
        }
        command.args(["--bridge=none", "--iptables=false", "--ip6tables=false", "-H"]).arg(self.address());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut daemon = command.spawn().expect("dockerd is installed");
        loop {
            if daemon.try_wait().expect("a child can be looked at").is_some() {
                return false;
            }
            // It listens before it is ready, and may give up in between.
            let mut version = Command::new(docker_program());
            version.env("DOCKER_HOST", self.address()).arg("version");
            let answer = version.stdout(Stdio::null()).stderr(Stdio::null()).status();
            if answer.expect("docker is installed").success() {
                self.daemon = Some(daemon);
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Starts it if it was killed.
    ///
    /// # Panics
    /// If it does not start.
    pub fn revive(&mut self) {
        if self.daemon.is_none() {
            self.start_again();
        }
    }

    /// Kills it if it runs, and starts it otherwise. Says which.
    ///
    /// # Panics
    /// If it does not start.
    pub fn kill_or_revive(&mut self) -> &'static str {
        if self.daemon.is_some() {
            self.kill();
            return "engine killed";
        }
        self.start_again();
        "engine started"
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            kill_9(daemon.id());
            let _ = daemon.wait();
            self.starting.extend(self.holders().into_iter().filter(|pid| is_called(*pid, STARTING)));
        }
    }

    /// Its processes that hold containers, and the containers' own.
    fn holders(&self) -> Vec<u32> {
        let folder = self.folder.path().display().to_string();
        naming(&folder).into_iter().flat_map(|pid| [vec![pid], descendants_of(pid)].concat()).collect()
    }

    /// Asks it to end, which ends its containers.
    pub fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let pid = Pid::from_raw(daemon.id().cast_signed()).expect("a child's id is positive");
            let _ = kill_process(pid, Signal::TERM);
            let _ = daemon.wait();
        }
    }
}

/// The client itself, and not a command that knows its own engine.
fn docker_program() -> PathBuf {
    let usual = Path::new("/usr/bin/docker");
    if usual.exists() { usual.to_owned() } else { PathBuf::from("docker") }
}

impl Drop for PrivateEngine {
    fn drop(&mut self) {
        // What a killed engine has left (containerd, the containers' mounts) its next start finds and can end.
        self.revive();
        self.stop();
        // Nor does everything end that it was starting when it was killed.
        let starting = self.starting.iter().copied().filter(|pid| is_called(*pid, STARTING));
        for pid in self.holders().into_iter().chain(starting) {
            if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let folder = self.folder.path().display().to_string();
        // An engine mounts its own folder over itself, and leaves that behind: then the folder could not be removed.
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mounted = table.lines().filter_map(|line| line.split(' ').nth(4));
        for path in mounted.filter(|path| path.starts_with(&folder)).collect::<Vec<_>>().into_iter().rev() {
            let _ = Command::new("umount").arg(path).status();
        }
    }
}
