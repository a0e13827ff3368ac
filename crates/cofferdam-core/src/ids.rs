//! Identifiers. Each is a newtype, so that a node's id can never be handed over as a run's.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::{checked_text, written_as_text};

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const BODY_LEN: usize = 26;

/// Why a text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {what} id (expected {prefix} and {BODY_LEN} letters or digits)")]
pub struct IdError {
    text: String,
    what: &'static str,
    prefix: &'static str,
}

/// Sorts by time of birth: 48 bits of milliseconds, then 80 random bits.
fn encode(at_ms: u64, random: u128) -> String {
    let value = (u128::from(at_ms) << 80) | (random & ((1 << 80) - 1));
    (0..BODY_LEN).rev().map(|i| ALPHABET[((value >> (5 * i)) & 31) as usize] as char).collect()
}

fn is_body(text: &str) -> bool {
    text.len() == BODY_LEN && text.bytes().all(|b| ALPHABET.contains(&b))
}

fn checked(text: &str, what: &'static str, prefix: &'static str) -> Result<String, IdError> {
    match text.strip_prefix(prefix) {
        Some(body) if is_body(body) => Ok(text.to_owned()),
        _ => Err(IdError { text: text.to_owned(), what, prefix }),
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $prefix:literal) => {
        checked_text! {
            $(#[$doc])*
            $name: $name::checked => IdError;
        }

        impl $name {
            /// Makes an id from a time and at least 80 random bits.
            #[must_use]
            pub fn new(at_ms: u64, random: u128) -> Self {
                Self(format!(concat!($prefix, "{}"), encode(at_ms, random)))
            }

            fn checked(text: &str) -> Result<String, IdError> {
                checked(text, $what, $prefix)
            }
        }
    };
}

id!(
    /// Names one request to do work.
    RunId, "run", "run_"
);
id!(
    /// Names one process that claims runs.
    NodeId, "node", "node_"
);
id!(
    /// Names one state folder: what is told of processes by their locks, and of sandboxes by their folders, holds for
    /// nodes of the same place only.
    PlaceId, "place", "plc_"
);
id!(
    /// Names one registered repository.
    ProjectId, "project", "prj_"
);
id!(
    /// Names one piece of work that is done in phases.
    SpecId, "spec", "spec_"
);
id!(
    /// Names one question to a node.
    NodeRequestId, "request", "ask_"
);
id!(
    /// Names one API key. It is not the key.
    KeyId, "key", "key_"
);

impl RunId {
    /// The number that it stands for: 48 bits of milliseconds, then 80 random bits.
    #[must_use]
    pub fn number(&self) -> u128 {
        let digits = self.0.bytes().skip("run_".len());
        let value = |digit| ALPHABET.iter().position(|&one| one == digit).unwrap_or_default() as u128;
        digits.fold(0, |sum, digit| (sum << 5) | value(digit))
    }

    /// When it was made, in milliseconds since 1970.
    #[must_use]
    pub fn made_at_ms(&self) -> u64 {
        (self.number() >> 80) as u64
    }
}

/// Names the sealed place of one attempt.
///
/// It is a function of the run and the attempt's number, so that it can be told to the caller when
/// the run is accepted, before any sandbox exists.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxId(AttemptRef);

impl SandboxId {
    /// The sandbox of this attempt.
    #[must_use]
    pub fn of(attempt: &AttemptRef) -> Self {
        Self(attempt.clone())
    }

    /// The attempt that this sandbox belongs to.
    #[must_use]
    pub fn attempt(&self) -> &AttemptRef {
        &self.0
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.0.run.as_str().trim_start_matches("run_");
        write!(f, "sbx_{body}_{}", self.0.number)
    }
}

impl FromStr for SandboxId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let refuse = || IdError { text: text.to_owned(), what: "sandbox", prefix: "sbx_" };
        let (body, number) =
            text.strip_prefix("sbx_").and_then(|rest| rest.split_once('_')).ok_or_else(refuse)?;
        let run = format!("run_{body}").parse().map_err(|_| refuse())?;
        let number: u32 = number.parse().map_err(|_| refuse())?;
        let id = Self(AttemptRef { run, number });
        // One text per id: `sbx_…_01` and `sbx_…_+1` would otherwise name the same folder twice.
        if id.to_string() == text { Ok(id) } else { Err(refuse()) }
    }
}

written_as_text!(SandboxId);

/// One try at a run: the run and the try's number, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AttemptRef {
    /// The run.
    pub run: RunId,
    /// 1 for the first try.
    pub number: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_of_birth() {
        let early = RunId::new(1_000, u128::MAX);
        let late = RunId::new(1_001, 0);
        assert!(early < late, "{early} < {late}");
    }

    #[test]
    fn a_runs_id_says_when_it_was_made() {
        for at_ms in [0, 1, 1_794_819_936_662, (1 << 48) - 1] {
            assert_eq!(RunId::new(at_ms, u128::MAX).made_at_ms(), at_ms);
        }
    }

    #[test]
    fn a_sandbox_id_names_its_attempt_and_reads_back() {
        let attempt = AttemptRef { run: RunId::new(7, 9), number: 3 };
        let id = SandboxId::of(&attempt);
        assert_eq!(id.to_string().parse::<SandboxId>().unwrap().attempt(), &attempt);
    }

    #[test]
    fn an_id_cannot_smuggle_a_path() {
        for text in ["run_../../../../../../../../etc", "run_", "sbx_x_1", "run_0123456789ABCDEFGHJKMNPQRS"] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
            assert!(text.parse::<SandboxId>().is_err(), "{text}");
        }
        let good = SandboxId::of(&AttemptRef { run: RunId::new(7, 9), number: 1 }).to_string();
        assert!(good.replace("_1", "_01").parse::<SandboxId>().is_err());
    }
}
