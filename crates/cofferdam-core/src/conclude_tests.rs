use proptest::prelude::*;

use super::*;
use crate::spec::Phase;

fn any_end() -> impl Strategy<Value = Option<AgentEnd>> {
    prop_oneof![
        Just(None),
        (0..3).prop_map(|code| Some(AgentEnd::Exited { code })),
        (1..32).prop_map(|signal| Some(AgentEnd::Signaled { signal })),
        Just(Some(AgentEnd::NotStarted { reason: "no such file".to_owned() })),
        Just(Some(AgentEnd::NoFolder { reason: "no such folder".to_owned() })),
        Just(Some(AgentEnd::Cancelled)),
        Just(Some(AgentEnd::OutputLimit)),
        Just(Some(AgentEnd::Dismissed)),
        Just(Some(AgentEnd::PhaseFailed { phase: Phase::Design })),
        Just(Some(AgentEnd::PhaseTimedOut { phase: Phase::Design, seconds: 9 })),
    ]
}

fn any_exit() -> impl Strategy<Value = SandboxExit> {
    let cause = prop_oneof![
        (0..3).prop_map(|code| ExitCause::Exited { code }),
        (1..32).prop_map(|signal| ExitCause::Signaled { signal }),
        Just(ExitCause::Deadline),
        Just(ExitCause::Limit { hit: LimitHit::Memory }),
        Just(ExitCause::Limit { hit: LimitHit::Disk }),
        Just(ExitCause::Limit { hit: LimitHit::MemoryUnmeasured }),
        Just(ExitCause::Limit { hit: LimitHit::DiskUnmeasured }),
        Just(ExitCause::OwnerGone),
        Just(ExitCause::Killed),
        Just(ExitCause::Paused),
        Just(ExitCause::Removed),
        Just(ExitCause::EngineGone),
        Just(ExitCause::Unknown),
    ];
    (cause, 0..2_u64, 0..2_u64).prop_map(|(cause, oom_kills, pids_refused)| SandboxExit {
        cause,
        oom_kills,
        pids_refused,
    })
}

fn evidence<'a>(worker: Option<&'a AgentEnd>, outside: &'a SandboxExit) -> Evidence<'a> {
    Evidence {
        worker,
        report: None,
        outside,
        cancel_requested: false,
        timeout_ms: 5,
        budget_exceeded: None,
        trouble: None,
    }
}

fn ended(worker: Option<&AgentEnd>, outside: &SandboxExit, cancel_requested: bool) -> Outcome {
    conclude(&Evidence { cancel_requested, ..evidence(worker, outside) })
}

const BY_ITSELF: SandboxExit =
    SandboxExit { cause: ExitCause::Exited { code: 0 }, oom_kills: 0, pids_refused: 0 };

fn class_of(outcome: Outcome) -> FailureClass {
    match outcome {
        Outcome::Failed { class, .. } => class,
        other => panic!("{other:?} is no failure"),
    }
}

#[test]
fn a_phase_that_failed_or_took_too_long_says_so_and_is_not_chance() {
    let failed = AgentEnd::PhaseFailed { phase: Phase::Design };
    let Outcome::Failed { class, message, .. } = ended(Some(&failed), &BY_ITSELF, false) else { panic!() };
    assert_eq!(
        (class, message.as_str()),
        (FailureClass::Gate, "the phase `design` did not pass its gate in 3 tries")
    );
    let late = AgentEnd::PhaseTimedOut { phase: Phase::Design, seconds: 9 };
    assert_eq!(ended(Some(&late), &BY_ITSELF, false), Outcome::TimedOut { timeout_ms: 9_000 });
}

#[test]
fn an_agent_that_says_it_failed_has_failed_whatever_its_status() {
    let end = AgentEnd::Exited { code: 0 };
    let report = AgentReport { ok: false, message: "the turn failed".to_owned() };
    let outcome = conclude(&Evidence { report: Some(&report), ..evidence(Some(&end), &BY_ITSELF) });
    assert_eq!(class_of(outcome), FailureClass::Agent);
}

#[test]
fn an_agent_that_says_it_succeeded_has_failed_if_its_status_says_so() {
    let end = AgentEnd::Exited { code: 1 };
    let report = AgentReport { ok: true, message: "all good".to_owned() };
    let outcome = conclude(&Evidence { report: Some(&report), ..evidence(Some(&end), &BY_ITSELF) });
    assert_eq!(class_of(outcome), FailureClass::Agent);
}

#[test]
fn a_spent_budget_is_the_outcome_whatever_the_agent_made_of_it() {
    let ends = [AgentEnd::Exited { code: 0 }, AgentEnd::Exited { code: 1 }, AgentEnd::Cancelled];
    for end in &ends {
        let outcome = conclude(&Evidence {
            budget_exceeded: Some("3 of 3 model calls"),
            cancel_requested: true,
            ..evidence(Some(end), &BY_ITSELF)
        });
        assert_eq!(class_of(outcome), FailureClass::Budget, "{end:?}");
    }
}

#[test]
fn a_failure_after_trouble_at_the_model_has_the_troubles_class() {
    let classes = [
        (TroubleKind::Budget, FailureClass::Budget),
        (TroubleKind::Auth, FailureClass::Auth),
        (TroubleKind::Quota, FailureClass::Quota),
        (TroubleKind::Overloaded, FailureClass::Overloaded),
        (TroubleKind::Unreachable, FailureClass::Model),
        (TroubleKind::Broken, FailureClass::Model),
        (TroubleKind::Rejected, FailureClass::Model),
    ];
    for (kind, class) in classes {
        let trouble =
            ModelTrouble { kind, message: "no".to_owned(), status: None, retry_after_ms: Some(2_000) };
        let end = AgentEnd::Exited { code: 1 };
        let outcome = conclude(&Evidence { trouble: Some(&trouble), ..evidence(Some(&end), &BY_ITSELF) });
        let Outcome::Failed { retry_after_ms, .. } = &outcome else { panic!("{outcome:?}") };
        assert_eq!(*retry_after_ms, Some(2_000));
        assert_eq!(class_of(outcome), class);
        let success = AgentEnd::Exited { code: 0 };
        let outcome = conclude(&Evidence { trouble: Some(&trouble), ..evidence(Some(&success), &BY_ITSELF) });
        assert_eq!(outcome, Outcome::Succeeded, "an agent that got over it has succeeded");
    }
}

fn ended_by_itself(end: Option<&AgentEnd>) -> bool {
    matches!(
        end,
        Some(
            AgentEnd::Exited { .. }
                | AgentEnd::Signaled { .. }
                | AgentEnd::Dismissed
                | AgentEnd::PhaseFailed { .. }
                | AgentEnd::PhaseTimedOut { .. }
        )
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nothing_succeeds_without_the_agents_own_exit_with_status_0(
        end in any_end(), exit in any_exit(), cancel in any::<bool>(),
    ) {
        if ended(end.as_ref(), &exit, cancel) == Outcome::Succeeded {
            prop_assert_eq!(end, Some(AgentEnd::Exited { code: 0 }));
        }
    }

    #[test]
    fn a_deadline_before_the_agents_own_end_is_a_timeout(
        end in any_end(), exit in any_exit(), cancel in any::<bool>(),
    ) {
        let exit = SandboxExit { cause: ExitCause::Deadline, ..exit };
        let outcome = ended(end.as_ref(), &exit, cancel);
        let timed_out = outcome == Outcome::TimedOut { timeout_ms: 5 };
        prop_assert_eq!(timed_out, !ended_by_itself(end.as_ref()));
    }

    #[test]
    fn nothing_is_cancelled_that_nobody_asked_to_cancel(end in any_end(), exit in any_exit()) {
        if end != Some(AgentEnd::Cancelled) {
            prop_assert_ne!(ended(end.as_ref(), &exit, false), Outcome::Cancelled);
        }
    }

    #[test]
    fn a_cancel_does_not_change_what_ended_by_itself(end in any_end(), exit in any_exit()) {
        if ended_by_itself(end.as_ref()) {
            let asked = ended(end.as_ref(), &exit, true);
            prop_assert_eq!(asked, ended(end.as_ref(), &exit, false));
        }
    }

    #[test]
    fn a_broken_limit_that_the_host_saw_is_the_outcome_whatever_the_worker_says(
        end in any_end(), exit in any_exit(), cancel in any::<bool>(),
    ) {
        for (hit, expected) in [
            (LimitHit::Disk, FailureClass::DiskLimit),
            (LimitHit::DiskUnmeasured, FailureClass::DiskLimit),
            (LimitHit::Memory, FailureClass::OutOfMemory),
            (LimitHit::MemoryUnmeasured, FailureClass::OutOfMemory),
        ] {
            let exit = SandboxExit { cause: ExitCause::Limit { hit }, ..exit };
            let outcome = ended(end.as_ref(), &exit, cancel);
            let held = matches!(outcome, Outcome::Failed { class, .. } if class == expected);
            prop_assert!(held);
        }
    }

    #[test]
    fn a_silent_worker_is_a_crash_unless_the_outside_knows_better(exit in any_exit()) {
        let exit = SandboxExit { oom_kills: 0, pids_refused: 0, ..exit };
        let known = matches!(
            exit.cause,
            ExitCause::Deadline
                | ExitCause::Limit { .. }
                | ExitCause::OwnerGone
                | ExitCause::Paused
                | ExitCause::Removed
                | ExitCause::EngineGone
        );
        let outcome = ended(None, &exit, false);
        let crashed = matches!(outcome, Outcome::Failed { class: FailureClass::WorkerCrashed, .. });
        prop_assert_eq!(crashed, !known);
    }
}

#[test]
fn a_failing_agent_that_the_kernel_starved_failed_for_that_reason() {
    let end = AgentEnd::Exited { code: 1 };
    let exit = |oom_kills, pids_refused| SandboxExit {
        cause: ExitCause::Exited { code: 0 },
        oom_kills,
        pids_refused,
    };
    let class = |exit| match ended(Some(&end), &exit, false) {
        Outcome::Failed { class, exit_code: Some(1), .. } => class,
        other => panic!("{other:?}"),
    };
    assert_eq!(class(exit(1, 0)), FailureClass::OutOfMemory);
    assert_eq!(class(exit(0, 1)), FailureClass::PidsLimit);
    assert_eq!(class(exit(0, 0)), FailureClass::Agent);
}
