//! What comes of an operation by itself.

use cofferdam_core::{
    Action, Actor, Agent, DecideSpecInput, ExecuteSpecInput, KeyInput, MessageKind, NodeId, PlaceId,
    ProjectInput, RunId, RunInput, RunListInput, Scope, SpecInput, SpecListInput, UpdateSpecInput,
};
use cofferdam_operations::{AskedService, ConfigChange, Decision, Error, NewExecution};

use super::Whose;
use super::stage::Stage;
use crate::fixture::{Elsewhere, new_run};

impl Stage {
    /// What comes of it by the operation itself.
    pub(super) async fn by_operation(
        &self,
        action: Action,
        actor: &Actor,
        run: &RunId,
        whose: Whose,
    ) -> char {
        let operations = self.place.operations();
        let service = NodeId::new(1, 98);
        let own = AskedService { own: &service, named: None };
        let command = Some(vec!["true".to_owned()]);
        let mut input = RunInput { command, ..RunInput::default() };
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
                let kind = MessageKind::Steer;
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
                let listed = operations.list_all_dead_letters(actor).await;
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
                operations.remove_project(actor, &self.project().await).await.map(|()| true)
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
}
