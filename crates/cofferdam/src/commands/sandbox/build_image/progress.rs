//! What a person sees of a build: a line for each step, and on a terminal what it says meanwhile.

use std::collections::VecDeque;

use cofferdam_sandbox::docker::BuildProgress;
use indicatif::ProgressBar;

use crate::sanitize;
use crate::terminal::{self, Notices};

/// How many of a step's last lines are kept, to be shown if it fails.
const TAIL_LINES: usize = 20;
/// How much of a line is shown.
const LINE_WIDTH: usize = 200;
/// How much of an instruction is shown.
const INSTRUCTION_WIDTH: usize = 90;

/// Watches one build.
#[derive(Default)]
pub(super) struct BuildWatcher {
    bar: Option<ProgressBar>,
    step: String,
    tail: VecDeque<String>,
}

impl BuildWatcher {
    /// A watcher that draws a line below the steps if stderr is a terminal.
    pub(super) fn on_stderr() -> Self {
        Self { bar: terminal::spinner(), ..Self::default() }
    }

    /// Takes one piece of news.
    pub(super) fn see(&mut self, news: &BuildProgress) {
        match news {
            BuildProgress::Step { number, purpose, instruction } => {
                self.step = step_words(number, *purpose, instruction);
                self.tail.clear();
                self.bar.clone().map_or_else(Notices::plain, Notices::above).say(&self.step);
                self.draw(None);
            }
            BuildProgress::Line(text) => {
                let line = sanitize::short_line(text, LINE_WIDTH);
                if line.is_empty() {
                    return;
                }
                self.draw(Some(&line));
                if self.tail.len() == TAIL_LINES {
                    self.tail.pop_front();
                }
                self.tail.push_back(line);
            }
        }
    }

    /// Removes the line.
    pub(super) fn finish(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Shows what the last step said.
    pub(super) fn show_tail(&self) {
        for line in &self.tail {
            terminal::write_stderr(&format!("| {line}\n"));
        }
    }

    fn draw(&self, line: Option<&str>) {
        if let Some(bar) = &self.bar {
            let parts: Vec<&str> = [Some(self.step.as_str()), line].into_iter().flatten().collect();
            bar.set_message(parts.join(" · "));
        }
    }
}

fn step_words(number: &str, purpose: Option<&str>, instruction: &str) -> String {
    let purpose = purpose.map(|name| format!(" ({name})")).unwrap_or_default();
    format!("step {number}{purpose}: {}", sanitize::short_line(instruction, INSTRUCTION_WIDTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_the_last_step_are_kept_clean() {
        let mut watcher = BuildWatcher::default();
        let step = |number: &str| BuildProgress::Step {
            number: number.to_owned(),
            purpose: None,
            instruction: "RUN true".to_owned(),
        };
        watcher.see(&step("1/2"));
        watcher.see(&BuildProgress::Line("of the first step".to_owned()));
        watcher.see(&step("2/2"));
        for number in 0..30 {
            watcher.see(&BuildProgress::Line(format!("\x1b[1mline {number}\x1b]0;x\x07")));
        }
        assert_eq!((watcher.tail.len(), watcher.tail[0].as_str()), (TAIL_LINES, "line 10"));
    }

    #[test]
    fn a_step_says_what_it_is_for() {
        let long = format!("RUN {}\x1b[2J", "x".repeat(200));
        let words = step_words("3/20", Some("tools"), &long);
        assert!(words.starts_with("step 3/20 (tools): RUN xxx") && words.ends_with('…'), "{words}");
    }
}
