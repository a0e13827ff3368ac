//! The runtime's command: where it is, what of the environment it gets, and how it is asked for one thing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cofferdam_core::RuntimeCommand;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

use crate::backend::{Refusal, RefusalKind};
use crate::options::Caller;
use crate::supervision::Runtime;

/// Longer than any single answer takes.
const DEADLINE: Duration = Duration::from_secs(30);
/// No answer that is read is longer.
const LONGEST_ANSWER: u64 = 1 << 20;

/// What runtimes and their clients find their own things by. Nothing else of the caller's environment reaches them:
/// keys and tokens are in it.
const PASSED: [&str; 19] = [
    "USER",
    "LOGNAME",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "CONTAINER_HOST",
    "CONTAINER_CONNECTION",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINERD_ADDRESS",
    "CONTAINERD_NAMESPACE",
    "NERDCTL_TOML",
];

/// What a runtime answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its exit status; `None` if a signal or the deadline ended it.
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Answer {
    pub(crate) fn is_ok(&self) -> bool {
        self.code == Some(0)
    }

    /// What it said, for people.
    pub(crate) fn message(&self) -> String {
        match [&self.errors, &self.output].into_iter().find(|text| !text.trim().is_empty()) {
            Some(text) => text.trim().to_owned(),
            None => match self.code {
                Some(code) => format!("it ended with status {code} and without a word"),
                None => format!("it did not answer within {} s", DEADLINE.as_secs()),
            },
        }
    }
}

impl Runtime {
    /// Looks the command up, on the caller's PATH unless it is a path itself.
    pub(crate) fn find(command: &RuntimeCommand, caller: &Caller) -> Result<Self, Refusal> {
        let program = match command.as_str().starts_with('/') {
            true => Some(PathBuf::from(command.as_str())).filter(|path| is_program(path)),
            false => {
                let folders = caller.path.iter().filter(|folder| folder.is_absolute());
                folders.map(|folder| folder.join(command.as_str())).find(|path| is_program(path))
            }
        };
        let program = program.ok_or_else(|| {
            Refusal::new(
                format!("there is no container runtime `{command}` on this machine"),
                "install it, or set sandbox.apple.runtime_command in settings.json to one that is there, \
                     such as `podman`",
            )
            .about(RefusalKind::RuntimeMissing)
        })?;
        let text = |path: &Path| path.to_str().map(str::to_owned);
        let path: Vec<String> = caller.path.iter().filter_map(|folder| text(folder)).collect();
        let mut env = BTreeMap::from([("PATH".to_owned(), path.join(":"))]);
        env.extend(caller.home.as_deref().and_then(text).map(|home| ("HOME".to_owned(), home)));
        env.extend(PASSED.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))));
        Ok(Self { program, env })
    }

    /// Its name, for people.
    pub(crate) fn name(&self) -> String {
        self.program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Asks it one thing, and waits for the answer.
    pub(crate) fn ask(&self, arguments: &[&str]) -> io::Result<Answer> {
        self.ask_within(arguments, DEADLINE)
    }

    /// The same with another deadline.
    ///
    /// Its output goes to files in memory: whatever it leaves running in the background may hold them open.
    pub(crate) fn ask_within(&self, arguments: &[&str], deadline: Duration) -> io::Result<Answer> {
        let file = || memfd_create("answer", MemfdFlags::CLOEXEC).map(File::from);
        let (output, errors) = (file()?, file()?);
        let mut command = Command::new(&self.program);
        command.args(arguments).env_clear().envs(&self.env).current_dir("/").stdin(Stdio::null());
        command.stdout(output.try_clone()?).stderr(errors.try_clone()?);
        let mut child = command.spawn()?;
        let pid = Pid::from_raw(child.id().cast_signed()).expect("a child's id is positive");
        let ended = pidfd_open(pid, PidfdFlags::empty())?;
        let timeout = Timespec { tv_sec: deadline.as_secs().cast_signed(), tv_nsec: 0 };
        let mut polled = [PollFd::new(&ended, PollFlags::IN)];
        if poll(&mut polled, Some(&timeout)).is_ok_and(|ready| ready == 0) {
            child.kill()?;
        }
        let code = child.wait()?.code();
        Ok(Answer { code, output: text_of(output)?, errors: text_of(errors)? })
    }

    /// The same without holding up the thread.
    pub(crate) async fn answer(&self, arguments: Vec<String>) -> io::Result<Answer> {
        self.answer_within(arguments, DEADLINE).await
    }

    /// The same with another deadline.
    pub(crate) async fn answer_within(
        &self,
        arguments: Vec<String>,
        deadline: Duration,
    ) -> io::Result<Answer> {
        let runtime = self.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            runtime.ask_within(&arguments, deadline)
        });
        asked.await.unwrap_or_else(|panic| Err(io::Error::other(panic)))
    }

    /// What it knows of a container or of nothing.
    pub(crate) fn inspect(&self, container: &str) -> Option<Value> {
        let answer = self.ask(&["inspect", container]).ok().filter(Answer::is_ok)?;
        match serde_json::from_str(&answer.output).ok()? {
            Value::Array(found) => found.into_iter().next(),
            found => Some(found),
        }
    }

    /// Kills every process of a container, also of a paused one. Whether there was one.
    pub(crate) fn kill(&self, container: &str) -> bool {
        let kill = || self.ask(&["kill", container]).is_ok_and(|answer| answer.is_ok());
        kill() || (self.ask(&["unpause", container]).is_ok_and(|answer| answer.is_ok()) && kill())
    }

    /// Kills a container and removes it. One that is gone is fine; a runtime that does not answer is not.
    pub(crate) fn remove(&self, container: &str) -> io::Result<()> {
        // One that has ended goes at once. Forced, podman would ask a living one to end and wait for it.
        if self.ask(&["rm", container])?.is_ok() {
            return Ok(());
        }
        self.kill(container);
        let answer = self.ask(&["rm", "-f", container])?;
        // Some call it an error that there is nothing to remove.
        if answer.is_ok() || (self.inspect(container).is_none() && self.answers()?.is_ok()) {
            return Ok(());
        }
        Err(io::Error::other(answer.message()))
    }

    /// Whether it and the service behind it, if it has one, answer at all.
    pub(crate) fn answers(&self) -> io::Result<Answer> {
        // Apple's has a service that is asked for in another way.
        match self.ask(&["version"])? {
            answer if answer.is_ok() => Ok(answer),
            refused => Ok(self.ask(&["system", "status"]).ok().filter(Answer::is_ok).unwrap_or(refused)),
        }
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn text_of(mut file: File) -> io::Result<String> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(LONGEST_ANSWER).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(folder: &Path) -> Caller {
        Caller { home: None, path: vec!["relative".into(), folder.to_owned()], locale: BTreeMap::new() }
    }

    fn program(folder: &Path, text: &str) -> Runtime {
        let path = folder.join("runtime");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let command = path.to_str().unwrap().parse().unwrap();
        Runtime::find(&command, &caller(folder)).unwrap()
    }

    #[test]
    fn a_runtime_is_found_on_the_callers_path_and_its_absence_says_what_to_set() {
        let folder = tempfile::tempdir().unwrap();
        let at = program(folder.path(), "true");
        let named = "runtime".parse().unwrap();
        assert_eq!(Runtime::find(&named, &caller(folder.path())).unwrap(), at);
        for missing in ["no-such-runtime", "/no/such/runtime"] {
            let refusal = Runtime::find(&missing.parse().unwrap(), &caller(folder.path())).unwrap_err();
            assert!(refusal.problem.contains(missing), "{refusal:?}");
            assert!(refusal.remedy.contains("sandbox.apple.runtime_command"), "{refusal:?}");
        }
    }

    #[test]
    fn an_answer_has_both_outputs_and_the_status() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = program(folder.path(), "echo out \"$@\"; echo err >&2; exit 3");
        let answer = runtime.ask(&["a b", "$(c)"]).unwrap();
        assert_eq!((answer.code, answer.output.as_str()), (Some(3), "out a b $(c)\n"));
        assert_eq!(answer.message(), "err");
    }

    #[test]
    fn a_runtime_that_does_not_answer_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = program(folder.path(), "exec /bin/sleep 1000");
        let answer = runtime.ask_within(&[], Duration::ZERO).unwrap();
        assert_eq!(answer.code, None);
    }

    #[test]
    fn a_runtime_is_given_no_variable_that_is_not_named() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = program(folder.path(), "env");
        let output = runtime.ask(&[]).unwrap().output;
        let names: Vec<&str> = output.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        // The shell's own.
        let known = ["PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_"];
        assert!(names.iter().all(|name| PASSED.contains(name) || known.contains(name)), "{output}");
    }

    #[test]
    fn a_container_that_is_gone_is_removed_and_one_behind_a_dead_service_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let gone = program(folder.path(), "[ \"$1\" = version ]");
        gone.remove("x").unwrap();
        let dead = program(folder.path(), "echo 'no service' >&2; exit 1");
        assert_eq!(dead.remove("x").unwrap_err().to_string(), "no service");
    }
}
