//! Questions on a terminal, each with a default in brackets; or none, and the defaults.

use std::io::{BufRead, stdin};

use cofferdam_core::AgentName;

use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::terminal;

/// How often an answer that is none is asked for again.
const TRIES: u32 = 3;

/// Asks, or does not.
pub(super) struct Questions {
    asks: bool,
}

impl Questions {
    /// Takes every default.
    pub(super) fn silent() -> Self {
        Self { asks: false }
    }

    /// Asks whoever sits there.
    pub(super) fn on_terminal() -> Self {
        Self { asks: true }
    }

    /// One of these words.
    pub(super) fn choose(
        &mut self,
        question: &str,
        words: &[&str],
        default: &str,
    ) -> Result<String, Failure> {
        let check = |answer: &str| match words.contains(&answer) {
            true => Ok(answer.to_owned()),
            false => Err(format!("type one of: {}", words.join(", "))),
        };
        self.ask(&format!("{question} {}", words.join("|")), default, check)
    }

    /// A name.
    pub(super) fn name(&mut self, question: &str, default: &str) -> Result<AgentName, Failure> {
        self.ask(question, default, |answer| answer.parse::<AgentName>().map_err(|error| error.to_string()))
    }

    /// Yes or no; yes without an answer.
    pub(super) fn yes(&mut self, question: &str) -> Result<bool, Failure> {
        self.ask(&format!("{question} yes|no"), "yes", |answer| match answer {
            "yes" | "y" => Ok(true),
            "no" | "n" => Ok(false),
            _ => Err("type yes or no".to_owned()),
        })
    }

    fn ask<T>(
        &mut self,
        question: &str,
        default: &str,
        check: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Failure> {
        for _ in 0..TRIES {
            let answer = if self.asks { read(question, default)? } else { default.to_owned() };
            match check(&answer) {
                Ok(value) => return Ok(value),
                Err(why) => terminal::write_stderr(&format!("{}\n", crate::sanitize::line(&why))),
            }
        }
        Err(UsageError::new("there was no answer that can be used", "type `cofferdam init` again").into())
    }
}

fn read(question: &str, default: &str) -> Result<String, Failure> {
    terminal::write_stderr(&format!("{question} [{default}] "));
    let mut line = String::new();
    let read = stdin().lock().read_line(&mut line);
    match read {
        Ok(0) => Err(Failure::new(ExitCode::Cancelled, "the input ended, and nothing was written")),
        Ok(_) => {
            let answer = line.trim();
            Ok(if answer.is_empty() { default.to_owned() } else { answer.to_owned() })
        }
        Err(error) => Err(Failure::internal("the answer cannot be read", &error)),
    }
}
