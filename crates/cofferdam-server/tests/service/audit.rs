//! What is written down of changes, whichever way they came.

use std::mem::discriminant;

use cofferdam_core::{
    Action, Actor, Agent, DecideSpecInput, ExecuteSpecInput, KeyId, KeyInput, MessageKind, NodeId, PlaceId,
    ProjectInput, RunId, RunInput, SpecInput, UpdateSpecInput, Visibility,
};
use cofferdam_operations::{AskedService, ConfigChange, Decision, Error, NewExecution, NewRun, Way};
use cofferdam_store::Audit;
use serde_json::{Value, json};

use crate::fixture::{Elsewhere, Place, new_run};
use crate::table::stage::Stage;
use crate::table::{ACTORS, ROUTES, Whose};

/// What a change is made to.
enum Subject {
    Run(RunId),
    Project(String),
    Key(KeyId),
    Nothing,
}

/// Every change, by the route that makes it. Whoever asks again for one of those with a `true` asks for what is done.
const CHANGES: &[(Action, &str, &str, bool)] = &[
    (Action::CreateRun, "POST", "/api/v1/runs", true),
    (Action::CreateRun, "POST", "/execute", true),
    (Action::RetryRun, "POST", "/api/v1/runs/{id}/retry", false),
    (Action::RetryRun, "POST", "/api/v1/dead-letters/{run}/replay", false),
    (Action::CancelRun, "POST", "/api/v1/runs/{id}/cancel", true),
    (Action::SendMessage, "POST", "/api/v1/runs/{id}/messages", false),
    (Action::SendMessage, "POST", "/api/v1/sandboxes/{id}/messages", false),
    (Action::AllowHost, "POST", "/api/v1/runs/{id}/allow", true),
    (Action::RemoveRun, "DELETE", "/api/v1/runs/{id}", true),
    (Action::RemoveDeadLetter, "DELETE", "/api/v1/dead-letters/{run}", true),
    (Action::CreateProject, "POST", "/api/v1/projects", true),
    (Action::RemoveProject, "DELETE", "/api/v1/projects/{project}", true),
    (Action::CreateSpec, "POST", "/api/v1/specs", false),
    (Action::UpdateSpec, "PATCH", "/api/v1/specs/{id}", false),
    (Action::ExecuteSpec, "POST", "/api/v1/specs/{id}/execute", true),
    (Action::DecideSpec, "POST", "/api/v1/specs/{id}/approve", false),
    (Action::CreateKey, "POST", "/api/v1/keys", false),
    (Action::RevokeKey, "DELETE", "/api/v1/keys/{id}", true),
    (Action::ChangeConfig, "PATCH", "/config", true),
    (Action::StartProcess, "POST", "/system/processes/{name}/start", true),
    (Action::StopProcess, "POST", "/system/processes/{name}/stop", true),
];

/// These leave no entry here: where no node is, nobody is asked, and a question to one costs a call and changes nothing.
const NOT_HERE: [Action; 1] = [Action::CheckAuth];

/// What was written down since, without what differs from one run, project or key to the next.
async fn entries(place: &Place, since: &mut u64) -> Vec<Audit> {
    let mut new = place.store.audit_before(u64::MAX >> 1, 100).await.unwrap();
    new.retain(|entry| entry.seq > *since);
    *since = new.first().map_or(*since, |newest| newest.seq);
    new
}

/// An entry without who made it, and without names that have a number in them.
fn told(entry: &Audit) -> String {
    let text =
        json!([entry.action, entry.outcome.as_str(), entry.count, entry.subject, entry.data]).to_string();
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let words = text.split_inclusive(|character| !is_word(character));
    let hide = |word: &str| match word.contains(|character: char| character.is_ascii_digit()) {
        true => format!("#{}", word.trim_start_matches(is_word)),
        false => word.to_owned(),
    };
    words.map(hide).collect()
}

impl Stage {
    /// What a change is made to, once it is there.
    async fn subject(&mut self, action: Action, actor: &Actor) -> Subject {
        match action {
            Action::CreateProject | Action::CreateSpec => Subject::Nothing,
            Action::RemoveProject => Subject::Project(self.project().await),
            Action::RevokeKey => {
                Subject::Key(self.place.key("gone", &[cofferdam_core::Scope::Read]).await.id)
            }
            _ => Subject::Run(self.run(action, actor, Whose::Own).await),
        }
    }

    /// The same change as its command makes it.
    async fn locally(&self, action: Action, actor: &Actor, subject: &Subject) -> Result<(), Error> {
        let operations = self.place.operations();
        let service = NodeId::new(1, 98);
        let own = AskedService { own: &service, named: None };
        let run = |subject: &Subject| match subject {
            Subject::Run(run) => run.clone(),
            _ => panic!("{action} is done to a run"),
        };
        match (action, subject) {
            (Action::CreateRun, _) => {
                let command = Some(vec!["true".to_owned()]);
                let input = RunInput { command, ..RunInput::default() };
                let key = format!("{}", self.number);
                let new = NewRun { way: Way::Attached { folder: None }, ..new_run(&input, &Elsewhere) };
                operations.create_run(actor, &new, Some(&key)).await.map(drop)
            }
            (Action::RetryRun, subject) => {
                let judged = operations.judge_retry(actor, &run(subject), None).await?;
                operations.accept(judged, None).await.map(drop)
            }
            (Action::CancelRun, subject) => operations.cancel_run(actor, &run(subject)).await.map(drop),
            (Action::SendMessage, subject) => {
                operations.send_message(actor, &run(subject), MessageKind::Steer, "hello").await.map(drop)
            }
            (Action::AllowHost, subject) => {
                let hosts = ["crates.io:443".to_owned()];
                operations.allow_host(actor, &run(subject), &hosts).await.map(drop)
            }
            (Action::RemoveRun, subject) => operations.remove_run(actor, &run(subject)).await.map(drop),
            (Action::RemoveDeadLetter, subject) => operations.remove_dead_letter(actor, &run(subject)).await,
            (Action::CreateProject, _) => {
                let (name, repo) = (format!("h{}", self.number), "acme/app".to_owned());
                let input = ProjectInput { name, repo, reference: None, max_concurrency: None };
                operations.create_project(actor, &input, &Elsewhere).await.map(drop)
            }
            (Action::RemoveProject, Subject::Project(name)) => operations.remove_project(actor, name).await,
            (Action::CreateSpec, _) => {
                let (title, description) = ("x".to_owned(), "y".to_owned());
                let input = SpecInput { title, description, project_id: None };
                operations.create_spec(actor, &input).await.map(drop)
            }
            (Action::UpdateSpec, _) => {
                let input = UpdateSpecInput { title: Some("z".to_owned()), ..UpdateSpecInput::default() };
                operations.update_spec(actor, &self.spec, &input).await.map(drop)
            }
            (Action::ExecuteSpec, _) => {
                let (input, place) = (ExecuteSpecInput::default(), PlaceId::new(1, 1));
                let new = NewExecution { input: &input, place: &place, surroundings: &Elsewhere };
                operations.execute_spec(actor, &self.spec, &new).await.map(drop)
            }
            (Action::DecideSpec, _) => {
                let input = DecideSpecInput::default();
                operations.decide_spec(actor, &self.spec, Decision::Approve, &input).await.map(drop)
            }
            (Action::CreateKey, _) => {
                let scopes = [cofferdam_core::Scope::Read].into_iter().collect();
                let input = KeyInput { name: "k".to_owned(), scopes, owner: None };
                operations.create_key(actor, &input).await.map(drop)
            }
            (Action::RevokeKey, Subject::Key(key)) => operations.revoke_key(actor, key).await,
            (Action::CheckAuth, _) => operations.check_auth(actor, Agent::Codex, None).await.map(drop),
            (Action::ChangeConfig, _) => {
                let updates = [("LLM_EXECUTOR".to_owned(), Some("codex".to_owned()))].into();
                operations.change_config(actor, &ConfigChange { updates, force: false }).await.map(drop)
            }
            (Action::StartProcess, _) => operations.start_process(actor, own, "dispatcher").await.map(drop),
            (Action::StopProcess, _) => {
                operations.stop_process(actor, own, "dispatcher", false).await.map(drop)
            }
            (action, _) => panic!("{action} is no change, or is done to something else"),
        }
    }
}

fn cast_of(name: &str) -> usize {
    ACTORS.iter().position(|actor| *actor == name).unwrap()
}

#[tokio::test]
async fn the_audit_says_the_same_of_a_change_whichever_way_it_came() {
    let changes = Action::ALL.iter().filter(|action| action.is_change());
    for action in changes {
        let is_listed = CHANGES.iter().any(|(listed, ..)| listed == action) || NOT_HERE.contains(action);
        assert!(is_listed, "{action} is a change of which nobody looks what is written down");
    }
    let system = cast_of("system");
    for (action, method, path, is_idempotent) in CHANGES {
        assert!(ROUTES.contains(&(*method, *path, *action)), "{method} {path}");
        // A service each, so that neither finds done what the other did.
        let (mut there, mut here) = (Stage::new(Visibility::All).await, Stage::new(Visibility::All).await);
        let told_of = format!("{method} {path}");

        let owner = there.cast[system].actor.clone();
        let run = there.run(*action, &owner, Whose::Own).await;
        let call = there.call(method, path, &run, Whose::Own).await;
        let subject = here.subject(*action, &Actor::LocalUser).await;
        let (mut there_since, mut here_since) = (0, 0);
        entries(&there.place, &mut there_since).await;
        entries(&here.place, &mut here_since).await;

        let refused = there.send(&call, cast_of("read")).await;
        assert_eq!(refused.status, 403, "{told_of}: {}", refused.body);
        let reader = here.cast[cast_of("read")].actor.clone();
        let by_hand = here.locally(*action, &reader, &subject).await;
        assert!(matches!(by_hand, Err(Error::Refused(_))), "{told_of}: {by_hand:?}");
        let of_there = entries(&there.place, &mut there_since).await;
        let of_here = entries(&here.place, &mut here_since).await;
        assert_eq!((of_there.len(), of_there[0].outcome.as_str()), (1, "refused"), "{told_of}: {of_there:?}");
        assert_eq!(told(&of_there[0]), told(&of_here[0]), "{told_of}");

        let done = there.send(&call, system).await;
        assert!(matches!(done.status, 200..300), "{told_of}: {} {}", done.status, done.body);
        here.locally(*action, &Actor::LocalUser, &subject).await.unwrap();
        let of_there = entries(&there.place, &mut there_since).await;
        let of_here = entries(&here.place, &mut here_since).await;
        assert_eq!((of_there.len(), of_there[0].outcome.as_str()), (1, "done"), "{told_of}: {of_there:?}");
        assert_eq!(of_here.len(), 1, "{told_of}: {of_here:?}");
        assert_eq!(told(&of_there[0]), told(&of_here[0]), "{told_of}");
        assert_eq!(of_there[0].action, action.as_str());
        assert_eq!(
            (of_there[0].actor.clone(), of_here[0].actor.as_str()),
            (owner.name(), "local"),
            "{told_of}"
        );

        if !is_idempotent {
            continue;
        }
        let again = there.send(&call, system).await;
        assert!(matches!(again.status, 200..300 | 404 | 409), "{told_of}: {} {}", again.status, again.body);
        let by_hand = here.locally(*action, &Actor::LocalUser, &subject).await;
        // What is gone is not there any more, and what is there already is not made.
        let gone = [
            Error::ProjectNotFound,
            Error::RunNotFound(RunId::new(0, 0)),
            Error::DeadLetterNotFound(RunId::new(0, 0)),
            Error::ProjectExists("p".parse().unwrap()),
        ];
        let is_known = |error: &Error| gone.iter().any(|known| discriminant(known) == discriminant(error));
        assert!(by_hand.as_ref().err().is_none_or(is_known), "{told_of}: {by_hand:?}");
        let left = entries(&there.place, &mut there_since).await;
        assert_eq!(left, [], "{told_of}: nothing was changed, so that nothing is told");
        assert_eq!(entries(&here.place, &mut here_since).await, [], "{told_of}");
    }
}

/// What is refused is counted, and does not fill the record.
#[tokio::test]
async fn refusals_of_one_kind_are_one_entry_a_minute() {
    let place = Place::start().await;
    let body = json!({ "command": ["true"], "options": { "mode": "host" } });
    for _ in 0..5 {
        assert_eq!(place.post("/api/v1/runs", &place.run, &body).await.status, 403);
    }
    let page = place.get("/api/v1/audit?limit=100", &place.system).await.body;
    let changes = page["changes"].as_array().unwrap();
    let refused: Vec<&Value> = changes.iter().filter(|change| change["outcome"] == "refused").collect();
    // A minute may have ended meanwhile.
    assert!(matches!(refused.len(), 1 | 2), "{refused:?}");
    let count: u64 = refused.iter().map(|change| change["count"].as_u64().unwrap()).sum();
    assert_eq!((count, refused[0]["action"].as_str()), (5, Some("run.create")));
    assert!(refused[0]["data"]["reason"].as_str().unwrap().contains("host"), "{}", refused[0]);
}
