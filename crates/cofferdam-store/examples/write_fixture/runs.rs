//! The runs of the fixtures: what `write_fixture` writes, and what the tests look for.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use cofferdam_core::{
    Agent, CapabilitySets, Conversation, DeadLetter, DiskLimit, ErrorClass, FailureClass, InsideLimits,
    InsideNetwork, InsideSeal, Mode, NamespaceFact, NodeId, Outcome, OutsideSeal, PlaceId, Placement, Policy,
    ProjectId, PromptSetup, RetryPolicy, Role, RunId, RunRequest, Seal, SessionStart, Source, Spent, Tried,
    Work, WorkspaceKind,
};
use cofferdam_store::{ArtifactPlace, NewArtifact, Owner};
use serde_json::json;

/// When it was written.
pub(crate) const NOW_MS: u64 = 1_795_000_000_000;
/// How long leases last.
pub(crate) const LEASE_MS: u64 = 30_000;
/// The end of the lease of a run that was left alone.
pub(crate) const SHORT_LEASE_MS: u64 = 10;
/// When a run is due that waits for its second attempt.
pub(crate) const DUE_MS: u64 = NOW_MS + 60_000;
/// What a request was accepted under.
pub(crate) const KEY: &str = "nightly/2026-11-18";
/// What the agent said in a run that has one event of every type, with what not every database takes.
pub(crate) const SAID: &str = "NUL \u{0}, snow ☃, a quote ' and a number 1e400";

/// The types of events that there were, but those that end a run.
pub(crate) const EVENT_TYPES: [&str; 33] = [
    "run.adopted",
    "run.retry_scheduled",
    "sandbox.created",
    "sandbox.sealed",
    "sandbox.destroyed",
    "sandbox.error",
    "agent.started",
    "agent.session",
    "agent.message",
    "agent.thinking",
    "agent.tool_use",
    "agent.tool_result",
    "agent.usage",
    "agent.finished",
    "agent.stderr",
    "message.accepted",
    "message.delivered",
    "message.refused",
    "publish.committed",
    "publish.pushed",
    "publish.skipped",
    "publish.failed",
    "egress.allowed",
    "egress.refused",
    "egress.changed",
    "egress.interrupted",
    "model.usage",
    "model.error",
    "model.refused",
    "budget.exceeded",
    "heartbeat",
    "log",
    "run.cancel_requested",
];

/// The kinds of failures that there were. Each has a run, and each third one a dead letter.
pub(crate) const FAILURES: [(FailureClass, ErrorClass); 20] = [
    (FailureClass::Agent, ErrorClass::Agent),
    (FailureClass::AgentMissing, ErrorClass::Config),
    (FailureClass::OutOfMemory, ErrorClass::Budget),
    (FailureClass::PidsLimit, ErrorClass::Budget),
    (FailureClass::DiskLimit, ErrorClass::Budget),
    (FailureClass::OutputLimit, ErrorClass::Budget),
    (FailureClass::Workspace, ErrorClass::Config),
    (FailureClass::Sandbox, ErrorClass::Transient),
    (FailureClass::Refused, ErrorClass::Config),
    (FailureClass::Seal, ErrorClass::Seal),
    (FailureClass::WorkerCrashed, ErrorClass::Transient),
    (FailureClass::Lost, ErrorClass::Transient),
    (FailureClass::Engine, ErrorClass::Transient),
    (FailureClass::Collect, ErrorClass::Config),
    (FailureClass::Publish, ErrorClass::Config),
    (FailureClass::Budget, ErrorClass::Budget),
    (FailureClass::Auth, ErrorClass::Config),
    (FailureClass::Quota, ErrorClass::Quota),
    (FailureClass::Overloaded, ErrorClass::Overloaded),
    (FailureClass::Model, ErrorClass::Transient),
];

/// A run, by what is to be said of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    /// It ended long ago, and most of its events are forgotten.
    Forgotten,
    Queued,
    /// Accepted under a key.
    Keyed,
    /// For another role, with a high priority, of a project and an agent, and bound to a place.
    Bound,
    /// For one process alone.
    Reserved,
    /// It found no free slot.
    Waiting,
    /// Its first attempt has failed.
    Retried,
    /// Queued behind the run of its lane that is under way.
    InLane,
    /// Queued behind an earlier message to the same agent.
    SecondMessage,
    FirstMessage,
    /// Under way, with a lease that lives: seal, output, messages, calls of a model, and what it may reach.
    Running,
    /// Under way in a lane.
    HoldsLane,
    /// Under way, taken over by another node, whose lease is over.
    Expired,
    /// Under way, and somebody has asked for its end.
    Cancelling,
    Succeeded,
    /// Ended by a cancel while it was queued.
    CancelledQueued,
    /// Ended by a cancel while it was under way.
    CancelledRunning,
    TimedOut,
    /// Failed for good at its second attempt.
    DeadLetter,
    /// The replay of it.
    Replay,
    /// Spent its budget.
    OverBudget,
    /// Has an event of every type.
    Talkative,
    /// Failed in the way of this number in [`FAILURES`].
    Failed(usize),
}

impl Name {
    fn number(self) -> u128 {
        match self {
            Self::Forgotten => 1,
            Self::Queued => 2,
            Self::Keyed => 3,
            Self::Bound => 4,
            Self::Reserved => 5,
            Self::Waiting => 6,
            Self::Retried => 7,
            Self::InLane => 8,
            Self::SecondMessage => 9,
            Self::FirstMessage => 10,
            Self::Running => 11,
            Self::HoldsLane => 12,
            Self::Expired => 13,
            Self::Cancelling => 14,
            Self::Succeeded => 15,
            Self::CancelledQueued => 16,
            Self::CancelledRunning => 17,
            Self::TimedOut => 18,
            Self::DeadLetter => 19,
            Self::Replay => 20,
            Self::OverBudget => 21,
            Self::Talkative => 22,
            Self::Failed(number) => 100 + number as u128,
        }
    }

    pub(crate) fn id(self) -> RunId {
        RunId::new(NOW_MS, self.number())
    }

    /// What was asked.
    pub(crate) fn request(self) -> RunRequest {
        let request = RunRequest {
            id: self.id(),
            source: Source::Empty,
            workspace: WorkspaceKind::Overlay,
            working_dir: None,
            work: Work::Program { argv: vec!["true".to_owned(), format!("{self:?}")] },
            conversation: None,
            policy: Policy::default(),
            publish: None,
            retry: RetryPolicy { max_attempts: 2, ..RetryPolicy::default() },
            placement: Placement::default(),
            claimable_by: None,
            replay_of: None,
        };
        match self {
            Self::Bound => RunRequest {
                work: Work::Agent {
                    agent: Agent::ClaudeCode,
                    setup: PromptSetup { prompt: "mend the tests".to_owned(), ..PromptSetup::default() },
                },
                placement: Placement {
                    role: Role::Tester,
                    priority: 50.try_into().expect("a priority"),
                    lane: None,
                    project: Some(ProjectId::new(NOW_MS, 1)),
                    agent: Some("tester".parse().expect("a name")),
                    place: Some(place(2)),
                },
                ..request
            },
            Self::Reserved => RunRequest { claimable_by: Some(node(9)), ..request },
            Self::InLane | Self::HoldsLane => RunRequest {
                placement: Placement {
                    lane: Some("release".parse().expect("a lane")),
                    ..Placement::default()
                },
                ..request
            },
            Self::FirstMessage | Self::SecondMessage => RunRequest {
                source: Source::Local { path: "/srv/agents/coder".into() },
                workspace: WorkspaceKind::Direct,
                conversation: Some(Conversation {
                    agent: "coder".parse().expect("a name"),
                    session: SessionStart::Continue,
                }),
                ..request
            },
            Self::Replay => RunRequest { replay_of: Some(Self::DeadLetter.id()), ..request },
            _ => request,
        }
    }
}

pub(crate) fn node(number: u128) -> NodeId {
    NodeId::new(NOW_MS, number)
}

pub(crate) fn place(number: u128) -> PlaceId {
    PlaceId::new(NOW_MS, number)
}

/// A node of the place that most runs are executed in.
pub(crate) fn owner(number: u128) -> Owner {
    Owner { node: node(number), place: place(1) }
}

pub(crate) fn lost() -> Outcome {
    Outcome::failed(FailureClass::Lost, "its node died")
}

/// How the run of a number in [`FAILURES`] ended.
pub(crate) fn failure(number: usize) -> Outcome {
    Outcome::Failed {
        class: FAILURES[number].0,
        message: format!("failure {number}"),
        hint: number.is_multiple_of(2).then(|| "type this".to_owned()),
        exit_code: (number == 0).then_some(3),
        retry_after_ms: (FAILURES[number].0 == FailureClass::Quota).then_some(90_000),
    }
}

/// Whether the run of a number in [`FAILURES`] is a dead letter.
pub(crate) fn has_letter(number: usize) -> bool {
    number.is_multiple_of(3)
}

pub(crate) fn letter(name: Name, error_class: ErrorClass) -> DeadLetter {
    DeadLetter {
        failed_at: cofferdam_core::iso_time(NOW_MS),
        error_class,
        error_message: "its node died".to_owned(),
        attempt: 2,
        max_attempts: 2,
        payload: json!({ "argv": ["true", format!("{name:?}")], "env": "[redacted]" }),
    }
}

/// The files that a run has left: on a path that is no text, and in a bucket.
pub(crate) fn artifacts() -> Vec<NewArtifact> {
    let path = OsString::from_vec(b"/srv/state/runs/\xff/1/diff.patch".to_vec());
    let file =
        |name: &str, place| NewArtifact { name: name.to_owned(), place, bytes: 12, sha256: "5d".repeat(32) };
    vec![
        file("diff", ArtifactPlace::File(path.into())),
        file("transcript", ArtifactPlace::Object("s3://bucket/run/1/transcript.log".to_owned())),
    ]
}

pub(crate) fn spent(cost_micro_usd: u64, tokens: u64) -> Spent {
    Spent { cost_micro_usd, tokens, calls: 1 }
}

/// A seal with something in every part.
pub(crate) fn seal() -> Seal {
    Seal {
        mode: Mode::Host,
        inside: InsideSeal {
            uid: 1_000,
            gid: 1_000,
            capabilities: CapabilitySets::default(),
            no_new_privileges: true,
            seccomp_mode: 2,
            system_calls: BTreeMap::from([("mount".to_owned(), Tried::Refused("EPERM".to_owned()))]),
            landlock_abi: 4,
            mounts: Vec::new(),
            writable: vec!["/tmp".to_owned()],
            visible_processes: 3,
            limits: InsideLimits {
                open_files: Some(1_024),
                processes: None,
                file_bytes: None,
                core_bytes: Some(0),
            },
            network: InsideNetwork {
                interfaces: vec!["lo".to_owned()],
                ipv4: Tried::Worked,
                ipv6: Tried::Refused("ENETUNREACH".to_owned()),
            },
            apart: Default::default(),
        },
        outside: OutsideSeal {
            namespaces: BTreeMap::from([("net".to_owned(), NamespaceFact { sandbox: 2, host: 1 })]),
            host_uid: 1_000,
            cgroup: None,
            limits_note: Some("memory is watched".to_owned()),
            workspace_bytes: Some(1 << 30),
            disk: DiskLimit::Sampled,
        },
        workspace: Default::default(),
        hidden: vec![".env".to_owned()],
        stripped: Vec::new(),
    }
}
