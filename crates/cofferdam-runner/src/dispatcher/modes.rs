//! Which modes this machine can run, found out by trying, and tried again from time to time.

use std::collections::BTreeMap;

use cofferdam_core::{FailureClass, Mode, ModeTrial, NodeId, Outcome, Policy};
use cofferdam_sandbox::{Backend, Finding, Status};
use cofferdam_store::ModeReport;
use serde_json::{Value, json};

use crate::node::Node;

/// How often a mode that can be used is tried.
const USABLE_EVERY_MS: u64 = 600_000;
/// How often one that cannot is: somebody may be starting the engine.
const MISSING_EVERY_MS: u64 = 60_000;
/// The least time between two tries, whatever runs say: a trial makes a sandbox.
const DOUBTED_EVERY_MS: u64 = 15_000;

/// What may be missing all the same: a run can name another image.
const OF_THE_DEFAULT_IMAGE: [&str; 2] = ["image", "worker_binary"];

/// Which runs a node claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModesRule {
    /// Those of modes that were tried and can be used.
    Usable,
    /// This one, if it can be used.
    Only(Mode),
    /// Those of any mode.
    Any,
}

/// What is known of each mode of a node.
#[derive(Debug)]
pub(super) struct Modes {
    rule: ModesRule,
    known: BTreeMap<Mode, Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// `None` before the first trial; then what is missing, if anything is.
    found: Option<Option<String>>,
    tried_at_ms: Option<u64>,
    is_doubted: bool,
    is_being_tried: bool,
}

impl Modes {
    pub(super) fn new(rule: ModesRule, modes: impl Iterator<Item = Mode>) -> Self {
        let has = |mode: &Mode| !matches!(rule, ModesRule::Only(only) if only != *mode);
        Self { rule, known: modes.filter(has).map(|mode| (mode, Known::default())).collect() }
    }

    /// The modes that runs may be claimed for.
    pub(super) fn usable(&self) -> impl Iterator<Item = Mode> {
        let all = self.rule == ModesRule::Any;
        self.known.iter().filter(move |(_, known)| all || known.found == Some(None)).map(|(mode, _)| *mode)
    }

    /// A run was refused or had no sandbox: whether the mode still works is looked at soon.
    pub(super) fn doubt(&mut self, mode: Mode) {
        if let Some(known) = self.known.get_mut(&mode) {
            known.is_doubted = true;
        }
    }

    /// The modes to try now. Whoever asks tries them, and tells what was found.
    pub(super) fn take_due(&mut self, now_ms: u64) -> Vec<Mode> {
        let mut due = Vec::new();
        for (mode, known) in &mut self.known {
            let every_ms = match &known.found {
                _ if known.is_doubted => DOUBTED_EVERY_MS,
                Some(None) => USABLE_EVERY_MS,
                Some(Some(_)) | None => MISSING_EVERY_MS,
            };
            let is_due = known.tried_at_ms.is_none_or(|at| at.saturating_add(every_ms) <= now_ms);
            if self.rule != ModesRule::Any && is_due && !known.is_being_tried {
                known.is_being_tried = true;
                due.push(*mode);
            }
        }
        due
    }

    /// What a trial has found. True if it is something else than before.
    pub(super) fn found(&mut self, mode: Mode, missing: Option<String>, now_ms: u64) -> bool {
        let Some(known) = self.known.get_mut(&mode) else { return false };
        let is_news = known.found.as_ref() != Some(&missing);
        *known = Known {
            found: Some(missing),
            tried_at_ms: Some(now_ms),
            is_doubted: false,
            is_being_tried: false,
        };
        is_news
    }

    /// For the node's report.
    pub(super) fn reports(&self) -> Vec<ModeReport> {
        let missing = |known: &Known| match (&known.found, self.rule) {
            (_, ModesRule::Any) => None,
            (Some(missing), ModesRule::Usable | ModesRule::Only(_)) => missing.clone(),
            (None, ModesRule::Usable | ModesRule::Only(_)) => Some("it is being tried".to_owned()),
        };
        self.known.iter().map(|(mode, known)| ModeReport { mode: *mode, missing: missing(known) }).collect()
    }
}

/// Tries a mode. `None` if it can be used, and what is missing otherwise.
pub(super) async fn try_mode(backend: &dyn Backend, node: &NodeId) -> Option<String> {
    let findings = backend.check(node).await;
    let missing = |finding: &&Finding| {
        finding.status == Status::Missing && !OF_THE_DEFAULT_IMAGE.contains(&finding.name)
    };
    findings.iter().find(missing).map(|finding| format!("{}: {}", finding.name, finding.detail))
}

/// Tries whether runs of a policy would start, with everything that was found.
pub async fn try_policy(node: &Node, policy: &Policy) -> ModeTrial {
    let Some(backend) = node.backend(policy.mode) else {
        return ModeTrial { usable: false, findings: Vec::new() };
    };
    let findings = backend.check(node.id()).await;
    let is_missing = |finding: &Finding| {
        finding.status == Status::Missing && !OF_THE_DEFAULT_IMAGE.contains(&finding.name)
    };
    let mut usable = !findings.iter().any(is_missing);
    let mut findings: Vec<Value> = findings.iter().map(|finding| json!(finding)).collect();
    // Whatever the policy has of its own, such as another image.
    if let Err(refusal) = backend.validate(policy).await {
        usable = false;
        findings.push(json!({ "name": "policy", "status": Status::Missing, "detail": refusal.problem, "remedy": refusal.remedy }));
    }
    ModeTrial { usable, findings }
}

/// Whether an outcome may mean that its mode cannot be used any more.
pub(super) fn casts_doubt(outcome: &Outcome) -> bool {
    let Outcome::Failed { class, .. } = outcome else { return false };
    matches!(class, FailureClass::Refused | FailureClass::Sandbox | FailureClass::Seal | FailureClass::Engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usable(modes: &Modes) -> Vec<Mode> {
        modes.usable().collect()
    }

    #[test]
    fn only_what_was_tried_and_found_is_claimed() {
        let mut modes = Modes::new(ModesRule::Usable, [Mode::Native, Mode::Docker].into_iter());
        assert!(usable(&modes).is_empty());
        assert_eq!(modes.take_due(0), [Mode::Native, Mode::Docker]);
        assert!(modes.take_due(0).is_empty(), "each is tried by one");
        assert!(modes.found(Mode::Native, None, 10));
        let no_engine = || Some("no engine".to_owned());
        assert!(modes.found(Mode::Docker, no_engine(), 10));
        assert!(!modes.found(Mode::Docker, no_engine(), 10), "that was known");
        assert_eq!(usable(&modes), [Mode::Native]);
        assert_eq!(modes.take_due(10 + MISSING_EVERY_MS), [Mode::Docker], "it may come back");
    }

    #[test]
    fn a_node_of_one_mode_knows_no_other() {
        let mut modes = Modes::new(ModesRule::Only(Mode::Host), [Mode::Native, Mode::Host].into_iter());
        assert_eq!(modes.take_due(0), [Mode::Host]);
        modes.found(Mode::Host, None, 0);
        assert_eq!(usable(&modes), [Mode::Host]);
        assert_eq!(modes.reports(), [ModeReport { mode: Mode::Host, missing: None }]);
    }

    #[test]
    fn a_mode_in_doubt_is_tried_soon_and_not_at_once_again() {
        let mut modes = Modes::new(ModesRule::Usable, [Mode::Native].into_iter());
        modes.take_due(0);
        modes.found(Mode::Native, None, 0);
        modes.doubt(Mode::Native);
        assert!(modes.take_due(DOUBTED_EVERY_MS - 1).is_empty());
        assert_eq!(modes.take_due(DOUBTED_EVERY_MS), [Mode::Native]);
        assert_eq!(usable(&modes), [Mode::Native], "it is usable until it was found not to be");
    }

    #[test]
    fn a_node_that_takes_any_mode_tries_none() {
        let mut modes = Modes::new(ModesRule::Any, [Mode::Native].into_iter());
        assert!(modes.take_due(u64::MAX).is_empty());
        assert_eq!(usable(&modes), [Mode::Native]);
    }
}
