//! Attacks that only the outside can judge: the program says nothing of its own success, and what counts
//! is what the run's outcome, events and leftovers are.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::sys;

/// The last line of a worker, claiming success. Only a worker may be believed that prints it.
pub const FORGED_EVENT: &str = concat!(
    r#"{"v":1,"seq":999999,"at":0,"type":"worker.exited","#,
    r#""data":{"end":{"how":"exited","code":0}}}"#
);

const STEP: usize = 1 << 20;

/// Prints that many bytes in short lines.
///
/// # Errors
/// If the output is closed.
pub fn output(bytes: u64) -> io::Result<()> {
    print(bytes, &[[b'x'; 63].as_slice(), b"\n"].concat())
}

/// Prints that many bytes without a newline.
///
/// # Errors
/// If the output is closed.
pub fn line(bytes: u64) -> io::Result<()> {
    print(bytes, &[b'x'; 64])
}

fn print(bytes: u64, unit: &[u8]) -> io::Result<()> {
    let block = unit.repeat((1 << 16) / unit.len());
    let mut out = io::stdout().lock();
    let mut left = bytes;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        out.write_all(&block[..now])?;
        left -= now as u64;
    }
    out.flush()
}

/// Leaves a process behind that belongs to no parent, session or group of the agent's, and that keeps the
/// agent's output open; then ends at once.
///
/// # Errors
/// If no process can be started.
pub fn outlive(seconds: u64) -> Result<(), Errno> {
    let middle = sys::fork(|| {
        let _ = rustix::process::setsid();
        let _ = sys::fork(|| std::thread::sleep(Duration::from_secs(seconds)));
    })?;
    sys::wait(middle);
    Ok(())
}

/// Prints a worker's last line as its own output, where it must arrive as a message and not as an event.
///
/// # Errors
/// If the output is closed.
pub fn forge() -> io::Result<()> {
    println!("{FORGED_EVENT}");
    io::stdout().flush()
}

/// Takes inotify instances until it has so many or gets no more, says how many, and keeps them until it is told to go: both by
/// files in the folder.
///
/// # Errors
/// If it gets none, or cannot say so.
pub fn watchers(most: usize, folder: &Path) -> io::Result<()> {
    let take = || rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC);
    let mut taken = Vec::new();
    let mut refused = None;
    while taken.len() < most && refused.is_none() {
        match take() {
            Ok(watcher) => taken.push(watcher),
            Err(error) => refused = Some(error),
        }
    }
    if let (true, Some(error)) = (taken.is_empty(), refused) {
        return Err(error.into());
    }
    std::fs::write(folder.join("taken.new"), taken.len().to_string())?;
    std::fs::rename(folder.join("taken.new"), folder.join("taken"))?;
    let deadline = Instant::now() + Duration::from_secs(120);
    while !folder.join("go").exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Uses that much memory, in steps, and gives it back.
pub fn memory(bytes: u64) {
    let steps = bytes / STEP as u64;
    let mut held: Vec<Vec<u8>> = Vec::new();
    for _ in 0..steps {
        // Written to, because memory that is only asked for costs nothing.
        held.push(std::hint::black_box(vec![0xa5; STEP]));
    }
    drop(held);
}

/// Writes that much into a file of the folder, and removes it.
///
/// # Errors
/// If it is stopped by an error; the file is gone then, too.
pub fn disk(folder: &Path, bytes: u64) -> io::Result<()> {
    let path = folder.join(".attack-disk");
    let block = vec![0xa5; STEP];
    let mut file = File::create(&path)?;
    let written = (0..bytes.div_ceil(STEP as u64)).try_for_each(|_| file.write_all(&block));
    let synced = written.and_then(|()| file.sync_all());
    std::fs::remove_file(&path)?;
    synced
}

/// Starts that many processes that sleep, and ends them.
///
/// # Errors
/// The error that stopped it before all were there.
pub fn fork(processes: u32) -> Result<(), Errno> {
    /// A bomb does not stop at the first refusal. What an engine counts of a container is gone with the container, and is
    /// looked at some times a second.
    const GOES_ON: Duration = Duration::from_secs(1);
    let mut children = Vec::new();
    let mut refused: Option<(Errno, Instant)> = None;
    while children.len() < processes as usize && refused.is_none_or(|(_, since)| since.elapsed() < GOES_ON) {
        match sys::fork(|| sys::sleep_forever()) {
            Ok(child) => children.push(child),
            Err(errno) => {
                refused.get_or_insert((errno, Instant::now()));
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
    let end = refused.map_or(Ok(()), |(errno, _)| Err(errno));
    for child in &children {
        let _ = sys::kill(*child, libc::SIGKILL);
    }
    for child in children {
        sys::wait(child);
    }
    end
}

/// Opens that many files at once.
///
/// # Errors
/// The error that stopped it before all were open.
pub fn fds(files: u32) -> Result<(), Errno> {
    let mut held = Vec::new();
    for _ in 0..files {
        held.push(File::open("/dev/null").map_err(|error| crate::errno::of(&error))?);
    }
    Ok(())
}

/// Stands in for the worker or for a process of the host in the control: is called `name`, and sleeps.
///
/// # Errors
/// If the name cannot be set.
pub fn victim(name: &str) -> io::Result<()> {
    std::fs::write("/proc/self/comm", name)?;
    println!("ready");
    io::stdout().flush()?;
    sys::sleep_forever()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{AgentEnd, FromWorker, WorkerExited, worker_line};

    #[test]
    fn the_forged_event_would_be_believed_of_a_worker() {
        let line = FromWorker::parse(FORGED_EVENT).unwrap();
        assert_eq!(line.line_type, worker_line::EXITED);
        let exited: WorkerExited = serde_json::from_value(line.data).unwrap();
        assert_eq!(exited.end, AgentEnd::Exited { code: 0 });
    }
}
