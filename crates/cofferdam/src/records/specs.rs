//! Specs: in the record of this machine, or of a service.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_api::{Client, PhaseData, SpecEventResponse, SpecEventsPage, SpecEventsQuery, SpecResponse};
use cofferdam_core::{
    Actor, DecideSpecInput, ExecuteSpecInput, Gate, Phase, PhaseInput, PlaceId, RunId, SpecId, SpecInput,
    SpecListInput, UpdateSpecInput,
};
use cofferdam_operations::{Decision, NewExecution, Operations, SpecPosition};
use cofferdam_runner::Home;

use super::{client_failure, operation_failure};
use crate::caller::{Caller, now_ms};
use crate::commands::run::surroundings_of;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::record_place::open_store;
use crate::settings;

/// Whoever sits at this machine.
const ACTOR: Actor = Actor::LocalUser;
/// The most that are listed at once.
const PAGE: u32 = 500;

/// What the `spec` commands need.
#[async_trait(?Send)]
pub(crate) trait SpecRecords {
    async fn create(&self, input: &SpecInput) -> Result<SpecResponse, Failure>;

    /// The newest first.
    async fn page(&self, input: &SpecListInput) -> Result<(Vec<SpecResponse>, Option<String>), Failure>;

    async fn spec(&self, id: &SpecId) -> Result<SpecResponse, Failure>;

    async fn outputs(&self, id: &SpecId) -> Result<PhaseData, Failure>;

    async fn update(&self, id: &SpecId, input: &UpdateSpecInput) -> Result<SpecResponse, Failure>;

    /// Writes an output of a phase, and says what its gate thinks of it.
    async fn write(&self, id: &SpecId, phase: Phase, input: &PhaseInput) -> Result<Gate, Failure>;

    async fn execute(&self, id: &SpecId, input: &ExecuteSpecInput) -> Result<Executing, Failure>;

    /// The phase that was decided about, and the run that goes on with it, if anything is left to do.
    async fn decide(
        &self,
        id: &SpecId,
        decision: Decision,
        input: &DecideSpecInput,
    ) -> Result<(Phase, Option<RunId>), Failure>;

    /// The run that was asked to end, if one was under way.
    async fn cancel(&self, id: &SpecId) -> Result<Option<RunId>, Failure>;

    async fn export(&self, id: &SpecId) -> Result<String, Failure>;

    /// What follows a place in the events of all its runs.
    async fn events_after(&self, id: &SpecId, after: Option<&str>) -> Result<SpecEventsPage, Failure>;

    /// Where the events end that there are now.
    async fn end_of_events(&self, id: &SpecId) -> Result<Option<String>, Failure> {
        let mut after = None;
        loop {
            let page = self.events_after(id, after.as_deref()).await?;
            match page.events.is_empty() {
                true => return Ok(after),
                false => after = page.next_after,
            }
        }
    }

    /// Every spec, the newest first.
    async fn list(&self, input: &SpecListInput) -> Result<Vec<SpecResponse>, Failure> {
        let mut input = SpecListInput { limit: Some(PAGE), ..input.clone() };
        let mut specs = Vec::new();
        loop {
            let (page, next) = self.page(&input).await?;
            specs.extend(page);
            match next {
                Some(_) => input.cursor = next,
                None => return Ok(specs),
            }
        }
    }
}

/// A run that works on a spec.
pub(crate) struct Executing {
    pub(crate) run: RunId,
    /// `false` if it was under way before.
    pub(crate) is_new: bool,
    pub(crate) warnings: Vec<String>,
}

/// The record of this machine, under the settings of its service, whose nodes work on what is in it.
pub(crate) struct SpecsHere {
    operations: Operations,
    place: PlaceId,
    caller: Caller,
}

impl SpecsHere {
    pub(crate) async fn open(home: &Home, caller: &Caller) -> Result<Self, Failure> {
        let settings = settings::read_for_service(caller)?;
        let place = home
            .place(now_ms())
            .map_err(|error| Failure::internal("the state folder cannot be read", &error))?;
        let store = open_store(home, caller).await?;
        let operations = Operations::new(store, Arc::new(settings), Arc::new(|_| false));
        Ok(Self { operations, place, caller: caller.clone() })
    }
}

#[async_trait(?Send)]
impl SpecRecords for SpecsHere {
    async fn create(&self, input: &SpecInput) -> Result<SpecResponse, Failure> {
        self.operations.create_spec(&ACTOR, input).await.map(SpecResponse::from).map_err(operation_failure)
    }

    async fn page(&self, input: &SpecListInput) -> Result<(Vec<SpecResponse>, Option<String>), Failure> {
        let page = self.operations.list_specs(&ACTOR, input).await.map_err(operation_failure)?;
        Ok((page.specs.into_iter().map(SpecResponse::from).collect(), page.next_cursor))
    }

    async fn spec(&self, id: &SpecId) -> Result<SpecResponse, Failure> {
        self.operations.read_spec(&ACTOR, id).await.map(SpecResponse::from).map_err(operation_failure)
    }

    async fn outputs(&self, id: &SpecId) -> Result<PhaseData, Failure> {
        self.operations.read_spec(&ACTOR, id).await.map(PhaseData::from).map_err(operation_failure)
    }

    async fn update(&self, id: &SpecId, input: &UpdateSpecInput) -> Result<SpecResponse, Failure> {
        self.operations
            .update_spec(&ACTOR, id, input)
            .await
            .map(SpecResponse::from)
            .map_err(operation_failure)
    }

    async fn write(&self, id: &SpecId, phase: Phase, input: &PhaseInput) -> Result<Gate, Failure> {
        let written = self.operations.write_spec_phase(&ACTOR, id, phase.as_str(), input).await;
        written.map(|written| written.gate).map_err(operation_failure)
    }

    async fn execute(&self, id: &SpecId, input: &ExecuteSpecInput) -> Result<Executing, Failure> {
        let surroundings = surroundings_of(&self.caller);
        let new = NewExecution { input, place: &self.place, surroundings: &surroundings };
        let executed = self.operations.execute_spec(&ACTOR, id, &new).await.map_err(operation_failure)?;
        Ok(Executing { run: executed.run, is_new: executed.is_new, warnings: executed.warnings })
    }

    async fn decide(
        &self,
        id: &SpecId,
        decision: Decision,
        input: &DecideSpecInput,
    ) -> Result<(Phase, Option<RunId>), Failure> {
        let decided = self.operations.decide_spec(&ACTOR, id, decision, input).await;
        decided.map(|decided| (decided.phase, decided.run)).map_err(operation_failure)
    }

    async fn cancel(&self, id: &SpecId) -> Result<Option<RunId>, Failure> {
        self.operations
            .cancel_spec(&ACTOR, id)
            .await
            .map(|cancelled| cancelled.run)
            .map_err(operation_failure)
    }

    async fn export(&self, id: &SpecId) -> Result<String, Failure> {
        self.operations.export_spec(&ACTOR, id).await.map_err(operation_failure)
    }

    async fn events_after(&self, id: &SpecId, after: Option<&str>) -> Result<SpecEventsPage, Failure> {
        let after = after.map(str::parse::<SpecPosition>).transpose();
        let after = after.map_err(|error| operation_failure(error.into()))?;
        let page =
            self.operations.read_spec_events(&ACTOR, id, after, None).await.map_err(operation_failure)?;
        let events = page.events.into_iter();
        let events = events.map(|told| SpecEventResponse { run_id: told.run, event: told.event.into() });
        Ok(SpecEventsPage {
            spec_id: id.clone(),
            events: events.collect(),
            next_after: page.next_after.map(|place| place.to_string()),
            ended: page.ended,
        })
    }
}

#[async_trait(?Send)]
impl SpecRecords for Client {
    async fn create(&self, input: &SpecInput) -> Result<SpecResponse, Failure> {
        self.create_spec(input).await.map_err(|error| client_failure(&error))
    }

    async fn page(&self, input: &SpecListInput) -> Result<(Vec<SpecResponse>, Option<String>), Failure> {
        let page = self.specs(input).await.map_err(|error| client_failure(&error))?;
        Ok((page.specs, page.next_cursor))
    }

    async fn spec(&self, id: &SpecId) -> Result<SpecResponse, Failure> {
        Self::spec(self, id).await.map_err(|error| client_failure(&error))
    }

    async fn outputs(&self, id: &SpecId) -> Result<PhaseData, Failure> {
        self.spec_phase_data(id).await.map_err(|error| client_failure(&error))
    }

    async fn update(&self, id: &SpecId, input: &UpdateSpecInput) -> Result<SpecResponse, Failure> {
        self.update_spec(id, input).await.map_err(|error| client_failure(&error))
    }

    async fn write(&self, id: &SpecId, phase: Phase, input: &PhaseInput) -> Result<Gate, Failure> {
        let written = self.write_spec_phase(id, phase, input).await;
        written.map(|written| written.gate).map_err(|error| client_failure(&error))
    }

    async fn execute(&self, id: &SpecId, input: &ExecuteSpecInput) -> Result<Executing, Failure> {
        use cofferdam_api::ExecuteSpecStatus::Started;
        let answer = self.execute_spec(id, input).await.map_err(|error| client_failure(&error))?;
        Ok(Executing { run: answer.run_id, is_new: answer.status == Started, warnings: answer.warnings })
    }

    async fn decide(
        &self,
        id: &SpecId,
        decision: Decision,
        input: &DecideSpecInput,
    ) -> Result<(Phase, Option<RunId>), Failure> {
        let decided = match decision {
            Decision::Approve => self.approve_spec(id, input).await,
            Decision::Reject => self.reject_spec(id, input).await,
        };
        decided.map(|decided| (decided.phase, decided.run_id)).map_err(|error| client_failure(&error))
    }

    async fn cancel(&self, id: &SpecId) -> Result<Option<RunId>, Failure> {
        let cancelled = self.cancel_spec(id).await.map_err(|error| client_failure(&error))?;
        Ok(cancelled.run_id)
    }

    async fn export(&self, id: &SpecId) -> Result<String, Failure> {
        let bytes = self.export_spec(id).await.map_err(|error| client_failure(&error))?;
        let text = String::from_utf8(bytes);
        text.map_err(|_| Failure::new(ExitCode::Internal, "what the service answered is not text"))
    }

    async fn events_after(&self, id: &SpecId, after: Option<&str>) -> Result<SpecEventsPage, Failure> {
        let query = SpecEventsQuery { after: after.map(str::to_owned), limit: None };
        self.spec_events(id, &query).await.map_err(|error| client_failure(&error))
    }
}
