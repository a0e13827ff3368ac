//! A bare mirror per address, fetched under a lock, from which checkouts are made.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use cofferdam_core::RepoUrl;
use cofferdam_net::AddressCheck;
use cofferdam_sandbox::remove_tree;
use rustix::fs::FlockOperation;
use sha2::{Digest, Sha256};

use super::fetching_git::{fetching_git, foreign_git};
use super::kept::bytes_of;
use super::tunnel::{CheckedFetch, Tunnel};
use super::{Error, FetchFault, Progress, Remote};
use crate::home::Home;
use crate::programs::Git;

/// A mirror that this process holds the lock of.
#[derive(Debug)]
pub(super) struct Mirror {
    path: PathBuf,
    /// The name of an address in the file system.
    pub(super) key: String,
    /// What it is read and fetched with.
    pub(super) git: Git,
    lock: File,
}

/// The end of the name of a mirror's lock.
pub(super) const LOCK: &str = "lock";

/// Long enough for a large repository over a slow line; short enough that a dead one ends the attempt.
const DEADLINE: Duration = Duration::from_secs(900);
/// How often it is asked whether anybody still waits.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// How often what it has written is measured.
const MEASURE_EVERY: Duration = Duration::from_secs(1);
/// How much of git's own words is kept for the error.
const MAX_SAID_BYTES: usize = 4 << 10;
/// What is read of what git prints: the names of two refs.
const MAX_PRINTED_BYTES: u64 = 1 << 20;

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
        remote: Remote<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<Self, Error> {
        // What the user's own credentials have opened is not there for others.
        let whose = if remote.checked.is_some() { "for others " } else { "" };
        let key = Sha256::digest(format!("{whose}{url}")).iter().map(|byte| format!("{byte:02x}")).collect();
        let path = home.mirrors().join(format!("{key}.git"));
        let lock = lock(&home.mirrors().join(format!("{key}.{LOCK}")), url, progress)?;
        let mirror = Self { path, key, git: Git::of_this_process(None)?, lock };
        if mirror.path.exists() && wanted.is_some_and(|wanted| mirror.has(wanted)) {
            return Ok(mirror);
        }
        let tunnel = remote.checked.map(|checked| checked_way(url, checked)).transpose()?.flatten();
        let fetching = || match (remote.checked, &tunnel) {
            (None, _) => fetching_git(&mirror.git, url, remote.credential),
            (Some(_), tunnel) => foreign_git(&mirror.git, url, remote.credential, tunnel.as_ref()),
        };
        let fetched = match mirror.path.exists() {
            false => mirror.clone_new(url, fetching(), remote.checked, progress),
            true => mirror.update(url, wanted, &fetching, remote.checked, progress),
        };
        match (fetched, tunnel.and_then(|tunnel| tunnel.trouble())) {
            // What the tunnel saw is the cause of what git says.
            (Err(Error::Fetch { url, .. }), Some((fault, message))) => {
                Err(Error::Fetch { url, fault, message })
            }
            (fetched, _) => fetched.map(|()| mirror),
        }
    }

    /// Notes when it was last used, which is the time of its lock.
    pub(super) fn note_use(&self, at: SystemTime) -> Result<(), Error> {
        self.lock.set_modified(at).map_err(|error| Error::writing(&self.path, error))
    }

    /// Cloned under another name, so that a half-fetched mirror is never taken for a whole one.
    fn clone_new(
        &self,
        url: &RepoUrl,
        mut command: Command,
        bound: Option<&CheckedFetch>,
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        let partial = self.path.with_extension("partial");
        remove_tree(&partial).map_err(|error| Error::writing(&partial, error))?;
        command.args(["clone", "--mirror", "--progress", "--no-recurse-submodules", "--template=", "--"]);
        command.arg(url.as_str()).arg(&partial);
        if let Err(error) = run(command, url, &partial, bound, progress) {
            // The first error is the one to tell; what stays is removed with the next try.
            let _ = remove_tree(&partial);
            return Err(error);
        }
        fs::rename(&partial, &self.path).map_err(|error| Error::writing(&self.path, error))
    }

    fn update(
        &self,
        url: &RepoUrl,
        wanted: Option<&str>,
        git: &dyn Fn() -> Command,
        bound: Option<&CheckedFetch>,
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        let mut command = git();
        command.arg("--git-dir").arg(&self.path);
        command.args(["fetch", "--prune", "--progress", "--no-recurse-submodules", "--no-write-fetch-head"]);
        command.args(["--no-auto-maintenance", "--", url.as_str(), "+refs/*:refs/*"]);
        run(command, url, &self.path, bound, progress)?;
        // A fetch leaves the mirror's HEAD alone, and the default branch may have another name by now.
        if wanted.is_none() {
            let mut command = git();
            command.args(["ls-remote", "--symref", "--", url.as_str(), "HEAD"]);
            let said = run(command, url, &self.path, bound, progress)?;
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
        let mut command = crate::pristine_git::command(&self.git, &self.path);
        command.args(["cat-file", "-e", &format!("{commit}^{{commit}}")]).stderr(Stdio::null());
        is_full && command.status().is_ok_and(|status| status.success())
    }
}

/// Waits for whoever is fetching the same address.
fn lock(path: &Path, url: &RepoUrl, progress: &mut Progress<'_>) -> Result<File, Error> {
    let started = Instant::now();
    let mut told = false;
    loop {
        if let Some(file) = try_lock(path)? {
            return Ok(file);
        }
        if started.elapsed() >= DEADLINE {
            return Err(Error::FetchDeadline { url: url.to_string(), within: DEADLINE });
        }
        if !told {
            progress.tell("waiting for another fetch of the same repository".to_owned());
            told = true;
        }
        progress.check()?;
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The lock, unless somebody holds it. Whoever removes a mirror removes its lock as well, and whoever had it open by then
/// holds a lock without a name, which keeps nobody out: it does not count.
pub(super) fn try_lock(path: &Path) -> Result<Option<File>, Error> {
    let failed = |error: io::Error| Error::writing(path, error);
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(failed)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(failed(error.into())),
    }
    let held = file.metadata().map_err(failed)?;
    let is_named =
        fs::metadata(path).is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino()));
    Ok(is_named.then_some(file))
}

/// The way of a fetch for somebody else: over https through a tunnel to its one host. Other addresses need the operator's
/// word, which is what every address counts as that may be anywhere.
fn checked_way(url: &RepoUrl, checked: &CheckedFetch) -> Result<Option<Tunnel>, Error> {
    let refused = |message: &str| Error::Fetch {
        url: url.to_string(),
        fault: FetchFault::Address,
        message: message.to_owned(),
    };
    match (url.https_host(), &checked.check) {
        (Some(host), _) => Tunnel::open(checked, host).map(Some).map_err(|source| Error::Io {
            action: "make a tunnel to",
            path: url.as_str().into(),
            source,
        }),
        // A folder of this machine needs no way, and was judged by `service.allowed_roots`.
        (None, _) if url.folder().is_some() => Ok(None),
        (None, AddressCheck::Trusted) => Ok(None),
        (None, AddressCheck::Listed(_)) => {
            Err(refused("only https addresses are fetched that `service.allowed_repos` does not list"))
        }
    }
}

/// Runs git to its end, passes its progress on, and returns what it printed. `target` is what it writes, within a bound.
fn run(
    mut command: Command,
    url: &RepoUrl,
    target: &Path,
    bound: Option<&CheckedFetch>,
    progress: &mut Progress<'_>,
) -> Result<String, Error> {
    let check_size = || match bound {
        Some(checked) if bytes_of(target) > checked.most_bytes => Err(checked.too_large(url)),
        _ => Ok(()),
    };
    // One that is too large already does not grow with every try.
    check_size()?;
    let spawned = command.current_dir("/").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child =
        spawned.map_err(|error| Error::Io { action: "start", path: "git".into(), source: error })?;
    let mut stdout = child.stdout.take().expect("stdout was piped a few lines above");
    let printed = std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = (&mut stdout).take(MAX_PRINTED_BYTES).read_to_end(&mut text);
        // The rest is taken and dropped, or git would wait for its reader.
        let _ = io::copy(&mut stdout, &mut io::sink());
        read.map(|_| text).unwrap_or_default()
    });
    let said = follow(&mut child, url, &check_size, progress)?;
    let status = child.wait().map_err(|error| Error::writing(target, error))?;
    if status.success() {
        check_size()?;
        return Ok(String::from_utf8_lossy(&printed.join().unwrap_or_default()).into_owned());
    }
    if said.contains("No space left on device") || said.contains("Disk quota exceeded") {
        return Err(Error::DiskFull { path: target.to_owned() });
    }
    let last: Vec<_> =
        said.lines().filter(|line| line.starts_with("fatal: ") || line.starts_with("error: ")).collect();
    let message = if last.is_empty() { said.trim().to_owned() } else { last.join("; ") };
    Err(Error::Fetch { url: url.to_string(), fault: FetchFault::of(&said), message })
}

/// Passes git's progress on until it ends, its time is up or it has written too much; returns the end of what it said.
fn follow(
    child: &mut Child,
    url: &RepoUrl,
    check_size: &dyn Fn() -> Result<(), Error>,
    progress: &mut Progress<'_>,
) -> Result<String, Error> {
    let mut stderr = child.stderr.take().expect("stderr was piped by the caller");
    // A few lines: a reader that falls behind slows git down instead of filling memory.
    let (lines, received) = mpsc::sync_channel::<String>(16);
    std::thread::spawn(move || {
        let mut line = Vec::new();
        let mut chunk = [0_u8; 4096];
        while let Ok(count @ 1..) = stderr.read(&mut chunk) {
            for &byte in &chunk[..count] {
                if !matches!(byte, b'\r' | b'\n') {
                    // What a host says without an end would fill the memory of this process.
                    if line.len() < MAX_SAID_BYTES {
                        line.push(byte);
                    }
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
    let mut measured = started;
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
        let in_size = if measured.elapsed() < MEASURE_EVERY {
            Ok(())
        } else {
            measured = Instant::now();
            check_size()
        };
        if let Err(error) = in_time.and(in_size).and_then(|()| progress.check()) {
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

    /// The attack: a git host sends a line without an end, which would fill the memory of whoever keeps it.
    #[test]
    fn little_is_kept_of_what_git_says_however_long_a_line_is() {
        let mut command = Command::new("/bin/sh");
        command.args([
            "-c",
            "head -c 20000000 /dev/zero | tr '\\0' x | tee /dev/stderr; echo fatal: over >&2; exit 1",
        ]);
        let url = RepoUrl::parse("https://host.example/a", LocalUrls::Allow).unwrap();
        let mut longest = 0;
        let mut tell = |line: String| longest = longest.max(line.len());
        let said = run(command, &url, Path::new("/tmp"), None, &mut Progress::new(&mut tell, &|| false));
        let Err(Error::Fetch { message, .. }) = said else { panic!("{said:?}") };
        assert!(
            message.len() <= 2 * MAX_SAID_BYTES && longest <= MAX_SAID_BYTES,
            "{} {longest}",
            message.len()
        );
    }
}
