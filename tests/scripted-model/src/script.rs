//! What the model is to say: lists of answers, and who gets which.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::answer::Answer;
use crate::conversation::Conversation;

/// What the model is to say.
///
/// Each call takes the next answer of its list. A request that offers no tools is an aside (an agent asking for
/// a title, say): it takes nothing from the script unless [`Script::asides_count`] is set.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// The answers, in order. Those with a `when` are out of order: they are taken when it holds.
    pub answers: Vec<Answer>,
    /// Lists of their own for some conversations; the first that matches is used instead of `answers`.
    pub sessions: Vec<Session>,
    /// Each session of a CLI begins each list anew; otherwise all calls share one position.
    pub each_session: bool,
    /// What is said once a list has ended.
    pub at_end: Answer,
    /// What is said to an aside.
    pub aside: Answer,
    /// Requests without tools take answers from the script too: for tests that write their own requests.
    pub asides_count: bool,
    /// The only key that is let in, as `x-api-key` or as a bearer token. Any, if absent.
    pub expect_key: Option<String>,
    /// The names that `GET /v1/models` lists.
    pub models: Vec<String>,
}

/// A list of answers for the conversations that match.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Which conversations these answers are for.
    pub when: When,
    /// The answers, as in [`Script::answers`].
    pub answers: Vec<Answer>,
}

/// A condition on a conversation; every part that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// Any message of the user contains this.
    pub prompt_contains: Option<String>,
    /// The conversation contains this somewhere, whoever says it: some CLIs pass on what the user says during a
    /// turn in the system's name.
    pub conversation_contains: Option<String>,
    /// The last message of the user that has text contains this.
    pub last_user_contains: Option<String>,
    /// The last result of a tool contains this.
    pub last_result_contains: Option<String>,
    /// The name of the model is this.
    pub model: Option<String>,
}

/// A script that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("failed to read the script {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is not a script.
    #[error("the script is not understood: {0}")]
    Parse(String),
}

impl Script {
    /// These answers in order, then `Done.` for ever.
    #[must_use]
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: answers.into_iter().collect(), ..Self::default() }
    }

    /// Reads a script from YAML, of which JSON is a part.
    ///
    /// # Errors
    /// If it is not a script.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        serde_saphyr::from_str(text).map_err(|error| ScriptError::Parse(error.to_string()))
    }

    /// Reads a script from a file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a script.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let text =
            fs::read_to_string(path).map_err(|source| ScriptError::Read { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Lets only this key in.
    #[must_use]
    pub fn expecting_key(mut self, key: impl Into<String>) -> Self {
        self.expect_key = Some(key.into());
        self
    }

    /// Gives these answers to the conversations whose user says `prompt` somewhere.
    #[must_use]
    pub fn for_prompt(
        mut self,
        prompt: impl Into<String>,
        answers: impl IntoIterator<Item = Answer>,
    ) -> Self {
        let when = When { prompt_contains: Some(prompt.into()), ..When::default() };
        self.sessions.push(Session { when, answers: answers.into_iter().collect() });
        self
    }

    /// Begins each list anew for each session of a CLI.
    #[must_use]
    pub fn for_each_session(mut self) -> Self {
        self.each_session = true;
        self
    }

    /// Says this once a list has ended.
    #[must_use]
    pub fn ending_with(mut self, answer: Answer) -> Self {
        self.at_end = answer;
        self
    }

    /// Lets requests without tools take answers from the script too.
    #[must_use]
    pub fn counting_asides(mut self) -> Self {
        self.asides_count = true;
        self
    }
}

impl Default for Script {
    fn default() -> Self {
        Self {
            answers: Vec::new(),
            sessions: Vec::new(),
            each_session: false,
            at_end: Answer::text("Done."),
            aside: Answer::text("A scripted aside"),
            asides_count: false,
            expect_key: None,
            models: vec!["scripted".to_owned()],
        }
    }
}

impl When {
    pub(crate) fn holds(&self, conversation: &Conversation) -> bool {
        let contains = |texts: &[String], part: &Option<String>| {
            part.as_ref().is_none_or(|part| texts.iter().any(|text| text.contains(part)))
        };
        let last = |texts: &[String]| texts.last().cloned().into_iter().collect::<Vec<_>>();
        contains(&conversation.user_texts, &self.prompt_contains)
            && self.conversation_contains.as_ref().is_none_or(|part| conversation.whole.contains(part))
            && contains(&last(&conversation.user_texts), &self.last_user_contains)
            && contains(&last(&conversation.tool_results), &self.last_result_contains)
            && self.model.as_ref().is_none_or(|model| *model == conversation.model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{Cut, ToolCall};

    #[test]
    fn a_script_is_read_from_yaml() {
        let script = Script::parse(
            r#"
expect_key: sk-real
each_session: true
at_end: {text: bye}
answers:
  - text: I write.
    thinking: hm
    tools:
      - write_file: {path: a.txt, content: "one\n"}
      - shell: {command: ls}
    usage: {input: 7, output: 3}
    wait_for: {gate: go}
  - error: {status: 429, headers: {retry-after: "2"}}
    repeat: 3
  - cut: before_headers
  - {text: abc, cut: {after_events: 2}}
  - {text: other, when: {last_user_contains: please}}
sessions:
  - when: {prompt_contains: second task}
    answers: [{tools: [{raw: {name: Bash, input: {command: ls}}}]}]
"#,
        )
        .expect("a script");
        assert_eq!(script.expect_key.as_deref(), Some("sk-real"));
        assert_eq!(script.at_end.text.as_deref(), Some("bye"));
        assert_eq!(script.answers[0].tools[1], ToolCall::Shell { command: "ls".to_owned() });
        assert_eq!(script.answers[0].wait_for.as_ref().map(|hold| hold.gate.as_str()), Some("go"));
        assert_eq!(script.answers[1].error.as_ref().map(|error| error.status), Some(429));
        assert_eq!(script.answers[1].repeat, 3);
        assert_eq!(script.answers[2].cut, Some(Cut::BeforeHeaders));
        assert_eq!(script.answers[3].cut, Some(Cut::AfterEvents(2)));
        assert_eq!(script.sessions.len(), 1);
    }

    #[test]
    fn a_script_is_read_from_json() {
        let script = Script::parse(r#"{"answers": [{"text": "a"}, {"cut": {"mid_event": 1}}]}"#);
        assert_eq!(script.expect("a script").answers[1].cut, Some(Cut::MidEvent(1)));
    }

    #[test]
    fn the_documented_script_is_one() {
        let documented = include_str!("lib.rs").split("```").nth(1).expect("an example");
        let lines = documented.lines().skip(1).map(|line| line.trim_start_matches("//!"));
        let text: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        assert_eq!(Script::parse(&text.join("\n")).expect("a script").answers.len(), 12);
    }

    #[test]
    fn a_misspelt_field_is_named() {
        let error = Script::parse("answers: [{txet: a}]").expect_err("no such field");
        assert!(error.to_string().contains("txet"), "{error}");
    }
}
