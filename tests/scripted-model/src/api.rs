//! One answer in the words of each API.

mod chat;
mod messages;
mod responses;

use serde_json::{Value, json};

use crate::answer::{Answer, Usage};
use crate::conversation::{Api, Conversation};
use crate::tools::{Call, CallInput, NoTool, render};

/// One answer, with its calls turned into tools that the request offers.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    /// Makes the ids of this answer its own.
    number: u64,
    model: String,
    thinking: Option<String>,
    text: Option<String>,
    calls: Vec<Call>,
    blocks: Vec<Value>,
    stop_reason: Option<String>,
    usage: Usage,
    chunk_chars: usize,
    stream_usage: bool,
}

impl Turn {
    pub(crate) fn of(answer: &Answer, conversation: &Conversation, number: u64) -> Result<Self, NoTool> {
        let calls = answer.tools.iter().map(|call| render(call, &conversation.tools));
        Ok(Self {
            number,
            model: conversation.model.clone(),
            thinking: answer.thinking.clone(),
            text: answer.text.clone(),
            calls: calls.collect::<Result<_, _>>()?,
            blocks: answer.blocks.clone(),
            stop_reason: answer.stop_reason.clone(),
            usage: answer.usage,
            chunk_chars: answer.chunk_chars.max(1),
            stream_usage: conversation.stream_usage,
        })
    }

    /// The events of the answer's stream, each with the empty line that ends it.
    pub(crate) fn events(&self, api: Api) -> Vec<String> {
        match api {
            Api::Messages => messages::events(self),
            Api::Responses => responses::events(self),
            Api::ChatCompletions => chat::events(self),
        }
    }

    /// The answer in one piece.
    pub(crate) fn body(&self, api: Api) -> Value {
        match api {
            Api::Messages => messages::body(self),
            Api::Responses => responses::body(self),
            Api::ChatCompletions => chat::body(self),
        }
    }

    fn call_id(&self, index: usize) -> String {
        format!("call_{}_{index}", self.number)
    }

    fn chunks<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let mut chunks = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(self.chunk_chars).map_or(rest.len(), |(at, _)| at);
            let (chunk, after) = rest.split_at(end);
            chunks.push(chunk);
            rest = after;
        }
        chunks
    }
}

impl Call {
    /// The input as the APIs of OpenAI carry it.
    fn arguments(&self) -> String {
        match &self.input {
            CallInput::Object(input) => input.to_string(),
            CallInput::FreeText(text) => text.clone(),
        }
    }
}

/// What an API says with an HTTP error.
pub(crate) fn error_body(api: Option<Api>, status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    match api {
        Some(Api::Messages) | None => json!({"type": "error", "error": {"type": kind, "message": message}}),
        Some(Api::Responses | Api::ChatCompletions) => {
            json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
        }
    }
}
