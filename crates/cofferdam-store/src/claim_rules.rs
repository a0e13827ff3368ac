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

/// Which runs a node may have, and how many may be under way at once. The default takes any run that is not bound to
/// another place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimRules {
    /// The kinds of work that it takes; any, if empty.
    pub roles: Vec<Role>,
    /// The modes that it can run; any, if empty.
    pub modes: Vec<Mode>,
    /// How many attempts may be under way in all.
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
