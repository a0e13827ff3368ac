//! A service as an operator runs it: the real `cofferdam serve`, which can be killed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cofferdam_api::Client;
use cofferdam_core::NodeName;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::fixture::Fixture;
use crate::processes::{children_of, is_alive, kill_9, wait_until};

/// A machine that is shared takes its time.
const COMES_UP_WITHIN: Duration = Duration::from_secs(60);
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// `cofferdam serve` in the foreground. Dropping it kills it, and waits until its children have seen that.
pub struct Service {
    child: Child,
    state: PathBuf,
    status: Box<dyn Fn() -> Command + Send + Sync>,
}

impl Service {
    /// Starts it with these flags, and waits until it is ready.
    ///
    /// # Panics
    /// If it does not get ready.
    #[must_use]
    pub fn start(fixture: &Fixture, flags: &[&str]) -> Self {
        let service = Self::launch(fixture, &fixture.state(), NodeName::default().as_str(), flags);
        service.until_ready();
        service
    }

    /// Starts one of this name on this state folder, and does not wait until it is ready.
    ///
    /// # Panics
    /// If the binary cannot be started.
    #[must_use]
    pub fn launch(fixture: &Fixture, state: &Path, name: &str, flags: &[&str]) -> Self {
        let said = File::options().create(true).append(true).open(fixture.path("serve.stderr"));
        let said = said.expect("a file of the test");
        let mut command = fixture.command();
        command.env("COFFERDAM_HOME", state);
        let (program, env, name) = (command.get_program().to_owned(), env_of(&command), name.to_owned());
        let child = command
            .args(["serve", "--name", &name])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(said.try_clone().expect("a file of the test"))
            .stderr(said)
            .spawn()
            .expect("the binary can be started");
        let status = Box::new(move || {
            let mut command = Command::new(&program);
            command.envs(env.clone()).args(["status", "--json", "--name", &name]);
            command
        });
        Self { child, state: state.to_owned(), status }
    }

    /// Waits until it is ready.
    ///
    /// # Panics
    /// If it does not get ready.
    pub fn until_ready(&self) {
        let pid = self.pid();
        wait_until(COMES_UP_WITHIN, "the service is ready", || {
            let status = self.status();
            status["ready"] == true && status["pid"] == pid
        });
    }

    /// Where its API is.
    ///
    /// # Panics
    /// If it is not ready.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.status()["listen"].as_str().expect("a service that is ready listens"))
    }

    /// The key that it made when it was first started.
    ///
    /// # Panics
    /// If it has made none.
    #[must_use]
    pub fn key(&self) -> String {
        let key = fs::read_to_string(self.state.join("api-key")).expect("the first start makes a key");
        key.trim().to_owned()
    }

    /// Somebody who speaks to it, and may everything.
    ///
    /// # Panics
    /// If it is not ready.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(&self.url(), Some(&self.key())).expect("an address and a key of our own")
    }

    /// What `cofferdam status --json` says.
    ///
    /// # Panics
    /// If it says nothing.
    #[must_use]
    pub fn status(&self) -> Value {
        let output = (self.status)().output().expect("the binary can be started");
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }

    /// The supervisor's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process of a child, once it runs.
    ///
    /// # Panics
    /// If it does not.
    #[must_use]
    pub fn child(&self, role: &str) -> u32 {
        self.next_child(role, 0)
    }

    /// The process of a child, once it is another than this one.
    ///
    /// # Panics
    /// If it stays the same, or does not run.
    #[must_use]
    pub fn next_child(&self, role: &str, before: u32) -> u32 {
        let pid = || {
            let pid = self.status()["children"][role]["pid"].as_u64()?;
            u32::try_from(pid).ok().filter(|pid| *pid != before && is_alive(*pid))
        };
        wait_until(COMES_UP_WITHIN, "the child runs", || pid().is_some());
        pid().expect("it runs")
    }

    /// SIGTERM.
    ///
    /// # Panics
    /// If it is gone.
    pub fn terminate(&self) {
        let pid = Pid::from_raw(self.pid().cast_signed()).expect("a process id is positive");
        kill_process(pid, Signal::TERM).expect("the process is there");
    }

    /// Waits until it has ended well.
    ///
    /// # Panics
    /// If it has not.
    pub fn wait(mut self) {
        wait_until(ENDS_WITHIN, "the service ends", || !is_alive(self.child.id()));
        let status = self.child.wait().expect("a child can be waited for");
        assert!(status.success(), "{status}");
    }

    /// SIGTERM, and waits until it has ended well.
    ///
    /// # Panics
    /// If it does not end well.
    pub fn stop(self) {
        self.terminate();
        self.wait();
    }

    /// `kill -9`, and waits until it and its children are gone.
    ///
    /// # Panics
    /// If something of it stays.
    pub fn kill(mut self) {
        self.end_hard();
    }

    /// `kill -9` of a child. False if it does not run.
    #[must_use]
    pub fn strike(&self, role: &str) -> bool {
        let pid = self.status()["children"][role]["pid"].as_u64();
        let own = pid.and_then(|pid| children_of(self.pid()).into_iter().find(|own| u64::from(*own) == pid));
        let own = own.and_then(|own| Pid::from_raw(own.cast_signed()));
        own.is_some_and(|own| kill_process(own, Signal::KILL).is_ok())
    }

    /// `kill -9` of the supervisor alone: what becomes of its children is theirs to see.
    ///
    /// # Panics
    /// If it is gone already.
    pub fn behead(mut self) {
        kill_9(self.child.id());
        self.child.wait().expect("a child can be waited for");
    }

    fn end_hard(&mut self) {
        let children = self.status()["children"].clone();
        let children: Vec<u32> = children
            .as_object()
            .into_iter()
            .flat_map(|children| children.values())
            .filter_map(|child| u32::try_from(child["pid"].as_u64()?).ok())
            .collect();
        kill_9(self.child.id());
        self.child.wait().expect("a child can be waited for");
        wait_until(ENDS_WITHIN, "the children end with their supervisor", || {
            children.iter().all(|pid| !is_alive(*pid))
        });
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            if std::thread::panicking() {
                let _ = self.child.kill();
                let _ = self.child.wait();
            } else {
                self.end_hard();
            }
        }
    }
}

/// The variables of a command, to make it again.
fn env_of(command: &Command) -> Vec<(OsString, OsString)> {
    let env = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    env.collect()
}
