//! The meter that reads along. The input is the interface's name on a line, and an answer.

use cofferdam_broker::fuzzing::{Endpoint, Form, Meter, Reading};
use cofferdam_core::Vendor;

use crate::pieces::{first_line, pieces};

pub(crate) fn feed(input: &[u8]) {
    let (name, answer) = first_line(input);
    let endpoint = match name {
        b"messages" => Endpoint::Messages,
        b"responses" => Endpoint::Responses,
        b"chat" => Endpoint::Chat,
        b"count" => Endpoint::CountTokens,
        _ => Endpoint::Models(Vendor::Openai),
    };
    for form in [Form::Stream, Form::Whole] {
        let whole = read(endpoint, form, &[answer]);
        for longest in [1, 7, 300] {
            assert_eq!(
                whole,
                read(endpoint, form, &pieces(answer, longest)),
                "{form:?}, pieces of {longest}"
            );
        }
        if let Some(usage) = whole.usage {
            assert!(endpoint.generates());
            let _ = usage.tokens();
        }
    }
}

fn read(endpoint: Endpoint, form: Form, pieces: &[&[u8]]) -> Reading {
    let mut meter = Meter::new(endpoint, form);
    for piece in pieces {
        meter.feed(piece);
    }
    meter.end();
    meter.into_reading()
}
