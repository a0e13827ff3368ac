//! The role: reads its call, does the job and writes the answer.

use std::fs;
use std::io::{self, Read as _};
use std::process::ExitCode;

use super::{Answer, Job, SealedCall, limits, page, project};

/// Deeply nested pages are read by recursion. The memory is taken as it is needed.
const STACK_BYTES: usize = 128 << 20;

/// A call holds a path, a pattern, or an address.
const LONGEST_CALL: u64 = 1 << 20;

/// The role's main function. It finds its call at its stdin, which nobody else can read.
#[must_use]
pub fn sealed_main() -> ExitCode {
    let mut text = Vec::new();
    let read = io::stdin().take(LONGEST_CALL).read_to_end(&mut text);
    let call = read.ok().and_then(|_| serde_json::from_slice::<SealedCall>(&text).ok());
    let Some(call) = call else {
        eprintln!("usage: cofferdam {} <CALL (a role that Cofferdam starts itself)", SealedCall::ROLE);
        return ExitCode::FAILURE;
    };
    let done = limits::set().map_err(|error| error.to_string()).and_then(|()| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = thread.spawn(move || answer(&call)).map_err(|error| error.to_string())?;
        thread.join().unwrap_or_else(|_| Err("it panicked".to_owned()))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn answer(call: &SealedCall) -> Result<(), String> {
    let text = serde_json::to_vec(&work(call)).map_err(|error| error.to_string())?;
    fs::write(call.out.join(SealedCall::ANSWER), text).map_err(|error| error.to_string())
}

/// Does a job in this process, without its walls and limits: for [`sealed_main`], and for tests of what it reads.
#[must_use]
pub fn work(call: &SealedCall) -> Answer {
    try_work(call).unwrap_or_else(|reason| Answer::Refused { reason })
}

/// The error is for the model.
fn try_work(call: &SealedCall) -> Result<Answer, String> {
    let text = |text| Answer::Text { text };
    match &call.job {
        Job::Page(job) => {
            let path = call.input.as_deref().ok_or("there is no page")?;
            page::read(job, path).map(Answer::Page)
        }
        Job::Read(job) => project::read(&project::open(call)?, job).map(text),
        Job::Grep(job) => project::grep(&project::open(call)?, job).map(text),
        Job::Glob(job) => project::glob(&project::open(call)?, job).map(text),
    }
}
