//! The only code that connects to the outside: names are resolved by a resolver of our own, each address is checked, and
//! the address that was checked is the one that is dialled.
//!
//! Main type: [`Dialer`]. [`Client`] speaks HTTP over the connections that it makes.
//!
//! This crate decides nothing: whoever dials says which addresses may be ([`AddressCheck`]). It knows no run, no broker and
//! no key, and never reads the environment, but for the system's certificates, which `SSL_CERT_FILE` may move.

mod body;
mod client;
mod dial;
mod own_address;
mod resolver;

pub use body::{Body, BodyError, full};
pub use client::{BUFFER, Client, RequestError};
pub use dial::{AddressCheck, DialError, Dialer};
