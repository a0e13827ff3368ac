//! The adapters on transcripts that were recorded from the real CLIs, and on anything else.

mod any_bytes;
mod commands;
mod logins;
mod support;
mod transcripts;
