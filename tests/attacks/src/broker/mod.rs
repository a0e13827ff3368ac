//! What an agent gone bad tries on the broker, its only way out: raw bytes, since no honest client would send
//! most of them.
//!
//! [`attempts`] must all be refused, each with its reason, in the answer and in an event. [`controls`] must all
//! work: they differ from an attempt in the trick alone.

mod ask;
pub mod bombs;
pub mod flood;
mod model;
mod proxy;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use ask::{Answered, around, ask};

/// What is attacked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BrokerTarget {
    /// A port of the host. On 127.0.0.1 it is the canary's, which nobody may reach; on 127.0.0.2 that of a
    /// server which is listed, by its address and as `allowed.test`. Every other name of the test's is listed
    /// with it, too.
    pub port: u16,
    /// The model's own port on the host's loopback.
    pub model_port: u16,
    /// A port inside that is forwarded to the server that is listed.
    pub forward_port: u16,
    /// The broker's socket of another run, as the host names it.
    pub other_socket: PathBuf,
}

/// One request.
#[derive(Debug, Clone)]
pub struct BrokerAttempt {
    /// Its name, in reports and in the threat model.
    pub name: &'static str,
    /// What is sent.
    pub wire: Vec<u8>,
    /// Whether the answer's `Location` is then asked for, as a client does.
    pub follows: bool,
    /// Who refuses it, and why.
    pub refused: Refused,
}

/// Who refuses a request, with a part of the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The proxy: `egress.refused`.
    Proxy(&'static str),
    /// The model's routes: `model.refused`, by the word for its rule.
    Model(&'static str),
    /// Nobody: it is a control.
    No,
}

impl BrokerAttempt {
    fn new(name: &'static str, wire: impl Into<Vec<u8>>, refused: Refused) -> Self {
        Self { name, wire: wire.into(), follows: false, refused }
    }
}

/// Everything that must be refused.
#[must_use]
pub fn attempts(target: &BrokerTarget) -> Vec<BrokerAttempt> {
    [
        proxy::hosts(target),
        proxy::names(target),
        proxy::smuggling(target),
        model::routes(),
        model::vendor_side(),
    ]
    .concat()
}

/// What must work.
#[must_use]
pub fn controls(target: &BrokerTarget) -> Vec<BrokerAttempt> {
    [proxy::controls(target), model::controls()].concat()
}

/// Those of the attempts that work once the canary's address is listed and the vendor's tools are named, as far as there are names
/// for them.
#[must_use]
pub fn opened(target: &BrokerTarget) -> Vec<BrokerAttempt> {
    let by_name = ["vendors_web_search", "vendors_web_fetch", "search_in_a_chat"];
    let to_the_canary = [
        "loopback",
        "mapped_loopback",
        "mapped_loopback_in_hexadecimal",
        "name_at_loopback",
        "alias_of_localhost",
        "name_at_mapped_loopback",
        "rebound_name",
        "redirect_to_the_canary",
        "behind_a_good_request",
    ];
    let opens =
        |attempt: &BrokerAttempt| by_name.contains(&attempt.name) || to_the_canary.contains(&attempt.name);
    attempts(target).into_iter().filter(opens).collect()
}
