//! What the worker waits for before its agent starts: the job, and then the word.

use std::io;
use std::str::FromStr;
use std::time::Instant;

use cofferdam_core::{Job, MessageKind, RefusalReason, ToWorker};

use super::{Next, Session};
use crate::input::Input;

/// What came of the wait for a job.
pub(super) enum Awaited {
    Job(Box<Job>),
    Cancelled,
    /// Whoever made this sandbox is not there any more.
    Nothing,
}

impl Session {
    pub(super) fn await_job(&mut self) -> io::Result<Awaited> {
        let deadline = Instant::now() + self.options.job_within;
        loop {
            match self.next(Some(deadline))? {
                Next::Input(Input::Host(ToWorker::Job(job))) => return Ok(Awaited::Job(job)),
                Next::Input(Input::Host(ToWorker::Cancel { .. } | ToWorker::End)) => {
                    return Ok(Awaited::Cancelled);
                }
                Next::Deadline => return Ok(Awaited::Nothing),
                Next::Input(Input::Host(ToWorker::Start { .. })) => {
                    self.log("ignored a start that came before its job")?;
                }
                Next::Input(Input::Host(ToWorker::Message { id, .. })) => {
                    self.refuse(id, RefusalReason::NotStarted)?;
                }
                _ => {}
            }
        }
    }

    /// Whether the process of this number is to be started.
    pub(super) fn await_start(&mut self, job: &Job, number: u32) -> io::Result<bool> {
        loop {
            match self.next(None)? {
                Next::Input(Input::Host(ToWorker::Start { number: meant })) if meant == number => {
                    return Ok(true);
                }
                Next::Input(Input::Host(ToWorker::Cancel { .. } | ToWorker::End)) => return Ok(false),
                Next::Input(Input::Host(ToWorker::Job(second))) => self.repeat_job(job, &second)?,
                Next::Input(Input::Host(ToWorker::Message { id, kind, content })) => {
                    match MessageKind::from_str(&kind) {
                        Ok(kind) => self.keep_or_refuse(id, kind, content, RefusalReason::NotStarted)?,
                        Err(_) => self.refuse(id, RefusalReason::UnknownKind)?,
                    }
                }
                _ => {}
            }
        }
    }

    /// A host that does not know whether its job arrived sends it again.
    pub(super) fn repeat_job(&mut self, job: &Job, second: &Job) -> io::Result<()> {
        if second.attempt == job.attempt {
            return Ok(());
        }
        self.log("refused a job of another attempt")
    }
}
