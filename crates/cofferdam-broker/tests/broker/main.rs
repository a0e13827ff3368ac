//! A broker with real sockets around it: what it lets through, what it refuses, and what it writes down.

#![expect(clippy::unwrap_used, reason = "clippy does not take the support modules for tests")]

mod attempts;
mod own_addresses;
mod proxy;
mod requests;
mod support;
