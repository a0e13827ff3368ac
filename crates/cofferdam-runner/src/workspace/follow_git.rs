//! Git as it is followed to its end: its progress is passed on, its words are kept as far as they tell what went wrong.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use cofferdam_core::RepoUrl;

use super::{Error, FetchFault, Progress};

/// Long enough for a large repository over a slow line; short enough that a dead one ends the attempt.
pub(super) const DEADLINE: Duration = Duration::from_secs(900);
/// How often it is asked whether anybody still waits.
pub(super) const CHECK_EVERY: Duration = Duration::from_millis(100);
/// How often what it has written is measured.
pub(super) const MEASURE_EVERY: Duration = Duration::from_secs(1);
/// How much of git's own words is kept for the error.
const MAX_SAID_BYTES: usize = 4 << 10;
/// What is read of what git prints: the names of two refs.
const MAX_PRINTED_BYTES: u64 = 1 << 20;

/// Runs git to its end, passes its progress on, and returns what it printed. `target` is what it writes, and `check_size` says
/// when that is too much.
pub(super) fn run(
    mut command: Command,
    url: &RepoUrl,
    target: &Path,
    check_size: &dyn Fn() -> Result<(), Error>,
    progress: &mut Progress<'_>,
) -> Result<String, Error> {
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
    let said = follow(&mut child, url, check_size, progress)?;
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
        let mut progress = Progress::new(&mut tell, &|| false);
        let said = run(command, &url, Path::new("/tmp"), &|| Ok(()), &mut progress);
        let Err(Error::Fetch { message, .. }) = said else { panic!("{said:?}") };
        assert!(
            message.len() <= 2 * MAX_SAID_BYTES && longest <= MAX_SAID_BYTES,
            "{} {longest}",
            message.len()
        );
    }
}
