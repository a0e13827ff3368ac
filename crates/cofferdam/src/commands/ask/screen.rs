//! Shows an answer while it is made.

use cofferdam_api::sdk::frames;
use cofferdam_core::{Delta, DeltaKind};
use serde_json::Value;

use super::markdown::Markdown;
use crate::failure::Failure;
use crate::terminal::Notices;
use crate::{redaction, sanitize, terminal};

/// How much of what a tool is asked is shown.
const TOOL_WIDTH: usize = 120;

/// What the answer is shown on.
pub(super) struct Screen {
    shows: Shows,
    markdown: Markdown,
    /// The block that is being shown: where it belongs, and how many of its characters were.
    current: Option<(Block, u64)>,
    /// The last block that was shown whole.
    last: Option<Block>,
}

/// The turn of a block, and its place there.
type Block = (u64, u64);

/// What is shown where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// Nothing before the end, and nothing then.
    Nothing,
    /// The answer alone, at the end: whoever reads stdout wants nothing else.
    AnswerAlone,
    /// Everything that the model says, as it says it.
    Everything,
}

impl Screen {
    /// One that shows nothing.
    pub(super) fn nothing() -> Self {
        Self::new(Shows::Nothing)
    }

    /// stdout: all that is said where a person reads it, and otherwise the answer.
    pub(super) fn of_stdout() -> Self {
        Self::new(match terminal::stdout_is_terminal() {
            true => Shows::Everything,
            false => Shows::AnswerAlone,
        })
    }

    fn new(shows: Shows) -> Self {
        Self { shows, markdown: Markdown::default(), current: None, last: None }
    }

    /// Takes a piece of a block. One that does not follow what was shown is left to the whole block.
    pub(super) fn delta(&mut self, delta: &Delta) -> Result<(), Failure> {
        let block = (u64::from(delta.turn), u64::from(delta.index));
        if self.shows != Shows::Everything || delta.kind != DeltaKind::Text {
            return Ok(());
        }
        let follows = match self.current {
            Some((current, shown)) => current == block && shown == delta.at,
            None => delta.at == 0 && self.last.is_none_or(|last| last < block),
        };
        if !follows {
            return Ok(());
        }
        self.current = Some((block, delta.end()));
        self.write(&delta.text)
    }

    /// Takes a whole block, by the kind of its frame.
    pub(super) fn whole(&mut self, kind: &str, data: &Value) -> Result<(), Failure> {
        match kind {
            frames::TEXT if self.shows == Shows::Everything => self.text(data),
            frames::TOOL_USE => {
                let asked = format!("{} {}", text(&data["name"]), data["input"]);
                Notices::plain().say(&sanitize::short_line(&asked, TOOL_WIDTH));
                Ok(())
            }
            frames::TOOL_RESULT if data["is_error"] == true => {
                let said = data["output"].as_str().map_or_else(|| data["output"].to_string(), str::to_owned);
                Notices::plain().say(&sanitize::short_line(&format!("failed: {said}"), TOOL_WIDTH));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Shows the answer to whoever has seen nothing of it.
    pub(super) fn finish(&mut self, answer: &str) -> Result<(), Failure> {
        match self.shows {
            Shows::Nothing | Shows::Everything => Ok(()),
            Shows::AnswerAlone => self.print(&format!("{}\n", answer.trim_end_matches('\n'))),
        }
    }

    fn text(&mut self, data: &Value) -> Result<(), Failure> {
        let number = |name: &str| data[name].as_u64().unwrap_or_default();
        let block = (number("turn"), number("index"));
        let said = text(&data["text"]);
        let shown = match self.current.take() {
            Some((current, shown)) if current == block => shown,
            // Another attempt says something else in its place.
            Some(_) => {
                self.end()?;
                0
            }
            None => 0,
        };
        let rest: String = said.chars().skip(usize::try_from(shown).unwrap_or(usize::MAX)).collect();
        self.write(&rest)?;
        self.last = Some(block);
        self.end()
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let drawn = self.markdown.push(&clean(text));
        terminal::write_stdout(drawn.as_bytes())
    }

    fn end(&mut self) -> Result<(), Failure> {
        let drawn = self.markdown.end();
        terminal::write_stdout(format!("{drawn}\n").as_bytes())
    }

    fn print(&self, text: &str) -> Result<(), Failure> {
        terminal::write_stdout(clean(text).as_bytes())
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What a model says may come from a page that somebody else wrote: no terminal obeys it.
fn clean(text: &str) -> String {
    let text = redaction::redactor().text(text).into_owned();
    let mut shown = Vec::new();
    sanitize::write_escaped(&mut shown, text.as_bytes()).expect("memory can be written");
    String::from_utf8_lossy(&shown).into_owned()
}
