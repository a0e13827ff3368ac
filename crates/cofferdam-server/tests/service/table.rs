//! Every operation, for every kind of actor, on a run of its own, on another owner's, and on one of its own that has more than
//! the actor may ask for: over HTTP, and by the operation itself.

use cofferdam_core::{
    Action, Actor, Agent, DeadLetter, DecideSpecInput, ErrorClass, ExecuteSpecInput, FailureClass, KeyInput,
    LimitsRule, Mode, Network, NodeId, Outcome, OwnerName, Phase, PhasePlan, PhaseState, PlaceId,
    ProjectInput, RunId, RunListInput, RunRequest, Scope, Scopes, SpecId, SpecInput, SpecListInput, SpecPlan,
    SpecSetup, UpdateSpecInput, Work,
};
use cofferdam_mandate::issue;
use cofferdam_operations::{AskedService, ConfigChange, Decision, Error, NewExecution, Operations};
use cofferdam_server::KeyRule;
use cofferdam_store::{Left, NewSpec, PhaseNews, SpecExecution};
use serde_json::json;

use crate::fixture::{Elsewhere, Place, Setup, answer, http, new_run, plain_request};

/// Who asks, in the order of the columns below.
const ACTORS: [&str; 6] = ["read", "run", "read,run", "system", "loopback", "local"];

/// What becomes of each action: for each actor, on a run of its own, on another owner's, and on one of its own with more than
/// the operator's lists give. `+` is done, `-` is refused, `0` is as if it were not there, `.` has no such subject.
const TABLE: &[(Action, [&str; 6])] = &[
    (Action::CreateRun, ["-.-", "+.-", "+.-", "+.+", "+.-", "+.+"]),
    (Action::RetryRun, ["---", "+0-", "+--", "+++", "+--", "+++"]),
    (Action::CancelRun, ["---", "+0-", "+--", "+++", "+--", "+++"]),
    (Action::SendMessage, ["---", "+0-", "+--", "+++", "+--", "+++"]),
    (Action::AllowHost, ["---", "---", "---", "+++", "---", "+++"]),
    (Action::RemoveRun, ["---", "+0-", "+--", "+++", "+--", "+++"]),
    (Action::ListRuns, ["+++", "+0+", "+++", "+++", "+++", "+++"]),
    (Action::ReadRun, ["+++", "+0+", "+++", "+++", "+++", "+++"]),
    (Action::ReadDeadLetters, ["+++", "+0+", "+++", "+++", "+++", "+++"]),
    (Action::RemoveDeadLetter, ["---", "+0-", "+--", "+++", "+--", "+++"]),
    (Action::CreateProject, ["-..", "-..", "-..", "+..", "-..", "+.."]),
    (Action::ReadProjects, ["+..", "+..", "+..", "+..", "+..", "+.."]),
    (Action::RemoveProject, ["-..", "-..", "-..", "+..", "-..", "+.."]),
    (Action::CreateSpec, ["-..", "+..", "+..", "+..", "+..", "+.."]),
    (Action::ListSpecs, ["++.", "+0.", "++.", "++.", "++.", "++."]),
    (Action::ReadSpec, ["++.", "+0.", "++.", "++.", "++.", "++."]),
    (Action::UpdateSpec, ["--.", "+0.", "+-.", "++.", "+-.", "++."]),
    (Action::ExecuteSpec, ["--.", "+0.", "+-.", "++.", "+-.", "++."]),
    (Action::DecideSpec, ["--.", "+0.", "+-.", "++.", "+-.", "++."]),
    (Action::CreateKey, ["-..", "-..", "-..", "+..", "-..", "+.."]),
    (Action::ListKeys, ["-..", "-..", "-..", "+..", "-..", "+.."]),
    (Action::RevokeKey, ["-..", "-..", "-..", "+..", "-..", "+.."]),
    (Action::ListAgents, ["+..", "+..", "+..", "+..", "+..", "+.."]),
    (Action::ListNodes, ["+..", "-..", "+..", "+..", "+..", "+.."]),
    (Action::RunDoctor, ["-..", "-..", "-..", "+..", "+..", "+.."]),
    (Action::LookAtAgents, ["-..", "-..", "-..", "+..", "+..", "+.."]),
    (Action::CheckAuth, ["-..", "-..", "-..", "+..", "+..", "+.."]),
    (Action::ReadConfig, ["-..", "-..", "-..", "+..", "+..", "+.."]),
    (Action::ChangeConfig, ["-..", "-..", "-..", "+..", "+..", "+.."]),
    (Action::ReadProcesses, ["-..", "-..", "-..", "+..", "+..", "+.."]),
    (Action::StartProcess, ["-..", "-..", "-..", "+..", "+..", "+.."]),
    (Action::StopProcess, ["-..", "-..", "-..", "+..", "+..", "+.."]),
    (Action::ReadMetrics, ["+..", "-..", "+..", "+..", "+..", "+.."]),
    (Action::ReadAudit, ["-..", "-..", "-..", "+..", "+..", "+.."]),
    (Action::ReadSettings, ["-..", "-..", "-..", "+..", "+..", "+.."]),
    (Action::ReadTrust, ["-..", "-..", "-..", "+..", "+..", "+.."]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Own,
    Foreign,
    Privileged,
}

const SUBJECTS: [Whose; 3] = [Whose::Own, Whose::Foreign, Whose::Privileged];

/// An actor, and the key that it shows over HTTP, if it has one.
struct Cast {
    actor: Actor,
    key: Option<String>,
}

struct Stage {
    place: Place,
    cast: Vec<Cast>,
    number: u128,
    /// The spec that an action on specs is done to.
    spec: SpecId,
}

impl Stage {
    async fn new() -> Self {
        let place = Place::with(Setup { keys: KeyRule::NotOnLoopback, ..Setup::default() }).await;
        let mut cast = Vec::new();
        for name in ACTORS {
            cast.push(match name {
                "loopback" => Cast { actor: Actor::Loopback, key: None },
                "local" => Cast { actor: Actor::LocalUser, key: None },
                scopes => {
                    let scopes: Scopes = scopes.parse().unwrap();
                    let made =
                        place.key(scopes.to_string().as_str(), &scopes.iter().collect::<Vec<_>>()).await;
                    let actor = Actor::Key { id: made.id, owner: made.owner, scopes };
                    Cast { actor, key: Some(made.key.reveal().to_owned()) }
                }
            });
        }
        Self { place, cast, number: 0, spec: SpecId::new(1, 0) }
    }

    /// A run of this kind, in the state that the action is for.
    async fn run(&mut self, action: Action, actor: &Actor, whose: Whose) -> RunId {
        self.number += 1;
        let id = RunId::new(1_000, self.number);
        let mut request = plain_request(&id);
        match (action, whose) {
            // It is for sealed runs alone.
            (Action::AllowHost, Whose::Privileged) => {
                (request.policy.network, request.policy.limits_rule) =
                    (Network::Sealed, LimitsRule::BestEffort);
            }
            (Action::AllowHost, Whose::Own | Whose::Foreign) => request.policy.network = Network::Sealed,
            (_, Whose::Privileged) => {
                (request.policy.mode, request.policy.network) = (Mode::Host, Network::Open);
            }
            (_, Whose::Own | Whose::Foreign) => {}
        }
        let owner = match whose {
            Whose::Own | Whose::Privileged => actor.owner(),
            Whose::Foreign => "somebody".parse().unwrap(),
        };
        if is_of_specs(action) {
            self.spec = self.make_spec(action, owner.clone()).await;
        }
        self.enqueue(&request, owner).await;
        let is_letter = matches!(action, Action::ReadDeadLetters | Action::RemoveDeadLetter);
        if is_letter || matches!(action, Action::RetryRun | Action::RemoveRun) {
            let claimed = self.place.claim(&id).await;
            let outcome = Outcome::failed(FailureClass::AgentMissing, "no agent");
            let letter = is_letter.then(letter);
            let left = Left { letter, ..Left::default() };
            self.place.store.finish(&claimed.lease, &outcome, &left, 9).await.unwrap();
        }
        id
    }

    /// A spec of this owner, in the state that the action is for.
    async fn make_spec(&self, action: Action, owner: OwnerName) -> SpecId {
        let store = &self.place.store;
        self.project(&self.place.operations()).await;
        let project = store.find_project(&self.project_name()).await.unwrap().unwrap().id;
        let maker = Actor::Key { id: cofferdam_core::KeyId::new(1, 1), owner, scopes: Scopes::all() };
        let id = SpecId::new(1_000, self.number);
        let mandate = |action| issue(&maker, action, id.as_str(), json!({}), 1_000);
        let (title, description) = ("Accept coupons".to_owned(), "At the till.".to_owned());
        let new = NewSpec {
            id: id.clone(),
            project: Some(project.clone()),
            title: title.clone(),
            description: description.clone(),
        };
        store.create_spec(&mandate(Action::CreateSpec), &new).await.unwrap();
        if action == Action::DecideSpec {
            let phases = vec![PhasePlan { phase: Phase::Explore, seconds: 60, max_turns: 5, template: None }];
            let setup = SpecSetup {
                id: id.clone(),
                project: project.clone(),
                agent: Agent::Codex,
                model: None,
                title,
                description,
                phases_version: 1,
                phases,
            };
            let run = RunId::new(2_000, self.number);
            let mut request = plain_request(&run);
            request.work = Work::Spec(Box::new(setup));
            request.placement.project = Some(project);
            let plan = SpecPlan::new(Phase::DEFAULT.to_vec(), [Phase::Explore]).unwrap();
            let seen = store.spec(&id).await.unwrap().unwrap().revision;
            let execution = SpecExecution { seen, plan, restart_from: None, request };
            store.execute_spec(&mandate(Action::ExecuteSpec), &id, &execution).await.unwrap();
            let claimed = self.place.claim(&run).await;
            let news = PhaseNews {
                phase: Phase::Explore,
                tries: 1,
                state: PhaseState::Passed,
                output: Some(json!({})),
                score: Some(1.0),
                reasons: Vec::new(),
                events: Vec::new(),
            };
            store.record_phase(&claimed.lease, &news, 2_000).await.unwrap();
            store.finish(&claimed.lease, &Outcome::Succeeded, &Left::default(), 9).await.unwrap();
        }
        id
    }

    async fn enqueue(&self, request: &RunRequest, owner: OwnerName) {
        let maker = Actor::Key { id: cofferdam_core::KeyId::new(1, 1), owner, scopes: Scopes::all() };
        let mandate = issue(&maker, Action::CreateRun, request.id.as_str(), json!({}), 1_000);
        self.place.store.enqueue(&mandate, request, None).await.unwrap();
    }

    /// What comes of it by the operation itself.
    async fn by_operation(&self, action: Action, actor: &Actor, run: &RunId, whose: Whose) -> char {
        let operations = self.place.operations();
        let service = NodeId::new(1, 98);
        let own = AskedService { own: &service, named: None };
        let command = Some(vec!["true".to_owned()]);
        let mut input = cofferdam_core::RunInput { command, ..cofferdam_core::RunInput::default() };
        if whose == Whose::Privileged {
            input.options.mode = Some("host".to_owned());
        }
        let done = match action {
            Action::CreateRun => {
                let new = new_run(&input, &Elsewhere);
                operations.create_run(actor, &new, None).await.map(|_| true)
            }
            Action::RetryRun => operations.retry_run(actor, run).await.map(|_| true),
            Action::CancelRun => operations.cancel_run(actor, run).await.map(|_| true),
            Action::SendMessage => {
                let kind = cofferdam_core::MessageKind::Steer;
                operations.send_message(actor, run, kind, "hello").await.map(|_| true)
            }
            Action::AllowHost => {
                operations.allow_host(actor, run, &["crates.io:443".to_owned()]).await.map(|_| true)
            }
            Action::RemoveRun => operations.remove_run(actor, run).await.map(|_| true),
            Action::ListRuns => {
                let input = RunListInput { limit: Some(500), ..RunListInput::default() };
                let page = operations.list_runs(actor, &input).await;
                page.map(|page| page.runs.iter().any(|record| record.request.id == *run))
            }
            Action::ReadRun => operations.read_run(actor, run).await.map(|_| true),
            Action::ReadDeadLetters => {
                let listed = operations.list_dead_letters(actor).await;
                match operations.read_dead_letter(actor, run).await {
                    Ok(_) => listed.map(|letters| letters.iter().any(|kept| kept.run == *run)),
                    Err(error) => Err(error),
                }
            }
            Action::RemoveDeadLetter => operations.remove_dead_letter(actor, run).await.map(|_| true),
            Action::CreateProject => {
                let input = ProjectInput {
                    name: format!("p{}", self.number),
                    repo: "acme/app".to_owned(),
                    reference: None,
                    max_concurrency: None,
                };
                operations.create_project(actor, &input, &Elsewhere).await.map(|_| true)
            }
            Action::ReadProjects => operations.list_projects(actor).await.map(|_| true),
            Action::RemoveProject => {
                self.project(&operations).await;
                operations.remove_project(actor, &self.project_name()).await.map(|()| true)
            }
            Action::CreateSpec => {
                let (title, description) = ("x".to_owned(), "y".to_owned());
                let input = SpecInput { title, description, project_id: None };
                operations.create_spec(actor, &input).await.map(|_| true)
            }
            Action::ListSpecs => {
                let input = SpecListInput { limit: Some(500), ..SpecListInput::default() };
                let page = operations.list_specs(actor, &input).await;
                page.map(|page| page.specs.iter().any(|spec| spec.id == self.spec))
            }
            Action::ReadSpec => operations.read_spec(actor, &self.spec).await.map(|_| true),
            Action::UpdateSpec => {
                let input = UpdateSpecInput { title: Some("z".to_owned()), ..UpdateSpecInput::default() };
                operations.update_spec(actor, &self.spec, &input).await.map(|_| true)
            }
            Action::ExecuteSpec => {
                let (input, place) = (ExecuteSpecInput::default(), PlaceId::new(1, 1));
                let new = NewExecution { input: &input, place: &place, surroundings: &Elsewhere };
                operations.execute_spec(actor, &self.spec, &new).await.map(|_| true)
            }
            Action::DecideSpec => {
                let input = DecideSpecInput::default();
                operations.decide_spec(actor, &self.spec, Decision::Approve, &input).await.map(|_| true)
            }
            Action::CreateKey => {
                let scopes = [Scope::Read].into_iter().collect();
                let input = KeyInput { name: "k".to_owned(), scopes, owner: None };
                operations.create_key(actor, &input).await.map(|_| true)
            }
            Action::ListKeys => operations.list_keys(actor).await.map(|_| true),
            Action::RevokeKey => {
                let made = self.place.key("gone", &[Scope::Read]).await;
                operations.revoke_key(actor, &made.id).await.map(|()| true)
            }
            Action::ListAgents => operations.agents_in_force(actor).await.map(|_| true),
            Action::ListNodes => operations.list_nodes(actor).await.map(|_| true),
            Action::RunDoctor => operations.doctor(actor, None).await.map(|_| true),
            Action::LookAtAgents => operations.look_at_agents(actor).await.map(|_| true),
            Action::CheckAuth => match operations.check_auth(actor, Agent::Codex, None).await {
                // Nobody is there who could find out.
                Ok(_) | Err(Error::NodeUnavailable(_)) => Ok(true),
                Err(error) => Err(error),
            },
            Action::ReadConfig => operations.get_config(actor).await.map(|_| true),
            Action::ChangeConfig => {
                let updates = [("LLM_EXECUTOR".to_owned(), Some("codex".to_owned()))].into();
                let change = ConfigChange { updates, force: false };
                operations.change_config(actor, &change).await.map(|_| true)
            }
            Action::ReadProcesses => operations.list_processes(actor, own).await.map(|_| true),
            Action::StartProcess => operations.start_process(actor, own, "dispatcher").await.map(|_| true),
            Action::StopProcess => {
                operations.stop_process(actor, own, "dispatcher", false).await.map(|_| true)
            }
            Action::ReadMetrics => operations.may_read_metrics(actor).await.map(|()| true),
            Action::ReadAudit => operations.read_audit(actor, None, None).await.map(|_| true),
            Action::ReadSettings => operations.read_settings(actor).await.map(|_| true),
            Action::ReadTrust => operations.may_read_trust(actor).await.map(|()| true),
        };
        match done {
            Ok(true) => '+',
            Ok(false)
            | Err(Error::RunNotFound(_) | Error::SpecNotFound(_) | Error::DeadLetterNotFound(_)) => '0',
            Err(Error::Refused(_)) => '-',
            Err(error) => panic!("{action} by {actor:?} on {whose:?}: {error}"),
        }
    }

    /// What comes of it over HTTP.
    async fn over_http(&self, action: Action, cast: &Cast, run: &RunId, whose: Whose) -> char {
        let of_run = |rest: &str| format!("/api/v1/runs/{run}{rest}");
        let of_spec = |rest: &str| format!("/api/v1/specs/{}{rest}", self.spec);
        let nothing = json!({});
        let options = if whose == Whose::Privileged { json!({ "mode": "host" }) } else { json!({}) };
        let (method, path, body) = match action {
            Action::CreateRun => {
                ("POST", "/api/v1/runs".to_owned(), json!({ "command": ["true"], "options": options }))
            }
            Action::RetryRun => ("POST", of_run("/retry"), nothing),
            Action::CancelRun => ("POST", of_run("/cancel"), nothing),
            Action::SendMessage => {
                ("POST", of_run("/messages"), json!({ "kind": "steer", "content": "hello" }))
            }
            Action::ListRuns => ("GET", "/api/v1/runs?limit=500".to_owned(), nothing),
            Action::ReadRun => ("GET", of_run(""), nothing),
            Action::ReadDeadLetters => ("GET", format!("/api/v1/dead-letters/{run}"), nothing),
            Action::RemoveDeadLetter => ("DELETE", format!("/api/v1/dead-letters/{run}"), nothing),
            Action::CreateProject => {
                let body = json!({ "name": format!("h{}", self.number), "repo": "acme/app" });
                ("POST", "/api/v1/projects".to_owned(), body)
            }
            Action::ReadProjects => ("GET", "/api/v1/projects".to_owned(), nothing),
            Action::RemoveProject => {
                self.project(&self.place.operations()).await;
                ("DELETE", format!("/api/v1/projects/{}", self.project_name()), nothing)
            }
            Action::CreateSpec => {
                ("POST", "/api/v1/specs".to_owned(), json!({ "title": "x", "description": "y" }))
            }
            Action::ListSpecs => ("GET", "/api/v1/specs?limit=500".to_owned(), nothing),
            Action::ReadSpec => ("GET", of_spec(""), nothing),
            Action::UpdateSpec => ("PATCH", of_spec(""), json!({ "title": "z" })),
            Action::ExecuteSpec => ("POST", of_spec("/execute"), nothing),
            Action::DecideSpec => ("POST", of_spec("/approve"), nothing),
            Action::ListAgents => ("GET", "/api/v1/agents".to_owned(), nothing),
            Action::ListNodes => ("GET", "/api/v1/nodes".to_owned(), nothing),
            Action::RunDoctor => ("GET", "/system/doctor".to_owned(), nothing),
            Action::LookAtAgents => ("GET", "/system/agents".to_owned(), nothing),
            Action::CheckAuth => ("GET", "/system/codex/auth".to_owned(), nothing),
            Action::ReadConfig => ("GET", "/config".to_owned(), nothing),
            Action::ChangeConfig => {
                ("PATCH", "/config".to_owned(), json!({ "updates": { "LLM_EXECUTOR": "codex" } }))
            }
            Action::ReadProcesses => ("GET", "/system/processes".to_owned(), nothing),
            Action::StartProcess => ("POST", "/system/processes/dispatcher/start".to_owned(), nothing),
            Action::StopProcess => ("POST", "/system/processes/dispatcher/stop".to_owned(), nothing),
            Action::ReadMetrics => ("GET", "/metrics".to_owned(), nothing),
            Action::ReadAudit => ("GET", "/api/v1/audit".to_owned(), nothing),
            Action::ReadSettings => ("GET", "/system/settings".to_owned(), nothing),
            Action::ReadTrust => ("GET", "/system/trust".to_owned(), nothing),
            Action::AllowHost => ("POST", of_run("/allow"), json!({ "allow": ["crates.io:443"] })),
            Action::RemoveRun => ("DELETE", of_run(""), nothing),
            Action::CreateKey => ("POST", "/api/v1/keys".to_owned(), json!({ "name": "k" })),
            Action::ListKeys => ("GET", "/api/v1/keys".to_owned(), nothing),
            Action::RevokeKey => {
                let made = self.place.key("gone", &[Scope::Read]).await;
                ("DELETE", format!("/api/v1/keys/{}", made.id), nothing)
            }
        };
        let mut request = http().request(method.parse().unwrap(), self.place.url(&path));
        if let Some(key) = &cast.key {
            request = request.header("x-api-key", key);
        }
        if matches!(method, "POST" | "PATCH") {
            request = request.json(&body);
        }
        let answered = answer(request).await;
        let is_listed = || match action {
            Action::ListSpecs => answered.body["specs"].to_string().contains(self.spec.as_str()),
            _ => answered.body["runs"].to_string().contains(run.as_str()),
        };
        match answered.status {
            200..300 if matches!(action, Action::ListRuns | Action::ListSpecs) && !is_listed() => '0',
            200..300 => '+',
            // Nobody is there who could find out.
            503 if action == Action::CheckAuth && answered.code() == "NODE_UNAVAILABLE" => '+',
            403 => '-',
            404 => '0',
            status => panic!("{action} by {:?} on {whose:?}: {status} {}", cast.actor, answered.body),
        }
    }

    fn project_name(&self) -> String {
        format!("r{}", self.number)
    }

    async fn project(&self, operations: &Operations) {
        let input = ProjectInput {
            name: self.project_name(),
            repo: "acme/app".to_owned(),
            reference: None,
            max_concurrency: None,
        };
        let made = operations.create_project(&Actor::LocalUser, &input, &Elsewhere).await;
        assert!(matches!(made, Ok(_) | Err(Error::ProjectExists(_))), "{made:?}");
    }
}

fn is_of_specs(action: Action) -> bool {
    matches!(
        action,
        Action::ListSpecs | Action::ReadSpec | Action::UpdateSpec | Action::ExecuteSpec | Action::DecideSpec
    )
}

fn letter() -> DeadLetter {
    DeadLetter {
        failed_at: cofferdam_core::iso_time(0),
        error_class: ErrorClass::Config,
        error_message: "no agent".to_owned(),
        attempt: 1,
        max_attempts: 1,
        payload: json!({}),
    }
}

#[tokio::test]
async fn every_operation_is_judged_alike_over_http_and_by_itself() {
    let listed: Vec<Action> = TABLE.iter().map(|(action, _)| *action).collect();
    assert_eq!(listed, Action::ALL, "an action without a row");
    let mut stage = Stage::new().await;
    for (action, row) in TABLE {
        for (index, expected) in row.iter().enumerate() {
            let actor = stage.cast[index].actor.clone();
            for (whose, expected) in SUBJECTS.into_iter().zip(expected.chars()) {
                if expected == '.' {
                    continue;
                }
                let told = format!("{action} by {} on {whose:?}", ACTORS[index]);
                let run = stage.run(*action, &actor, whose).await;
                let found = stage.by_operation(*action, &actor, &run, whose).await;
                assert_eq!(found, expected, "{told}, by the operation");
                // Nobody who is at the command line comes over HTTP without being somebody else there.
                if ACTORS[index] == "local" {
                    continue;
                }
                let run = stage.run(*action, &actor, whose).await;
                let found = stage.over_http(*action, &stage.cast[index], &run, whose).await;
                assert_eq!(found, expected, "{told}, over HTTP");
            }
        }
    }
}
