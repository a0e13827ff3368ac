//! Writing to the caller: data to stdout, everything else to stderr.
//!
//! Nothing here panics when the other end is gone: a run goes on, and is recorded, when its terminal was
//! closed or its reader went away.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;
use crate::redaction;

/// Writes to stderr, without secrets.
pub(crate) fn write_stderr(text: &str) {
    let _ = io::stderr().write_all(redaction::redactor().text(text).as_bytes());
}

/// Writes data to stdout. A reader that has seen enough (`| head`) is no failure.
pub(crate) fn write_stdout(data: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    stdout_result(out.write_all(data).and_then(|()| out.flush()))
}

/// What a result of writing to stdout means.
pub(crate) fn stdout_result(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::internal("stdout could not be written", &error))
        }
        _ => Ok(()),
    }
}

/// Whether a person reads stdout.
pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether a person reads stderr.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// A line on stderr that says what goes on, if a person reads it.
pub(crate) fn spinner() -> Option<ProgressBar> {
    stderr_is_terminal().then(|| {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    })
}

/// Writes one JSON value to stdout, on one line.
pub(crate) fn write_json(value: &serde_json::Value) -> Result<(), Failure> {
    write_stdout(format!("{value}\n").as_bytes())
}

/// Writes an answer to stdout: as JSON for programs, or as text for people.
pub(crate) fn write_answer(
    json: bool,
    value: impl FnOnce() -> serde_json::Value,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if json { write_json(&value()) } else { write_stdout(text().as_bytes()) }
}

/// Says things on stderr without disturbing the progress line.
#[derive(Debug, Clone)]
pub(crate) struct Notices {
    bar: Option<ProgressBar>,
}

impl Notices {
    /// Above this progress line.
    pub(crate) fn above(bar: ProgressBar) -> Self {
        Self { bar: Some(bar) }
    }

    /// There is no progress line.
    pub(crate) fn plain() -> Self {
        Self { bar: None }
    }

    /// Says one line. The text is ours, or was cleaned.
    pub(crate) fn say(&self, text: &str) {
        let line = format!("cofferdam: {text}");
        match &self.bar {
            Some(bar) if !bar.is_finished() => bar.println(redaction::redactor().text(&line)),
            _ => write_stderr(&format!("{line}\n")),
        }
    }
}
