//! The scripts that the agent SDK and we are played.

use cofferdam_scripted_model::{Answer, Cut, Garbage, Script, ToolCall};
use serde_json::{Value, json};

pub(crate) struct Case {
    /// What it is about.
    pub(crate) class: &'static str,
    pub(crate) name: &'static str,
    pub(crate) script: Script,
    pub(crate) max_turns: u32,
    pub(crate) output_schema: Option<Value>,
}

impl Case {
    fn turns(self, max_turns: u32) -> Self {
        Self { max_turns, ..self }
    }

    fn asking_for_a_number(self) -> Self {
        let schema = json!({ "type": "object", "required": ["n"], "additionalProperties": false,
            "properties": { "n": { "type": "integer" } } });
        Self { output_schema: Some(schema), ..self }
    }
}

fn case<const N: usize>(class: &'static str, name: &'static str, answers: [Answer; N]) -> Case {
    Case { class, name, script: Script::new(answers), max_turns: 10, output_schema: None }
}

fn forever(class: &'static str, name: &'static str, answer: Answer) -> Case {
    Case { script: Script::new([]).ending_with(answer), ..case(class, name, []) }
}

fn raw(name: &str, input: Value) -> ToolCall {
    ToolCall::Raw { name: name.to_owned(), input }
}

fn read() -> ToolCall {
    raw("Read", json!({ "file_path": "a.txt" }))
}

fn glob() -> ToolCall {
    raw("Glob", json!({ "pattern": "*.txt" }))
}

fn grep() -> ToolCall {
    raw("Grep", json!({ "pattern": "one" }))
}

fn todo(content: &str) -> ToolCall {
    let todo = json!({ "content": content, "status": "pending", "activeForm": content });
    raw("TodoWrite", json!({ "todos": [todo] }))
}

fn result(n: Value) -> ToolCall {
    raw("StructuredOutput", json!({ "n": n }))
}

fn ok() -> Answer {
    Answer::text("ok")
}

pub(crate) fn cases() -> Vec<Case> {
    let unicode = "\u{1f469}\u{200d}\u{1f467} \u{17c}\u{f3}\u{142}\u{107} \u{5d0}\u{5d1} \u{1d11e}";
    let long = || "All work and no play makes a long answer. ".repeat(500);
    vec![
        case("tool loops", "one", [Answer::tools([read()]).saying("I look."), ok()]),
        case(
            "tool loops",
            "three",
            [
                Answer::tools([todo("look")]),
                Answer::tools([glob()]).saying("Where?"),
                Answer::tools([grep()]),
                Answer::text("There."),
            ],
        ),
        case("tool loops", "said to be the end", [Answer::tools([read()]).stopping("end_turn"), ok()]),
        case(
            "tool loops",
            "a call that is announced and missing",
            [Answer::text("I look.").stopping("tool_use"), Answer::tools([read()]), ok()],
        ),
        case("parallel tools", "two", [Answer::tools([glob(), read()]), ok()]),
        case("parallel tools", "four", [Answer::tools([todo("x"), glob(), grep(), read()]), ok()]),
        case(
            "parallel tools",
            "twice",
            [
                Answer::tools([glob(), grep()]).saying("First."),
                Answer::tools([read(), todo("y")]).saying("Second."),
                Answer::text("Third."),
            ],
        ),
        case(
            "tool errors",
            "a file that is not there",
            [Answer::tools([raw("Read", json!({ "file_path": "b.txt" }))]), ok()],
        ),
        case(
            "tool errors",
            "an input without what it needs",
            [Answer::tools([raw("Read", json!({}))]), ok()],
        ),
        case(
            "tool errors",
            "a tool that there is not",
            [Answer::tools([raw("Nope", json!({ "x": 1 }))]), ok()],
        ),
        case("tool errors", "one of three", [Answer::tools([read(), raw("Grep", json!({})), glob()]), ok()]),
        case("max turns", "enough", [Answer::tools([read()]), ok()]).turns(2),
        case("max turns", "none left for the answer", [Answer::tools([read()]), ok()]).turns(1),
        forever("max turns", "for ever", Answer::tools([glob()]).saying("Again.")).turns(3),
        forever("max turns", "for ever, several at once", Answer::tools([glob(), grep(), glob()])).turns(2),
        case("thinking", "before the answer", [ok().thinking("Hm, what?")]),
        case(
            "thinking",
            "before a tool",
            [Answer::tools([read()]).thinking("A file."), ok().thinking("So.")],
        ),
        case(
            "thinking",
            "redacted",
            [ok().with_blocks([json!({ "type": "redacted_thinking", "data": "eA==" })])],
        ),
        case("long output", "in one piece", [Answer { chunk_chars: 500, ..Answer::text(long()) }]),
        case("long output", "in two", [Answer::text("One, ").stopping("max_tokens"), Answer::text("two.")]),
        case(
            "long output",
            "in four",
            [Answer::text("One, ").stopping("max_tokens").times(3), Answer::text("the end.")],
        ),
        case("long output", "cut in a call", [Answer::tools([read()]).stopping("max_tokens"), ok()]),
        forever("long output", "without an end", Answer::text("And ").stopping("max_tokens")),
        case("unicode", "said", [Answer { chunk_chars: 1, ..Answer::text(unicode) }]),
        case("unicode", "thought", [ok().thinking(unicode)]),
        case("unicode", "in a call", [Answer::tools([todo(unicode)]).saying(unicode), Answer::text(unicode)]),
        case("refusal", "with words", [Answer::text("No.").stopping("refusal")]),
        case("refusal", "without", [Answer::default().stopping("refusal")]),
        case("refusal", "after a tool", [Answer::tools([read()]), Answer::text("No.").stopping("refusal")]),
        case("structured output", "at once", [Answer::tools([result(json!(4))])]).asking_for_a_number(),
        case(
            "structured output",
            "at the second attempt",
            [Answer::tools([result(json!("four"))]), Answer::tools([result(json!(4))])],
        )
        .asking_for_a_number(),
        case(
            "structured output",
            "after a tool",
            [Answer::tools([read()]).saying("I count."), Answer::tools([result(json!(2))]).saying("Here.")],
        )
        .asking_for_a_number(),
        case(
            "structured output",
            "after it was asked for",
            [Answer::text("It is 4."), Answer::tools([result(json!(4))])],
        )
        .asking_for_a_number(),
        forever("structured output", "never", Answer::tools([result(json!("four"))])).asking_for_a_number(),
        case("cut streams", "before the answer", [Answer::cut(Cut::BeforeHeaders), ok()]),
        case("cut streams", "before anything was said", [Answer::cut(Cut::AfterEvents(1)), ok()]),
        case("cut streams", "in the first block's beginning", [Answer::cut(Cut::MidEvent(1)), ok()]),
        case("cut streams", "garbage", [Answer::garbage(Garbage::NotJson), ok()]),
        case("cut streams", "nothing", [Answer::garbage(Garbage::Empty), ok()]),
        case(
            "cut streams",
            "overloaded",
            [Answer::error(529), Answer::tools([read()]), Answer::error(500), ok()],
        ),
    ]
}
