//! A service as an operator runs it: the real `cofferdam serve`, which can be killed.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::fixture::Fixture;
use crate::processes::{is_alive, kill_9, wait_until};

/// A machine that is shared takes its time.
const COMES_UP_WITHIN: Duration = Duration::from_secs(60);
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// `cofferdam serve` in the foreground. Dropping it kills it, and waits until its children have seen that.
pub struct Service {
    child: Child,
    status: Box<dyn Fn() -> Command>,
}

impl Service {
    /// Starts it with these flags, and waits until it is ready.
    ///
    /// # Panics
    /// If it does not get ready.
    #[must_use]
    pub fn start(fixture: &Fixture, flags: &[&str]) -> Self {
        let said = File::options().create(true).append(true).open(fixture.path("serve.stderr"));
        let said = said.expect("a file of the test");
        let child = fixture
            .command()
            .arg("serve")
            .args(flags)
            .stdin(Stdio::null())
            .stdout(said.try_clone().expect("a file of the test"))
            .stderr(said)
            .spawn()
            .expect("the binary can be started");
        let (program, env) = parts(&fixture.command());
        let status = Box::new(move || {
            let mut command = Command::new(&program);
            command.envs(env.clone()).args(["status", "--json"]);
            command
        });
        let service = Self { child, status };
        let pid = service.pid();
        wait_until(COMES_UP_WITHIN, "the service is ready", || {
            let status = service.status();
            status["ready"] == true && status["pid"] == pid
        });
        service
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

/// What a command is made of, to make it again.
fn parts(command: &Command) -> (std::ffi::OsString, Vec<(std::ffi::OsString, std::ffi::OsString)>) {
    let env = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    (command.get_program().to_owned(), env.collect())
}
