//! Services of the host that sealed runs reach on their own loopback: the key `sandbox.forwards`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Count;
use super::names::is_name;
use crate::egress::{Forward, HostPort};
use crate::policy::gateway;
use crate::text::checked_text;
use crate::value::ValueError;

checked_text! {
    /// What a person calls a service: `db`.
    ForwardName: forward_name => ValueError;
}

/// A port that an agent's user may listen on.
type AnyPort = Count<1024, 65_535>;

/// The port of a service inside, which is not the broker's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "AnyPort", into = "AnyPort")]
pub struct ForwardPort(AnyPort);

/// A service that sealed runs reach on their own loopback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForwardSettings {
    /// The port inside, on 127.0.0.1: 1024 or more, and not 3128.
    pub port: ForwardPort,
    /// What the broker connects to, such as `127.0.0.1:5432`.
    pub target: HostPort,
    /// Whether every sealed run has it; otherwise those that ask for it with `--forward NAME`.
    #[serde(default)]
    pub always: bool,
}

impl ForwardSettings {
    /// As a run has it.
    #[must_use]
    pub fn forward(&self) -> Forward {
        Forward { port: self.port.number(), target: self.target.clone() }
    }
}

impl ForwardPort {
    /// The number.
    #[must_use]
    pub fn number(self) -> u16 {
        u16::try_from(self.0.count()).expect("it is at most 65535")
    }
}

impl TryFrom<AnyPort> for ForwardPort {
    type Error = ValueError;

    fn try_from(port: AnyPort) -> Result<Self, ValueError> {
        match port.count() == u32::from(gateway::PORT) {
            true => {
                Err(ValueError::new("3128", "is the broker's own port", "type another port, such as 5432"))
            }
            false => Ok(Self(port)),
        }
    }
}

impl From<ForwardPort> for AnyPort {
    fn from(port: ForwardPort) -> Self {
        port.0
    }
}

/// It has no `=` in it, so that it cannot be taken for `PORT=HOST:PORT`.
fn forward_name(text: &str) -> Result<String, ValueError> {
    let hint = "type letters, digits, `.`, `_` and `-`, at most 64, such as `db`";
    ValueError::unless(is_name(text), text, "is not the name of a service", hint)
}
