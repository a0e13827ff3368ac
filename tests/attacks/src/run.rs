//! Makes every attempt in a process of its own, with a deadline.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::attempt::{Attempt, Ending, Report};
use crate::target::Target;
use crate::{ATTEMPTS, ON_WORKSPACE, sys};

/// The longest that one attempt may take.
const DEADLINE: Duration = Duration::from_secs(5);

/// Makes every attempt and hands each report to `sink`. The caller must have one thread.
pub fn run_all(target: &Target, mut sink: impl FnMut(Report)) {
    for attempt in ATTEMPTS.iter().copied().flatten() {
        sink(run_one(attempt, target));
    }
}

/// The same for every way to change what the workspace holds.
pub fn run_on_workspace(target: &Target, mut sink: impl FnMut(Report)) {
    for attempt in ON_WORKSPACE {
        sink(run_one(attempt, target));
    }
}

/// One attempt, in a child and a process group of its own, so that it can disturb no other one.
fn run_one(attempt: &Attempt, target: &Target) -> Report {
    let failed = |what: &str| Report::new(attempt, Ending::NotPossible, None, what.to_owned());
    let Ok((reader, writer)) = pipe_with(PipeFlags::CLOEXEC) else { return failed("no pipe") };
    let own_end = writer.try_clone();
    let child = sys::fork(move || {
        let _ = rustix::process::setpgid(None, None);
        let report = Report::of(attempt, (attempt.run)(target));
        if let (Ok(writer), Ok(line)) = (own_end, serde_json::to_string(&report)) {
            let _ = std::fs::File::from(writer).write_all(line.as_bytes());
        }
    });
    drop(writer);
    let Ok(child) = child else { return failed("no process") };
    let text = read_until(reader, Instant::now() + DEADLINE);
    let _ = sys::kill(-child, libc::SIGKILL);
    let _ = sys::kill(child, libc::SIGKILL);
    let signal = sys::wait(child);
    match (text, signal) {
        (None, _) => Report::new(attempt, Ending::TimedOut, None, "no answer in 5 s".to_owned()),
        (Some(text), signal) => serde_json::from_str(&text).unwrap_or_else(|_| {
            Report::new(attempt, Ending::Killed, None, format!("died by signal {signal:?}"))
        }),
    }
}

/// Everything up to end-of-file, or nothing when the deadline comes first.
fn read_until(reader: OwnedFd, deadline: Instant) -> Option<String> {
    let mut file = std::fs::File::from(reader);
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.checked_duration_since(Instant::now())?;
        let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let ready = poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&left)).ok()?;
        if ready == 0 {
            return None;
        }
        match file.read(&mut buffer).ok()? {
            0 => return String::from_utf8(text).ok(),
            read => text.extend_from_slice(&buffer[..read]),
        }
        // A report is one object. Whatever grandchildren still hold the pipe, it is complete.
        if serde_json::from_slice::<Report>(&text).is_ok() {
            return String::from_utf8(text).ok();
        }
    }
}
