//! A service with everybody who may ask it for something, and runs of every kind.

use cofferdam_core::{
    Action, Actor, Agent, AskInput, DeadLetter, ErrorClass, FailureClass, InputSyntax, KeyId, LimitsRule,
    Mode, Network, Outcome, OwnRole, OwnerName, Phase, PhasePlan, PhaseState, PlaceId, ProjectInput, RunId,
    RunRequest, Scopes, SpecId, SpecPlan, SpecSetup, Visibility, Work,
};
use cofferdam_mandate::issue;
use cofferdam_operations::{Error, NewAsk, Way};
use cofferdam_server::KeyRule;
use cofferdam_store::{Left, NewSpec, PhaseNews, SpecExecution};
use serde_json::json;

use super::{ACTORS, Whose};
use crate::fixture::{Elsewhere, Place, Setup, http, plain_request};

/// An actor, and the key that it shows over HTTP, if it has one.
pub(crate) struct Cast {
    pub(crate) actor: Actor,
    pub(crate) key: Option<String>,
}

pub(crate) struct Stage {
    pub(crate) place: Place,
    pub(crate) cast: Vec<Cast>,
    pub(crate) client: reqwest::Client,
    pub(crate) number: u128,
    /// The spec that an action on specs is done to.
    pub(crate) spec: SpecId,
}

impl Stage {
    pub(crate) async fn new(visibility: Visibility) -> Self {
        let settings = json!({ "service": { "visibility": visibility } }).to_string();
        let place = Place::with(Setup { settings, keys: KeyRule::NotOnLoopback, ..Setup::default() }).await;
        let mut cast = Vec::new();
        for name in ACTORS {
            cast.push(match name {
                "loopback" => Cast { actor: Actor::Loopback, key: None },
                "local" => Cast { actor: Actor::LocalUser, key: None },
                "role" => Cast { actor: Actor::Role(OwnRole::AuthCheck), key: None },
                scopes => {
                    let scopes: Scopes = scopes.parse().unwrap();
                    let made =
                        place.key(scopes.to_string().as_str(), &scopes.iter().collect::<Vec<_>>()).await;
                    let actor = Actor::Key { id: made.id, owner: made.owner, scopes };
                    Cast { actor, key: Some(made.key.reveal().to_owned()) }
                }
            });
        }
        Self { place, cast, client: http(), number: 0, spec: SpecId::new(1, 0) }
    }

    /// A run of this kind, in the state that the action is for.
    pub(crate) async fn run(&mut self, action: Action, actor: &Actor, whose: Whose) -> RunId {
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
        if is_of_specs(action) {
            self.spec = self.make_spec(action, owner(actor, whose)).await;
        }
        self.enqueue(&request, owner(actor, whose)).await;
        match action {
            Action::ReadRun => {
                let claimed = self.place.claim(&id).await;
                self.place.finish(&claimed, &Outcome::Succeeded, Some("diff")).await;
            }
            // What can be replayed can be retried as well.
            Action::ReadDeadLetters | Action::RemoveDeadLetter | Action::RetryRun | Action::RemoveRun => {
                let claimed = self.place.claim(&id).await;
                let outcome = Outcome::failed(FailureClass::AgentMissing, "no agent");
                let left = Left { letter: Some(letter()), ..Left::default() };
                self.place.store.finish(&claimed.lease, &outcome, &left, 9).await.unwrap();
            }
            _ => {}
        }
        id
    }

    /// A question to a model.
    pub(crate) async fn question(&mut self, actor: &Actor, whose: Whose) -> RunId {
        self.number += 1;
        let maker = Actor::Key { id: KeyId::new(1, 1), owner: owner(actor, whose), scopes: Scopes::all() };
        let input = AskInput { prompt: "What is 2 + 2?".to_owned(), ..AskInput::default() };
        let way = Way::Queued { place: &PlaceId::new(1, 1) };
        let new = NewAsk { input: &input, syntax: InputSyntax::Fields, way, surroundings: &Elsewhere };
        let operations = self.place.operations();
        let judged = operations.judge_ask(&maker, &new).await.unwrap();
        operations.accept(judged, None).await.unwrap().run
    }

    /// A spec of this owner, in the state that the action is for.
    async fn make_spec(&self, action: Action, owner: OwnerName) -> SpecId {
        let store = &self.place.store;
        let project = store.find_project(&self.project().await).await.unwrap().unwrap().id;
        let maker = Actor::Key { id: KeyId::new(1, 1), owner, scopes: Scopes::all() };
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
        let maker = Actor::Key { id: KeyId::new(1, 1), owner, scopes: Scopes::all() };
        let mandate = issue(&maker, Action::CreateRun, request.id.as_str(), json!({}), 1_000);
        self.place.store.enqueue(&mandate, request, None).await.unwrap();
    }

    /// The name of a project that is there.
    pub(crate) async fn project(&self) -> String {
        let name = format!("r{}", self.number);
        let repo = "acme/app".to_owned();
        let input = ProjectInput { name: name.clone(), repo, reference: None, max_concurrency: None };
        let made = self.place.operations().create_project(&Actor::LocalUser, &input, &Elsewhere).await;
        assert!(matches!(made, Ok(_) | Err(Error::ProjectExists(_))), "{made:?}");
        name
    }
}

fn owner(actor: &Actor, whose: Whose) -> OwnerName {
    match whose {
        Whose::Own | Whose::Privileged => actor.owner(),
        Whose::Foreign => "somebody".parse().unwrap(),
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
