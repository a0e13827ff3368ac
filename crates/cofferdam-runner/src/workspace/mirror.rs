//! A bare mirror per address, fetched under a lock, from which checkouts are made.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use cofferdam_broker::GitCredential;
use cofferdam_core::{HostPort, RepoUrl};
use cofferdam_sandbox::remove_tree;
use rustix::fs::FlockOperation;
use sha2::{Digest, Sha256};

use super::{Error, Progress};
use crate::Home;

/// A mirror that this process holds the lock of.
#[derive(Debug)]
pub(super) struct Mirror {
    path: PathBuf,
    /// The name of an address in the file system.
    pub(super) key: String,
    _lock: File,
}

/// Long enough for a large repository over a slow line; short enough that a dead one ends the attempt.
const DEADLINE: Duration = Duration::from_secs(900);
/// How often it is asked whether anybody still waits.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// Where git's helper finds what it answers with.
const USER: &str = "COFFERDAM_FETCH_USER";
const TOKEN: &str = "COFFERDAM_FETCH_TOKEN";
/// How much of git's own words is kept for the error.
const MAX_SAID_BYTES: usize = 4 << 10;

impl Mirror {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the mirror of an address and brings it up to date. `wanted` is what it is fetched for: a full
    /// commit that is already here needs no network.
    pub(super) fn fetch(
        home: &Home,
        url: &RepoUrl,
        wanted: Option<&str>,
        credential: Option<&GitCredential>,
        progress: &mut Progress<'_>,
    ) -> Result<Self, Error> {
        let key: String = Sha256::digest(url.as_str()).iter().map(|byte| format!("{byte:02x}")).collect();
        let path = home.mirrors().join(format!("{key}.git"));
        let lock = lock(&home.mirrors().join(format!("{key}.lock")), url, progress)?;
        let mirror = Self { path, key, _lock: lock };
        let git = || fetching_git(url, credential);
        if !mirror.path.exists() {
            mirror.clone_new(url, git(), progress)?;
        } else if !wanted.is_some_and(|wanted| mirror.has(wanted)) {
            mirror.update(url, wanted, &git, progress)?;
        }
        Ok(mirror)
    }

    /// Cloned under another name, so that a half-fetched mirror is never taken for a whole one.
    fn clone_new(
        &self,
        url: &RepoUrl,
        mut command: Command,
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        let partial = self.path.with_extension("partial");
        remove_tree(&partial).map_err(|error| Error::writing(&partial, error))?;
        command.args(["clone", "--mirror", "--progress", "--no-recurse-submodules", "--template=", "--"]);
        command.arg(url.as_str()).arg(&partial);
        run(command, url, &partial, progress)?;
        fs::rename(&partial, &self.path).map_err(|error| Error::writing(&self.path, error))
    }

    fn update(
        &self,
        url: &RepoUrl,
        wanted: Option<&str>,
        git: &dyn Fn() -> Command,
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        let mut command = git();
        command.arg("--git-dir").arg(&self.path);
        command.args(["fetch", "--prune", "--progress", "--no-recurse-submodules", "--no-write-fetch-head"]);
        command.args(["--no-auto-maintenance", "--", url.as_str(), "+refs/*:refs/*"]);
        run(command, url, &self.path, progress)?;
        // A fetch leaves the mirror's HEAD alone, and the default branch may have another name by now.
        if wanted.is_none() {
            let mut command = git();
            command.args(["ls-remote", "--symref", "--", url.as_str(), "HEAD"]);
            let said = run(command, url, &self.path, progress)?;
            let head = said.lines().find_map(|line| line.strip_prefix("ref: ")?.strip_suffix("\tHEAD"));
            if let Some(head) = head.filter(|head| head.starts_with("refs/heads/") && !head.contains("..")) {
                let file = self.path.join("HEAD");
                fs::write(&file, format!("ref: {head}\n")).map_err(|error| Error::writing(&file, error))?;
            }
        }
        Ok(())
    }

    fn has(&self, commit: &str) -> bool {
        let is_full = matches!(commit.len(), 40 | 64) && commit.bytes().all(|b| b.is_ascii_hexdigit());
        let mut command = crate::pristine_git::command(Path::new("git"), &self.path);
        command.args(["cat-file", "-e", &format!("{commit}^{{commit}}")]).stderr(Stdio::null());
        is_full && command.status().is_ok_and(|status| status.success())
    }
}

/// Waits for whoever is fetching the same address.
fn lock(path: &Path, url: &RepoUrl, progress: &mut Progress<'_>) -> Result<File, Error> {
    let open = File::options().create(true).truncate(false).write(true).open(path);
    let file = open.map_err(|error| Error::writing(path, error))?;
    let started = Instant::now();
    let mut told = false;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if started.elapsed() < DEADLINE => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(Error::FetchDeadline { url: url.to_string(), within: DEADLINE });
            }
            Err(error) => return Err(Error::writing(path, error.into())),
        }
        if !told {
            progress.tell("waiting for another fetch of the same repository".to_owned());
            told = true;
        }
        progress.check()?;
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Git with the caller's configuration, because that is where their credentials and ssh settings are, but
/// without hooks, prompts, submodules and any protocol beyond the address's own: a server can redirect,
/// and the caller's `insteadOf` rewrite, to `ext::` and so to any program.
fn fetching_git(url: &RepoUrl, credential: Option<&GitCredential>) -> Command {
    let mut command = Command::new("git");
    let is_local = url.as_str().get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    for setting in [
        "protocol.allow=never",
        "protocol.https.allow=always",
        "protocol.ssh.allow=always",
        "protocol.git.allow=always",
        if is_local { "protocol.file.allow=always" } else { "protocol.file.allow=never" },
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "submodule.recurse=false",
        "fetch.recurseSubmodules=false",
        "gc.auto=0",
        "maintenance.auto=false",
    ] {
        command.args(["-c", setting]);
    }
    // Variables that would make git work on another repository than the one it is told.
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_ALLOW_PROTOCOL",
    ] {
        command.env_remove(name);
    }
    command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C").stdin(Stdio::null());
    if let (Some(host), Some(credential)) = (url.https_host(), credential) {
        answer_with(&mut command, &host, credential);
    }
    command
}

/// Makes git answer this host, if it asks, with the credential that the broker would use. It is in the
/// environment of git alone, and not in its arguments, which everybody on the machine can read. The caller's
/// own helpers are left out: git would hand them the credential to keep, and some keep it on the disk.
fn answer_with(command: &mut Command, host: &HostPort, credential: &GitCredential) {
    let helper = format!(
        "credential.https://{host}.helper=!f() {{ test \"$1\" != get || \
         printf 'username=%s\\npassword=%s\\n' \"${USER}\" \"${TOKEN}\"; }}; f"
    );
    command.args(["-c", "credential.helper=", "-c", &helper]);
    command.env(USER, &credential.user).env(TOKEN, &credential.token);
}

/// Runs git to its end, passes its progress on, and returns what it printed.
fn run(
    mut command: Command,
    url: &RepoUrl,
    target: &Path,
    progress: &mut Progress<'_>,
) -> Result<String, Error> {
    let spawned = command.current_dir("/").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::GitMissing,
        _ => Error::Io { action: "start", path: "git".into(), source: error },
    })?;
    let mut stdout = child.stdout.take().expect("stdout was piped a few lines above");
    let printed = std::thread::spawn(move || {
        let mut text = Vec::new();
        stdout.read_to_end(&mut text).map(|_| text).unwrap_or_default()
    });
    let said = follow(&mut child, url, progress)?;
    let status = child.wait().map_err(|error| Error::writing(target, error))?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&printed.join().unwrap_or_default()).into_owned());
    }
    if said.contains("No space left on device") || said.contains("Disk quota exceeded") {
        return Err(Error::DiskFull { path: target.to_owned() });
    }
    let last: Vec<_> =
        said.lines().filter(|line| line.starts_with("fatal: ") || line.starts_with("error: ")).collect();
    let message = if last.is_empty() { said.trim().to_owned() } else { last.join("; ") };
    Err(Error::Fetch { url: url.to_string(), message })
}

/// Passes git's progress on until it ends or its time is up; returns the end of what it said.
fn follow(child: &mut Child, url: &RepoUrl, progress: &mut Progress<'_>) -> Result<String, Error> {
    let mut stderr = child.stderr.take().expect("stderr was piped by the caller");
    // A few lines: a reader that falls behind slows git down instead of filling memory.
    let (lines, received) = mpsc::sync_channel::<String>(16);
    std::thread::spawn(move || {
        let mut line = Vec::new();
        let mut chunk = [0_u8; 4096];
        while let Ok(count @ 1..) = stderr.read(&mut chunk) {
            for &byte in &chunk[..count] {
                if !matches!(byte, b'\r' | b'\n') {
                    line.push(byte);
                } else if !line.is_empty()
                    && lines.send(String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned()).is_err()
                {
                    return;
                }
            }
        }
        let _ = lines.send(String::from_utf8_lossy(&line).into_owned());
    });
    let started = Instant::now();
    let mut said = String::new();
    loop {
        match received.recv_timeout(CHECK_EVERY) {
            Ok(line) => {
                if said.len() < MAX_SAID_BYTES {
                    said.push_str(&line);
                    said.push('\n');
                } else if line.starts_with("fatal: ") || line.starts_with("error: ") {
                    said = format!("{line}\n");
                }
                progress.tell(line.trim().to_owned());
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(said),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        let late = || Error::FetchDeadline { url: url.to_string(), within: DEADLINE };
        let in_time = if started.elapsed() < DEADLINE { Ok(()) } else { Err(late()) };
        if let Err(error) = in_time.and_then(|()| progress.check()) {
            // Its helpers end when their pipes to it break.
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_core::LocalUrls;

    use super::*;

    fn git_for(url: &str) -> Command {
        let url = RepoUrl::parse(url, LocalUrls::Allow).unwrap();
        let credential = GitCredential { user: "me".to_owned(), token: "a-secret-token".to_owned() };
        fetching_git(&url, Some(&credential))
    }

    #[test]
    fn a_token_is_in_no_argument_and_meant_for_its_host_alone() {
        let git = git_for("https://host.example:8443/a/b.git");
        let arguments: Vec<_> = git.get_args().map(|text| text.to_string_lossy().into_owned()).collect();
        assert!(arguments.iter().all(|text| !text.contains("a-secret-token")), "{arguments:?}");
        assert!(
            arguments.iter().any(|text| text.starts_with("credential.https://host.example:8443.helper=!")),
            "{arguments:?}"
        );
        assert!(git.get_envs().any(|(name, value)| name == TOKEN && value.is_some()));
    }

    #[test]
    fn a_token_is_not_for_addresses_that_are_not_https() {
        for url in ["ssh://git@host.example/a", "git@host.example:a", "git://host.example/a", "file:///a"] {
            assert!(git_for(url).get_envs().all(|(name, _)| name != TOKEN), "{url}");
        }
    }
}
