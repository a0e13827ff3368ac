//! What a sealed sandbox may reach through the broker, and what it may spend there.

mod address;
mod host;
mod presets;
mod rule;
mod vendor_tool;

use serde::{Deserialize, Serialize};

use crate::access::OwnerName;

pub use address::is_public;
pub(crate) use host::printable;
pub use host::{Host, HostError, HostPort};
pub use presets::{PRESETS, preset};
pub use rule::{AllowRule, RuleError};
pub use vendor_tool::VendorTool;

/// What the broker lets through for one run. Pinned with the policy; `cofferdam runs allow` adds to it and
/// is an event of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressPolicy {
    /// What the forward proxy connects to.
    #[serde(default)]
    pub allow: Vec<AllowRule>,
    /// Services that are put on the sandbox's loopback.
    #[serde(default)]
    pub forwards: Vec<Forward>,
    /// Whether the agent may use a model, through the broker.
    #[serde(default)]
    pub model: bool,
    /// The tools that the model's vendor may run on the agent's behalf.
    #[serde(default, deserialize_with = "vendor_tool::read_tools")]
    pub vendor_tools: Vec<VendorTool>,
    /// The branch of the run's own repository that the agent may push.
    #[serde(default)]
    pub push: Option<String>,
    /// How the run's own repository is fetched. It is decided when the run is accepted, by who asked for it; a run that an
    /// older version accepted has none on record ([`FetchRule::of_unrecorded`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch: Option<FetchRule>,
}

/// How a run's repository is fetched before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FetchRule {
    /// As the user of this machine does: with their own configuration, from wherever it is.
    AsUser,
    /// For somebody else: over https, from a public address that is not this machine's.
    Public,
    /// For somebody else, and the operator has listed the address: it may be anywhere.
    Listed,
}

impl FetchRule {
    /// The rule for a run of which none is on record. Only the user of this machine is known to be allowed everything: any other
    /// owner may have had a key that is bound by the operator's lists.
    #[must_use]
    pub fn of_unrecorded(owner: &OwnerName) -> Self {
        if *owner == OwnerName::local() { Self::AsUser } else { Self::Public }
    }
}

/// One service on the sandbox's loopback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forward {
    /// The port inside, on 127.0.0.1.
    pub port: u16,
    /// What the broker connects to.
    pub target: HostPort,
}

/// What a run may spend at the model, over all its attempts. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// In millionths of a US dollar.
    #[serde(default)]
    pub max_cost_micro_usd: Option<u64>,
    /// Input and output tokens together.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// Requests that make the model generate something.
    #[serde(default)]
    pub max_model_calls: Option<u64>,
}

/// What was spent, or is reserved to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// In millionths of a US dollar.
    pub cost_micro_usd: u64,
    /// Input and output tokens together.
    pub tokens: u64,
    /// Requests that made the model generate something.
    pub calls: u64,
}

/// The vendors' interfaces that the broker speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vendor {
    /// Messages.
    Anthropic,
    /// Responses and Chat Completions.
    Openai,
}

impl Vendor {
    /// Every vendor.
    pub const ALL: [Self; 2] = [Self::Anthropic, Self::Openai];

    /// The variable that usually holds its key.
    #[must_use]
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::Openai => "OPENAI_API_KEY",
        }
    }
}

/// What went wrong at the model, as the broker saw it: never inferred from what an agent printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTrouble {
    /// Which kind.
    pub kind: TroubleKind,
    /// For people.
    pub message: String,
    /// The status that the model's server answered with, if it answered.
    pub status: Option<u16>,
    /// When it said to come back.
    pub retry_after_ms: Option<u64>,
}

/// What kind of trouble a model call ended in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// The run's own budget is spent; the call was not forwarded.
    Budget,
    /// The key was refused: 401 or 403.
    Auth,
    /// Too many requests, or the subscription's limit: 429.
    Quota,
    /// The server is overloaded or broken: 5xx, or `overloaded`.
    Overloaded,
    /// The server cannot be reached.
    Unreachable,
    /// It answered with what is not an answer: a cut stream, garbage.
    Broken,
    /// It refused the request itself: any other 4xx.
    Rejected,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attack: a run that a key queued before an update is fetched after it as the user of the machine does.
    #[test]
    fn a_run_without_a_recorded_fetch_rule_is_fetched_as_the_user_for_that_user_alone() {
        let stored: EgressPolicy = serde_json::from_str(r#"{"model":true}"#).unwrap();
        assert_eq!(stored.fetch, None);
        assert_eq!(FetchRule::of_unrecorded(&OwnerName::local()), FetchRule::AsUser);
        for owner in [OwnerName::system(), OwnerName::loopback(), "ci".parse().unwrap()] {
            assert_eq!(FetchRule::of_unrecorded(&owner), FetchRule::Public, "{owner}");
        }
        let recorded = EgressPolicy { fetch: Some(FetchRule::AsUser), ..EgressPolicy::default() };
        let written = serde_json::to_string(&recorded).unwrap();
        assert_eq!(serde_json::from_str::<EgressPolicy>(&written).unwrap(), recorded, "{written}");
    }
}
