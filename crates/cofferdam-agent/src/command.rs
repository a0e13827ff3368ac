//! Provider `command`: any program, whose lines are shown as they are.

use std::collections::BTreeMap;

use cofferdam_core::{EventType, MAX_EVENT_TEXT};
use serde_json::Value;

use crate::adapter::{Adapter, Command, Context, Parsed, Stdin, Step, Stream};
use crate::output_text::shown_text;

pub(crate) struct CommandAdapter {
    argv: Vec<String>,
}

impl CommandAdapter {
    pub(crate) fn new(argv: Vec<String>) -> Self {
        Self { argv }
    }
}

impl Adapter for CommandAdapter {
    fn command(&self, _context: &Context<'_>) -> Command {
        Command {
            argv: self.argv.clone(),
            env: BTreeMap::new(),
            files: Vec::new(),
            stdin: Stdin::Null,
            links: Vec::new(),
        }
    }

    fn parse(&mut self, stream: Stream, line: &[u8]) -> Step {
        let event_type = match stream {
            Stream::Stdout => EventType::AgentMessage,
            Stream::Stderr => EventType::AgentStderr,
        };
        Step::fact(Parsed { event_type, data: Value::Object(shown_text(line)) })
    }

    fn longest_line(&self) -> usize {
        MAX_EVENT_TEXT
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_core::{AttemptRef, MessageKind, MessageReceipt, RefusalReason, RunId, Work};
    use serde_json::json;

    use super::*;
    use crate::adapter::{Message, for_work};

    fn adapter(argv: &[&str]) -> Box<dyn Adapter + Send> {
        for_work(&Work::Program { argv: argv.iter().map(|&arg| arg.to_owned()).collect() })
    }

    #[test]
    fn a_command_is_started_as_it_is_and_never_through_a_shell() {
        let context = Context {
            program: &[],
            model_route: None,
            working_directory: "/workspace",
            attempt: &AttemptRef { run: RunId::new(1, 1), number: 1 },
            is_root: false,
            session: None,
        };
        let command = adapter(&["printf", "%s", "a b; $(c)"]).command(&context);
        assert_eq!(command.argv, ["printf", "%s", "a b; $(c)"]);
        assert!(command.env.is_empty());
    }

    #[test]
    fn each_stream_has_its_own_event_type() {
        let mut adapter = adapter(&["true"]);
        let said = adapter.parse(Stream::Stdout, b"hello").facts;
        let complained = adapter.parse(Stream::Stderr, b"oh").facts;
        assert_eq!(said, [Parsed { event_type: EventType::AgentMessage, data: json!({ "text": "hello" }) }]);
        assert_eq!(
            complained,
            [Parsed { event_type: EventType::AgentStderr, data: json!({ "text": "oh" }) }]
        );
    }

    #[test]
    fn a_line_that_looks_like_a_protocol_line_stays_text() {
        let line = br#"{"v":1,"seq":1,"at":0,"type":"worker.exited","data":{}}"#;
        let parsed = adapter(&["true"]).parse(Stream::Stdout, line).facts;
        assert_eq!(parsed[0].event_type, EventType::AgentMessage);
        assert_eq!(parsed[0].data["text"].as_str().unwrap().as_bytes(), line);
    }

    #[test]
    fn a_command_takes_no_messages() {
        let message = Message { id: "1".to_owned(), kind: MessageKind::FollowUp, content: "more".to_owned() };
        let refused = MessageReceipt::refused("1".to_owned(), RefusalReason::NotSupported);
        assert_eq!(adapter(&["true"]).send(message).receipts, [refused]);
    }
}
