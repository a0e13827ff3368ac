//! Who asks for a run, and which runs it may have.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use cofferdam_core::{AgentName, Mode, NodeId, PlaceId, Role};

use crate::record::Slots;

/// A process that holds runs, and the state folder that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The process.
    pub node: NodeId,
    /// Its state folder: only from there can be said whether the process lives.
    pub place: PlaceId,
}

/// Which work a claim is for: a node has room for both, and how much of one says nothing about the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WorkTaken {
    /// Whatever there is.
    #[default]
    Any,
    /// What processes do.
    Processes,
    /// What we do ourselves.
    Direct,
}

impl WorkTaken {
    /// Whether processes' work is among it, and whether direct work is.
    pub(crate) fn kinds(self) -> (bool, bool) {
        match self {
            Self::Any => (true, true),
            Self::Processes => (true, false),
            Self::Direct => (false, true),
        }
    }
}

/// Which runs a node may have, and how many may be under way at once. The default takes any run that is not bound to
/// another place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimRules {
    /// The kinds of work that it takes; any, if empty.
    pub roles: Vec<Role>,
    /// The modes that it can run; any, if empty. Direct runs have none.
    pub modes: Vec<Mode>,
    /// What does the work.
    pub work: WorkTaken,
    /// How many attempts may be under way in all, of those that processes do.
    pub slots: Slots,
    /// How many of one project may be, unless the project says otherwise.
    pub per_project: Slots,
    /// How many of one named agent may be, unless `agents` says otherwise.
    pub per_agent: Slots,
    /// How many of these agents may be.
    pub agents: BTreeMap<AgentName, NonZeroU32>,
}

impl ClaimRules {
    /// Rules that bound nothing but the number of attempts.
    #[must_use]
    pub fn of(slots: Slots) -> Self {
        Self { slots, ..Self::default() }
    }
}
