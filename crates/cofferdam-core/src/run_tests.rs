use proptest::prelude::*;

use super::*;
use crate::outcome::FailureClass;

fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Succeeded),
        proptest::sample::select(FailureClass::ALL).prop_map(|class| Outcome::failed(class, "why")),
        Just(Outcome::Cancelled),
        any::<u64>().prop_map(|timeout_ms| Outcome::TimedOut { timeout_ms }),
    ]
}

fn any_transition() -> impl Strategy<Value = Transition> {
    prop_oneof![
        Just(Transition::Claim),
        Just(Transition::Adopt),
        Just(Transition::Retry),
        Just(Transition::CancelQueued),
        any_outcome().prop_map(Transition::Finish),
    ]
}

fn any_state() -> impl Strategy<Value = RunState> {
    proptest::sample::select(&RunState::ALL[..])
}

proptest! {
    #[test]
    fn a_final_state_has_no_outgoing_edge(state in any_state(), transition in any_transition()) {
        prop_assert!(!state.is_final() || state.after(&transition).is_err());
    }

    #[test]
    fn any_history_passes_through_at_most_one_final_state(
        history in proptest::collection::vec(any_transition(), 0..64),
    ) {
        let mut state = RunState::Queued;
        let mut finals = 0;
        for transition in &history {
            if let Ok(next) = state.after(transition) {
                state = next;
                finals += u32::from(state.is_final());
            }
        }
        prop_assert!(finals <= 1);
        prop_assert_eq!(finals == 1, state.is_final());
    }

    #[test]
    fn only_finishing_a_running_run_or_cancelling_a_queued_one_is_final(
        state in any_state(), transition in any_transition(),
    ) {
        if let Ok(next) = state.after(&transition) && next.is_final() {
            match transition {
                Transition::Finish(outcome) => {
                    prop_assert_eq!(state, RunState::Running);
                    prop_assert_eq!(next, RunState::from(&outcome));
                }
                other => {
                    prop_assert_eq!((state, other), (RunState::Queued, Transition::CancelQueued));
                    prop_assert_eq!(next, RunState::Cancelled);
                }
            }
        }
    }

    #[test]
    fn an_attempt_starts_only_by_a_claim(state in any_state(), transition in any_transition()) {
        if state != RunState::Running && state.after(&transition) == Ok(RunState::Running) {
            prop_assert_eq!(transition, Transition::Claim);
        }
    }
}

#[test]
fn every_state_reads_back_from_its_name() {
    for state in RunState::ALL {
        assert_eq!(RunState::parse(state.as_str()), Some(state));
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
}

#[test]
fn a_request_from_before_conversations_works_on_a_layer() {
    let text = r#"{"id": "run_00000000000000000000000001", "source": {"kind": "empty"},
        "agent": {"provider": "command", "argv": ["true"]}, "claimable_by": null}"#;
    let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
    let mut policy = serde_json::to_value(Policy::default()).unwrap();
    policy.as_object_mut().unwrap().remove("path_mapping_mode");
    value["policy"] = policy;
    value["retry"] = serde_json::to_value(RetryPolicy::default()).unwrap();
    let request: RunRequest = serde_json::from_value(value).unwrap();
    assert_eq!((request.workspace, request.conversation), (WorkspaceKind::Overlay, None));
    assert_eq!(request.policy.path_mapping_mode, crate::policy::PathMappingMode::Mapped);
}
