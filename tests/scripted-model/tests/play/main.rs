//! What a client of each API gets from the model.

mod client;
mod failures;
mod gates;
mod records;
mod streams;
