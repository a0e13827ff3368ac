//! Reads from an answer what the call used and whether the answer is whole. It looks on while the bytes pass
//! and changes none of them.

use std::borrow::Cow;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::route::Endpoint;
use super::sse::{Found, LONGEST_EVENT, Splitter, append};
use super::usage::Usage;
use crate::memory::AnswerRoom;

/// Why an answer was not read.
const TOO_LONG: &str = "the answer is longer than the 4 MiB that are read, or many long ones came at once";
const TOO_LONG_EVENT: &str =
    "an event is longer than the 4 MiB that are read, or many long ones came at once";

/// How the answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As server-sent events.
    Stream,
    /// As one JSON object.
    Whole,
}

/// Looks on while an answer passes.
#[derive(Debug)]
pub struct Meter {
    endpoint: Endpoint,
    form: Form,
    splitter: Splitter,
    whole: Vec<u8>,
    room: AnswerRoom,
    reading: Reading,
}

/// What was read from an answer so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// What it says that it used, if it has said so yet.
    pub usage: Option<Usage>,
    /// Whether it has come to its end.
    pub complete: bool,
    /// The error that it reports in its middle: its type and its message.
    pub error: Option<(String, String)>,
    /// Why not all of it could be read.
    pub unread: Option<&'static str>,
    /// Searches that were among its items.
    pub searches: u64,
}

impl Meter {
    /// A meter for the answer of one call.
    #[must_use]
    pub fn new(endpoint: Endpoint, form: Form) -> Self {
        Self::within(endpoint, form, AnswerRoom::alone())
    }

    /// The same, which keeps no more of the answer than it has room for.
    pub(crate) fn within(endpoint: Endpoint, form: Form, room: AnswerRoom) -> Self {
        let (splitter, whole) = (Splitter::default(), Vec::new());
        Self { endpoint, form, splitter, whole, room, reading: Reading::default() }
    }

    /// Reads the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let Self { endpoint, form, splitter, whole, room, reading } = self;
        match form {
            Form::Stream => splitter.feed(bytes, room, |found| reading.found(*endpoint, found)),
            Form::Whole if reading.unread.is_some() => {}
            Form::Whole => {
                let length = whole.len() + bytes.len();
                if length > LONGEST_EVENT || !room.covers(length) {
                    *whole = Vec::new();
                    room.release();
                    reading.unread = Some(TOO_LONG);
                } else {
                    append(whole, bytes);
                }
            }
        }
    }

    /// Says that no more bytes come.
    pub fn end(&mut self) {
        let Self { endpoint, form, splitter, whole, room, reading } = self;
        match form {
            Form::Stream => splitter.end(room, |found| reading.found(*endpoint, found)),
            Form::Whole if reading.unread.is_none() => reading.whole(*endpoint, &std::mem::take(whole)),
            Form::Whole => {}
        }
        room.release();
    }

    /// What was read.
    #[must_use]
    pub fn into_reading(self) -> Reading {
        self.reading
    }

    /// What was read so far.
    #[must_use]
    pub fn reading(&self) -> &Reading {
        &self.reading
    }
}

impl Reading {
    fn found(&mut self, endpoint: Endpoint, found: Found<'_>) {
        match found {
            Found::Event(data) => self.event(endpoint, data),
            Found::TooLong => self.unread = Some(TOO_LONG_EVENT),
        }
    }

    fn event(&mut self, endpoint: Endpoint, data: &[u8]) {
        let read = match endpoint {
            Endpoint::Messages => self.anthropic_event(data),
            Endpoint::Responses => self.responses_event(data),
            Endpoint::Chat if data == b"[DONE]" => {
                self.complete = true;
                Ok(())
            }
            Endpoint::Chat => serde_json::from_slice(data).map(|it| self.take(it)),
            Endpoint::CountTokens | Endpoint::Models(_) | Endpoint::Preflight(_) => Ok(()),
        };
        if read.is_err() {
            self.unread = Some("an event is not the JSON that it should be");
        }
    }

    fn anthropic_event(&mut self, data: &[u8]) -> serde_json::Result<()> {
        #[derive(Deserialize)]
        struct Start {
            message: Answer,
        }
        match kind(data)?.as_ref() {
            "message_start" => self.take(serde_json::from_slice::<Start>(data)?.message),
            "message_delta" | "error" => self.take(serde_json::from_slice(data)?),
            "message_stop" => self.complete = true,
            _ => {}
        }
        Ok(())
    }

    fn responses_event(&mut self, data: &[u8]) -> serde_json::Result<()> {
        #[derive(Deserialize)]
        struct End {
            response: Answer,
        }
        #[derive(Deserialize)]
        struct Done {
            item: Item,
        }
        match kind(data)?.as_ref() {
            "response.completed" | "response.failed" | "response.incomplete" => {
                self.take(serde_json::from_slice::<End>(data)?.response);
                self.complete = true;
            }
            "response.output_item.done" => {
                let Done { item } = serde_json::from_slice(data)?;
                self.searches += u64::from(item.is_search());
            }
            "error" => {
                let Answer { error, usage, .. } = serde_json::from_slice(data)?;
                // The fault is the event itself, or stands in it.
                let error = error.map_or_else(|| serde_json::from_slice(data), Ok)?;
                self.take(Answer { error: Some(error), usage, output: Searches(0) });
            }
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, endpoint: Endpoint, data: &[u8]) {
        match serde_json::from_slice(data) {
            // There is no last event here: a whole object is a whole answer.
            Ok(answer) if endpoint.generates() => {
                self.take(answer);
                self.complete = true;
            }
            Ok(_) => self.complete = true,
            Err(_) => self.unread = Some("the answer is not the JSON that it should be"),
        }
    }

    fn take(&mut self, answer: Answer) {
        self.searches = self.searches.max(answer.output.0);
        if let Some(usage) = answer.usage {
            let used = self.usage.get_or_insert_default();
            usage.merge_into(used);
            // OpenAI does not count them there; each is an item of the answer.
            used.web_searches = used.web_searches.max(self.searches);
        }
        if let Some(Fault { kind, code, message }) = answer.error {
            let named = kind.filter(|kind| kind != "error").or(code).unwrap_or_default();
            self.error = Some((named, message.unwrap_or_default()));
        }
    }
}

/// The type of an event. Most events are bits of text, of which nothing more is read.
fn kind(data: &[u8]) -> serde_json::Result<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    serde_json::from_slice::<Kind<'_>>(data).map(|it| it.kind)
}

/// The part of an answer that matters.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    usage: Option<Reported>,
    #[serde(default)]
    error: Option<Fault>,
    /// What an answer of Responses consists of.
    #[serde(default)]
    output: Searches,
}

/// How many of an answer's items are searches. Nothing is kept of them.
#[derive(Default)]
struct Searches(u64);

impl<'de> Deserialize<'de> for Searches {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Items;

        impl<'de> Visitor<'de> for Items {
            type Value = Searches;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of items")
            }

            fn visit_unit<E>(self) -> Result<Searches, E> {
                Ok(Searches(0))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Searches, A::Error> {
                let mut searches = 0;
                while let Some(item) = list.next_element::<Item>()? {
                    searches += u64::from(item.is_search());
                }
                Ok(Searches(searches))
            }
        }

        reader.deserialize_any(Items)
    }
}

/// A part of an answer of Responses.
#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type", default)]
    kind: Option<String>,
}

impl Item {
    fn is_search(&self) -> bool {
        self.kind.as_deref() == Some("web_search_call")
    }
}

/// An error that a vendor reports in its answer.
#[derive(Deserialize)]
struct Fault {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

/// Usage as the vendors report it, under the names of all three interfaces. Some gateways use the names of two at
/// once; then the larger number counts.
#[derive(Deserialize)]
struct Reported {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation: Option<Kept>,
    #[serde(default)]
    input_tokens_details: Option<Details>,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
    #[serde(default)]
    server_tool_use: Option<ToolUse>,
}

/// How often Anthropic has run its tools.
#[derive(Deserialize)]
struct ToolUse {
    #[serde(default)]
    web_search_requests: Option<u64>,
    #[serde(default)]
    web_fetch_requests: Option<u64>,
}

#[derive(Deserialize)]
struct Kept {
    #[serde(default)]
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

impl Reported {
    /// Later reports replace earlier ones, field by field: they count from the beginning of the answer.
    fn merge_into(self, usage: &mut Usage) {
        let mut written = self.cache_creation_input_tokens;
        if let Some(input) = self.input_tokens.max(self.prompt_tokens) {
            // OpenAI counts what was read from the cache and what was written to it as input too.
            let details = self.input_tokens_details.or(self.prompt_tokens_details);
            let cached = details.as_ref().and_then(|it| it.cached_tokens);
            let input = input.saturating_sub(cached.unwrap_or(0));
            let kept = details.and_then(|it| it.cache_write_tokens).map(|kept| kept.min(input));
            usage.input = input - kept.unwrap_or(0);
            usage.cache_read = cached.unwrap_or(usage.cache_read);
            written = written.max(kept);
        }
        usage.output = self.output_tokens.max(self.completion_tokens).unwrap_or(usage.output);
        usage.cache_read = self.cache_read_input_tokens.unwrap_or(usage.cache_read);
        if let Some(written) = written {
            let hour = self.cache_creation.and_then(|it| it.ephemeral_1h_input_tokens);
            usage.cache_write_hour = hour.unwrap_or(usage.cache_write_hour).min(written);
            usage.cache_write = written - usage.cache_write_hour;
        }
        if let Some(uses) = self.server_tool_use {
            usage.web_searches = uses.web_search_requests.unwrap_or(usage.web_searches);
            usage.web_fetches = uses.web_fetch_requests.unwrap_or(usage.web_fetches);
        }
    }
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;
