//! The tests of the record: one program, since each would be linked with both databases. `conformance` is what every store
//! must do; the rest is about one of them, or about its files.

mod doorman;
mod fixture;
mod server;
mod small_disk;

mod artifacts;
mod conformance;
mod copied;
#[cfg(feature = "failpoints")]
mod failpoints;
mod postgres_away;
mod postgres_handshake;
mod relocated;
mod sqlite_file;
mod written_before;
