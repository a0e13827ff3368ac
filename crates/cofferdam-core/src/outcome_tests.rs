use proptest::prelude::*;

use super::*;

fn any_end() -> impl Strategy<Value = Option<AgentEnd>> {
    prop_oneof![
        Just(None),
        (0..3).prop_map(|code| Some(AgentEnd::Exited { code })),
        (1..32).prop_map(|signal| Some(AgentEnd::Signaled { signal })),
        Just(Some(AgentEnd::NotStarted { reason: "no such file".to_owned() })),
        Just(Some(AgentEnd::Cancelled)),
        Just(Some(AgentEnd::OutputLimit)),
        Just(Some(AgentEnd::Dismissed)),
    ]
}

fn any_exit() -> impl Strategy<Value = SandboxExit> {
    let cause = prop_oneof![
        (0..3).prop_map(|code| ExitCause::Exited { code }),
        (1..32).prop_map(|signal| ExitCause::Signaled { signal }),
        Just(ExitCause::Deadline),
        Just(ExitCause::Limit { hit: LimitHit::Memory }),
        Just(ExitCause::Limit { hit: LimitHit::Disk }),
        Just(ExitCause::OwnerGone),
        Just(ExitCause::Killed),
        Just(ExitCause::Unknown),
    ];
    (cause, 0..2_u64, 0..2_u64).prop_map(|(cause, oom_kills, pids_refused)| SandboxExit {
        cause,
        oom_kills,
        pids_refused,
    })
}

fn ended_by_itself(end: Option<&AgentEnd>) -> bool {
    matches!(end, Some(AgentEnd::Exited { .. } | AgentEnd::Signaled { .. } | AgentEnd::Dismissed))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nothing_succeeds_unless_the_agent_exited_with_status_0_or_was_dismissed(
        end in any_end(), exit in any_exit(), cancel in any::<bool>(),
    ) {
        if conclude(end.as_ref(), &exit, cancel, 5) == Outcome::Succeeded {
            let ended_well = matches!(end, Some(AgentEnd::Exited { code: 0 } | AgentEnd::Dismissed));
            prop_assert!(ended_well);
        }
    }

    #[test]
    fn a_deadline_before_the_agents_own_end_is_a_timeout(
        end in any_end(), exit in any_exit(), cancel in any::<bool>(),
    ) {
        let exit = SandboxExit { cause: ExitCause::Deadline, ..exit };
        let outcome = conclude(end.as_ref(), &exit, cancel, 5);
        let timed_out = outcome == Outcome::TimedOut { timeout_ms: 5 };
        prop_assert_eq!(timed_out, !ended_by_itself(end.as_ref()));
    }

    #[test]
    fn nothing_is_cancelled_that_nobody_asked_to_cancel(end in any_end(), exit in any_exit()) {
        if end != Some(AgentEnd::Cancelled) {
            prop_assert_ne!(conclude(end.as_ref(), &exit, false, 5), Outcome::Cancelled);
        }
    }

    #[test]
    fn a_cancel_does_not_change_what_ended_by_itself(end in any_end(), exit in any_exit()) {
        if ended_by_itself(end.as_ref()) {
            let asked = conclude(end.as_ref(), &exit, true, 5);
            prop_assert_eq!(asked, conclude(end.as_ref(), &exit, false, 5));
        }
    }

    #[test]
    fn a_broken_limit_that_the_host_saw_is_the_outcome_whatever_the_worker_says(
        end in any_end(), exit in any_exit(), cancel in any::<bool>(),
    ) {
        for (hit, expected) in
            [(LimitHit::Disk, FailureClass::DiskLimit), (LimitHit::Memory, FailureClass::OutOfMemory)]
        {
            let exit = SandboxExit { cause: ExitCause::Limit { hit }, ..exit };
            let outcome = conclude(end.as_ref(), &exit, cancel, 5);
            let held = matches!(outcome, Outcome::Failed { class, .. } if class == expected);
            prop_assert!(held);
        }
    }

    #[test]
    fn a_silent_worker_is_a_crash_unless_the_outside_knows_better(exit in any_exit()) {
        let exit = SandboxExit { oom_kills: 0, pids_refused: 0, ..exit };
        let known = matches!(
            exit.cause,
            ExitCause::Deadline | ExitCause::Limit { .. } | ExitCause::OwnerGone
        );
        let outcome = conclude(None, &exit, false, 5);
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
    let class = |exit| match conclude(Some(&end), &exit, false, 5) {
        Outcome::Failed { class, exit_code: Some(1), .. } => class,
        other => panic!("{other:?}"),
    };
    assert_eq!(class(exit(1, 0)), FailureClass::OutOfMemory);
    assert_eq!(class(exit(0, 1)), FailureClass::PidsLimit);
    assert_eq!(class(exit(0, 0)), FailureClass::Agent);
}
