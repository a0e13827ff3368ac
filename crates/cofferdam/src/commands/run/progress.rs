//! What a person sees while a run is under way: one line on a terminal, plain lines elsewhere.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use cofferdam_core::{Event, EventType};
use cofferdam_runner::{Progress, Stage};
use indicatif::ProgressBar;
use serde_json::Value;

use super::tally::Tally;
use crate::sanitize;
use crate::terminal::{self, Notices};
use crate::units::show_duration;

/// How many of the agent's last lines are kept, to be shown if it fails.
const TAIL_LINES: usize = 20;
/// How much of a line is shown.
const LINE_WIDTH: usize = 200;

/// How much of a refusal is shown: what to type is at its end.
const REFUSAL_WIDTH: usize = 400;

/// Watches one run. The default one shows nothing and only remembers.
#[derive(Default)]
pub(crate) struct Watcher {
    bar: Option<ProgressBar>,
    /// Whether each of the agent's lines is shown as it comes: where there is no line to draw over.
    echo: bool,
    stage: String,
    tail: VecDeque<String>,
    tally: Tally,
    /// Refusals that were shown. A tool that is refused asks again, and equal ones are counted in the summary.
    told: BTreeSet<String>,
}

impl Watcher {
    /// A watcher that draws a line if stderr is a terminal.
    pub(crate) fn on_stderr() -> Self {
        let bar = terminal::spinner();
        Self { echo: bar.is_none(), bar, ..Self::default() }
    }

    /// Where notices can be said meanwhile.
    pub(crate) fn notices(&self) -> Notices {
        self.bar.clone().map_or_else(Notices::plain, Notices::above)
    }

    /// Takes one piece of news.
    pub(crate) fn see(&mut self, progress: &Progress) {
        match progress {
            Progress::Stage(stage) => self.enter(stage),
            Progress::Event(event) => self.note(event),
        }
    }

    /// Takes an event of a newer service, of a kind that this program does not know.
    pub(crate) fn see_unknown(&self, event_type: &str, data: &Value) {
        let words = format!("an event of an unknown kind, `{event_type}`: {data}");
        self.notices().say(&sanitize::short_line(&words, REFUSAL_WIDTH));
    }

    /// Removes the line.
    pub(crate) fn finish(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// The agent's last lines, unless they were shown already.
    pub(crate) fn tail(&self) -> impl Iterator<Item = &str> {
        self.tail.iter().map(String::as_str).filter(|_| !self.echo)
    }

    /// What was done, refused and spent.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    fn enter(&mut self, stage: &Stage) {
        let words = stage_words(stage);
        if words == self.stage {
            return;
        }
        match &self.bar {
            Some(bar) => bar.set_message(words.clone()),
            None => Notices::plain().say(&words),
        }
        self.stage = words;
    }

    fn note(&mut self, event: &Event) {
        self.tally.note(event);
        match event.event_type {
            EventType::AgentToolUse | EventType::AgentToolResult | EventType::ModelUsage => self.show(None),
            EventType::EgressRefused | EventType::ModelRefused | EventType::BudgetExceeded => {
                let words = refusal_words(event);
                if !self.told.contains(&words) {
                    self.notices().say(&words);
                    self.told.insert(words);
                }
            }
            EventType::AgentMessage | EventType::AgentStderr | EventType::Log => self.note_line(event),
            EventType::RunRetryScheduled => self.notices().say(&retry_words(event)),
            _ => {}
        }
    }

    /// Draws the stage, the tool in use, tokens, cost, and what was said last.
    fn show(&self, line: Option<&str>) {
        if let Some(bar) = &self.bar {
            let now = self.tally.now();
            let parts: Vec<&str> =
                [Some(self.stage.as_str()), now.as_deref(), line].into_iter().flatten().collect();
            bar.set_message(parts.join(" · "));
        }
    }

    fn note_line(&mut self, event: &Event) {
        let Some(text) = event.data.get("text").and_then(Value::as_str) else { return };
        // An event of an agent that prints very much has many lines.
        let last = text.trim_end().rsplit('\n').next().unwrap_or_default();
        let line = sanitize::short_line(last, LINE_WIDTH);
        if line.is_empty() {
            return;
        }
        self.show(Some(&line));
        if self.echo && event.event_type != EventType::Log {
            terminal::write_stderr(&format!("| {line}\n"));
        }
        if self.tail.len() == TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }
}

fn refusal_words(event: &Event) -> String {
    let text = |key: &str| event.data.get(key).and_then(Value::as_str).unwrap_or_default();
    let words = match event.event_type {
        EventType::BudgetExceeded => format!("the budget is spent: {}", text("budget")),
        EventType::ModelRefused => format!("refused at the model: {}", text("reason")),
        // Most reasons begin with their target.
        _ if text("reason").contains(text("target")) => format!("refused: {}", text("reason")),
        _ => format!("refused: {} ({})", text("target"), text("reason")),
    };
    let hint = text("hint");
    let words = if hint.is_empty() { words } else { format!("{words}; {hint}") };
    sanitize::short_line(&words, REFUSAL_WIDTH)
}

fn retry_words(event: &Event) -> String {
    let attempt = event.attempt.unwrap_or(1);
    let due = event.data.get("not_before_ms").and_then(Value::as_u64).unwrap_or(event.at_ms);
    let pause = show_duration(Duration::from_millis(due.saturating_sub(event.at_ms)));
    let why = event.data.get("outcome").and_then(|outcome| outcome.get("message")).and_then(Value::as_str);
    let why = why.map_or(String::new(), |why| format!(": {}", sanitize::short_line(why, LINE_WIDTH)));
    format!("attempt {attempt} failed, another one follows in {pause}{why}")
}

fn stage_words(stage: &Stage) -> String {
    match stage {
        Stage::Waiting { in_use, slots } if in_use < slots => {
            format!("waits for its turn: older runs wait for a slot too, {in_use} of {slots} are in use")
        }
        Stage::Waiting { in_use, slots } => format!("waits for a free slot: {in_use} of {slots} are in use"),
        Stage::InLine => "waiting: earlier messages to this agent come first".to_owned(),
        Stage::Preparing(what) if what.is_empty() => "preparing the workspace".to_owned(),
        Stage::Preparing(what) => {
            format!("preparing the workspace: {}", sanitize::short_line(what, LINE_WIDTH))
        }
        Stage::Sealing => "sealing the sandbox".to_owned(),
        Stage::Running => "running".to_owned(),
        Stage::Collecting => "collecting what changed".to_owned(),
        Stage::Publishing => "pushing what changed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Progress {
        Progress::Event(Event {
            seq: 1,
            at_ms: 0,
            event_type: EventType::AgentMessage,
            attempt: Some(1),
            data: serde_json::json!({ "text": text }),
        })
    }

    #[test]
    fn the_last_lines_are_kept_clean() {
        let mut watcher = Watcher::default();
        for number in 0..30 {
            watcher.see(&said(&format!("\x1b[1mline {number}\x1b]0;x\x07")));
        }
        let tail: Vec<&str> = watcher.tail().collect();
        assert_eq!((tail.len(), tail[0], tail[19]), (20, "line 10", "line 29"));
    }
}
