use cofferdam_core::Vendor;
use proptest::prelude::*;

use super::*;

const ANTHROPIC: &str = concat!(
    "event: message_start\n",
    r#"data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":11,"cache_creation_input_tokens":30,"cache_read_input_tokens":400,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":10},"output_tokens":1}}}"#,
    "\n\n: a comment\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n",
    "event: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\"usage\" grüße"}}"#,
    "\n\nevent: message_delta\n",
    r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":77}}"#,
    "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

const RESPONSES: &str = concat!(
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n",
    "event: response.completed\n",
    r#"data: {"type":"response.completed","response":{"status":"completed","error":null,"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":9,"total_tokens":109}}}"#,
    "\n\n",
);

const CHAT: &str = concat!(
    r#"data: {"choices":[{"delta":{"content":"x"}}],"usage":null}"#,
    "\r\n\r\n",
    r#"data: {"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":20}}}"#,
    "\r\n\r\ndata: [DONE]\r\n\r\n",
);

fn read(endpoint: Endpoint, pieces: &[&[u8]]) -> Reading {
    let mut meter = Meter::new(endpoint, Form::Stream);
    for piece in pieces {
        meter.feed(piece);
    }
    meter.end();
    meter.reading().clone()
}

fn whole(endpoint: Endpoint, text: &str) -> Reading {
    let mut meter = Meter::new(endpoint, Form::Whole);
    text.as_bytes().chunks(3).for_each(|piece| meter.feed(piece));
    meter.end();
    meter.reading().clone()
}

#[test]
fn each_vendors_stream_says_what_it_used() {
    let anthropic = read(Endpoint::Messages, &[ANTHROPIC.as_bytes()]);
    let used = Usage {
        input: 11,
        output: 77,
        cache_read: 400,
        cache_write: 20,
        cache_write_hour: 10,
        ..Usage::default()
    };
    assert_eq!((anthropic.usage, anthropic.complete, anthropic.unread), (Some(used), true, None));

    let responses = read(Endpoint::Responses, &[RESPONSES.as_bytes()]);
    let used = Usage { input: 40, output: 9, cache_read: 60, ..Usage::default() };
    assert_eq!((responses.usage, responses.complete, responses.error), (Some(used), true, None));

    let chat = read(Endpoint::Chat, &[CHAT.as_bytes()]);
    let used = Usage { input: 30, output: 5, cache_read: 20, ..Usage::default() };
    assert_eq!((chat.usage, chat.complete, chat.unread), (Some(used), true, None));
}

#[test]
fn a_stream_may_be_cut_into_two_chunks_at_every_byte() {
    for (endpoint, text) in
        [(Endpoint::Messages, ANTHROPIC), (Endpoint::Responses, RESPONSES), (Endpoint::Chat, CHAT)]
    {
        let at_once = read(endpoint, &[text.as_bytes()]);
        for at in 0..=text.len() {
            let (a, b) = text.as_bytes().split_at(at);
            assert_eq!(read(endpoint, &[a, b]), at_once, "{endpoint:?} at {at}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(read(endpoint, &bytes), at_once);
    }
}

#[test]
fn whole_answers_say_what_they_used() {
    let anthropic = r#"{"type":"message","usage":{"input_tokens":3,"output_tokens":4}}"#;
    assert_eq!(whole(Endpoint::Messages, anthropic).usage.unwrap().tokens(), 7);
    let responses = r#"{"status":"completed","usage":{"input_tokens":3,"output_tokens":5}}"#;
    assert_eq!(whole(Endpoint::Responses, responses).usage.unwrap().tokens(), 8);
    let chat =
        r#"{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":3,"completion_tokens":6}}"#;
    assert_eq!(whole(Endpoint::Chat, chat).usage.unwrap().tokens(), 9);
    let both = r#"{"choices":[],"usage":{"prompt_tokens":3,"input_tokens":3,"completion_tokens":6,"output_tokens":0}}"#;
    assert_eq!(whole(Endpoint::Chat, both).usage.unwrap().tokens(), 9);
    let garbage = whole(Endpoint::Chat, "<html>");
    assert!(!garbage.complete && garbage.unread.is_some());
    assert!(whole(Endpoint::Models(Vendor::Openai), r#"{"data":[]}"#).complete);
}

/// What is written to the cache is dearer than what is not, with the models that charge for it.
#[test]
fn what_openai_keeps_is_counted_as_written_to_the_cache() {
    let told = |details: &str, endpoint| {
        let names = if endpoint == Endpoint::Chat { ("prompt", "completion") } else { ("input", "output") };
        let (input, output) = names;
        let usage = format!(
            r#"{{"{input}_tokens":1000,"{output}_tokens":9,"{input}_tokens_details":{{{details}}}}}"#
        );
        whole(endpoint, &format!(r#"{{"usage":{usage}}}"#)).usage.unwrap()
    };
    for endpoint in [Endpoint::Responses, Endpoint::Chat] {
        let used = told(r#""cached_tokens":100,"cache_write_tokens":700"#, endpoint);
        let expected = Usage { input: 200, cache_read: 100, cache_write: 700, output: 9, ..Usage::default() };
        assert_eq!(used, expected, "{endpoint:?}");
        // Never more than there was.
        let used = told(r#""cached_tokens":100,"cache_write_tokens":5000"#, endpoint);
        let expected = Usage { input: 0, cache_read: 100, cache_write: 900, output: 9, ..Usage::default() };
        assert_eq!(used, expected, "{endpoint:?}");
        let used = told(r#""cached_tokens":0,"cache_write_tokens":null"#, endpoint);
        assert_eq!((used.input, used.cache_write), (1000, 0), "{endpoint:?}");
    }
    // A gateway with the names of two: the larger number counts.
    let both = r#"{"usage":{"input_tokens":1000,"output_tokens":9,"cache_creation_input_tokens":0,
        "input_tokens_details":{"cache_write_tokens":400}}}"#;
    let used = whole(Endpoint::Responses, both).usage.unwrap();
    assert_eq!((used.input, used.cache_write), (600, 400));
}

#[test]
fn what_the_vendors_tools_did_is_counted() {
    let told = r#"{"type":"message","usage":{"input_tokens":3,"output_tokens":4,
        "server_tool_use":{"web_search_requests":2,"web_fetch_requests":1}}}"#;
    let used = whole(Endpoint::Messages, told).usage.unwrap();
    assert_eq!((used.web_searches, used.web_fetches), (2, 1));
    // OpenAI tells of them by its items alone.
    let items = r#"{"output":[{"type":"web_search_call"},{"type":"message"},{"type":"web_search_call"}],
        "usage":{"input_tokens":3,"output_tokens":5}}"#;
    assert_eq!(whole(Endpoint::Responses, items).usage.unwrap().web_searches, 2);
    let stream = [
        r#"{"type":"response.output_item.done","item":{"type":"web_search_call","action":{"type":"search"}}}"#,
        r#"{"type":"response.output_item.done","item":{"type":"message"}}"#,
        r#"{"type":"response.completed","response":{"output":[],"usage":{"input_tokens":3,"output_tokens":5}}}"#,
    ]
    .map(|event| format!("data: {event}\n\n"))
    .concat();
    let reading = read(Endpoint::Responses, &[stream.as_bytes()]);
    assert_eq!((reading.usage.unwrap().web_searches, reading.unread), (1, None));
}

#[test]
fn a_stream_without_its_last_event_is_not_complete() {
    for (endpoint, text, last) in [
        (Endpoint::Messages, ANTHROPIC, "event: message_stop"),
        (Endpoint::Responses, RESPONSES, "event: response.completed"),
        (Endpoint::Chat, CHAT, "data: [DONE]"),
    ] {
        let cut = &text[..text.find(last).unwrap()];
        assert!(!read(endpoint, &[cut.as_bytes()]).complete, "{endpoint:?}");
    }
}

#[test]
fn an_error_in_the_middle_of_a_stream_is_found() {
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let error = Some(("overloaded_error".to_owned(), "Overloaded".to_owned()));
    assert_eq!(read(Endpoint::Messages, &[overloaded.as_bytes()]).error, error);

    let flat = "data: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow down\"}\n\n";
    let error = Some(("rate_limit_exceeded".to_owned(), "slow down".to_owned()));
    assert_eq!(read(Endpoint::Responses, &[flat.as_bytes()]).error, error);

    let failed = "data: {\"type\":\"response.failed\",\"response\":{\"usage\":null,\"error\":{\"code\":\"server_error\",\"message\":\"oops\"}}}\n\n";
    let reading = read(Endpoint::Responses, &[failed.as_bytes()]);
    assert_eq!(reading.error, Some(("server_error".to_owned(), "oops".to_owned())));
    assert!(reading.complete && reading.usage.is_none());
}

#[test]
fn an_event_longer_than_the_bound_is_noted_and_what_follows_is_read() {
    let mut meter = Meter::new(Endpoint::Messages, Form::Stream);
    meter.feed(b"data: {\"type\":\"content_block_delta\",\"x\":\"");
    for _ in 0..9 {
        meter.feed(&[b'x'; 1 << 20]);
    }
    assert!(meter.reading().unread.is_some());
    meter.feed(b"\"}\n\n");
    meter.feed(ANTHROPIC.as_bytes());
    assert_eq!(meter.reading().usage.unwrap().output, 77);
    assert!(meter.reading().complete);
}

proptest! {
    #[test]
    fn how_a_stream_is_chunked_changes_nothing(mut cuts in prop::collection::vec(0..ANTHROPIC.len(), 0..40)) {
        cuts.extend([0, ANTHROPIC.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &ANTHROPIC.as_bytes()[w[0]..w[1]]).collect();
        prop_assert_eq!(
            read(Endpoint::Messages, &pieces),
            read(Endpoint::Messages, &[ANTHROPIC.as_bytes()])
        );
    }

    #[test]
    fn any_bytes_in_any_chunks_read_the_same(
        lines in prop::collection::vec("(data: ?|event:|)[\\PC]{0,12}(\n|\r|\r\n|\n\n)", 0..20),
        size in 1_usize..9,
    ) {
        let text = lines.concat();
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        prop_assert_eq!(read(Endpoint::Chat, &pieces), read(Endpoint::Chat, &[text.as_bytes()]));
    }
}
