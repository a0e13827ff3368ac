//! Making a run: judging a request, and accepting what was judged.

use std::path::Path;

use cofferdam_core::{
    Action, Actor, ChosenPolicy, Context, InputError, InputErrorKind, InputSyntax, LimitsRule, LocalUrls,
    NodeId, PathUse, PlaceId, Placing, Project, RunId, RunInput, RunRequest, Subject, Surroundings,
    Validated, Workspace, validate,
};
use serde_json::json;

use crate::Operations;
use crate::authorise::mandate;
use crate::clock::now_ms;
use crate::error::Error;
use crate::random::random_bits;

/// The longest idempotency key.
const LONGEST_KEY: usize = 200;

/// What somebody asks for, and how.
#[derive(Clone, Copy)]
pub struct NewRun<'a> {
    /// What is asked for, as it was written.
    pub input: &'a RunInput,
    /// How it was written, so that an error names a field in the same way.
    pub syntax: InputSyntax,
    /// Who executes it.
    pub way: Way<'a>,
    /// Facts about the machine that the input speaks of.
    pub surroundings: &'a (dyn Surroundings + Sync),
}

/// Who executes a run.
#[derive(Debug, Clone, Copy)]
pub enum Way<'a> {
    /// The process that makes it, while somebody watches: limits may be best effort, and its summary says when they are. A
    /// message works in this folder, which its agent owns.
    Attached {
        /// The folder of the agent, absolute and without links; `None` for a run on what the input names.
        folder: Option<&'a Path>,
    },
    /// A node of the service, within the operator's bounds.
    Queued {
        /// The state folder whose nodes alone can work on paths of this machine.
        place: &'a PlaceId,
    },
}

/// A request that its actor may make: the proof that was judged. A dry run ends here.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    actor: Actor,
    action: Action,
    request: RunRequest,
    /// The run that this one repeats.
    again: Option<RunId>,
}

/// A run that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The run that stands for the request.
    pub run: RunId,
    /// Whose it is.
    pub actor: Actor,
    /// `false` if an earlier request with the same idempotency key had made it.
    pub created: bool,
}

impl Judged {
    pub(super) fn again(actor: &Actor, request: RunRequest, of: RunId) -> Self {
        Self { actor: actor.clone(), action: Action::RetryRun, request, again: Some(of) }
    }

    /// The request, as it would be accepted.
    #[must_use]
    pub fn request(&self) -> &RunRequest {
        &self.request
    }

    /// The same, for one node alone: it belongs to the process that makes it.
    #[must_use]
    pub fn claimable_by(mut self, node: NodeId) -> Self {
        self.request.claimable_by = Some(node);
        self
    }
}

impl Operations {
    /// Judges what somebody asks for, and starts nothing. What comes with it is for the words that the caller shows.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn judge_run(&self, actor: &Actor, new: &NewRun<'_>) -> Result<(Judged, Validated), Error> {
        let id = RunId::new(now_ms(), random_bits());
        self.authorise_at_all(actor, Action::CreateRun, id.as_str()).await?;
        self.now().await?.judge_now(actor, new, id).await
    }

    async fn judge_now(
        &self,
        actor: &Actor,
        new: &NewRun<'_>,
        id: RunId,
    ) -> Result<(Judged, Validated), Error> {
        // One that names a repository too is refused without a look at it.
        let named = new.input.project_id.as_deref().filter(|_| new.input.repo.is_none());
        let project = self.project_of(named, new.way).await?;
        let validated = match self.validated(actor, new, &id, project.as_ref()) {
            Err(error) if error.kind == InputErrorKind::NotAllowed => {
                return Err(self.refused_path(actor, Action::CreateRun, id.as_str(), error).await?);
            }
            validated => validated?,
        };
        let policies = &self.settings.settings.sandbox.policies;
        let policy = validated.policy_name.as_ref().and_then(|name| policies.get(name));
        let request = validated.request.clone();
        let judged = self.judge_request(actor, request, ChosenPolicy::Known(policy)).await?;
        Ok((judged, validated))
    }

    /// Accepts what somebody asks for.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn create_run(
        &self,
        actor: &Actor,
        new: &NewRun<'_>,
        idempotency_key: Option<&str>,
    ) -> Result<Accepted, Error> {
        let (judged, _) = self.judge_run(actor, new).await?;
        self.accept(judged, idempotency_key).await
    }

    /// The project that somebody names; only a service has any.
    pub(super) async fn project_of(
        &self,
        named: Option<&str>,
        way: Way<'_>,
    ) -> Result<Option<Project>, Error> {
        match (named, way) {
            (Some(named), Way::Queued { .. }) => {
                Ok(Some(self.store.find_project(named).await?.ok_or(Error::ProjectNotFound)?))
            }
            (Some(_) | None, _) => Ok(None),
        }
    }

    pub(crate) fn validated(
        &self,
        actor: &Actor,
        new: &NewRun<'_>,
        id: &RunId,
        project: Option<&Project>,
    ) -> Result<Validated, InputError> {
        let how = (new.syntax, new.way, new.surroundings);
        self.in_context((actor, id), how, project, |context| validate(new.input, context))
    }

    /// Has an input read against what holds for whoever wrote it.
    pub(super) fn in_context<T>(
        &self,
        (actor, id): (&Actor, &RunId),
        (syntax, way, surroundings): (InputSyntax, Way<'_>, &(dyn Surroundings + Sync)),
        project: Option<&Project>,
        read: impl FnOnce(&Context<'_>) -> T,
    ) -> T {
        let may_name_path = |path: &Path, path_use: PathUse| self.may_name_path(actor, path, path_use);
        let common = Context {
            id,
            settings: &self.settings,
            syntax,
            limits_rule: LimitsRule::Required,
            local_urls: LocalUrls::Refuse,
            max_execution_time_ms: None,
            placing: Placing::Attached,
            workspace: project.map_or(Workspace::FromInput, Workspace::Project),
            may_name_path: &may_name_path,
            surroundings,
        };
        let context = match way {
            Way::Queued { place } => Context {
                max_execution_time_ms: Some(
                    self.settings.settings.service.max_execution_time_ms.count().into(),
                ),
                placing: Placing::Queued { place },
                ..common
            },
            Way::Attached { folder } => Context {
                limits_rule: LimitsRule::BestEffort,
                local_urls: LocalUrls::Allow,
                workspace: folder.map_or(common.workspace, Workspace::Folder),
                ..common
            },
        };
        read(&context)
    }

    /// Judges a new request that is valid.
    ///
    /// # Errors
    /// [`Error::Refused`].
    pub async fn judge_request(
        &self,
        actor: &Actor,
        request: RunRequest,
        chosen: ChosenPolicy<'_>,
    ) -> Result<Judged, Error> {
        let now = self.now().await?;
        let beyond = now.beyond(actor, &request, chosen).await?;
        let subject = Subject::Request { beyond: &beyond };
        now.authorise(actor, Action::CreateRun, request.id.as_str(), subject).await?;
        Ok(Judged { actor: actor.clone(), action: Action::CreateRun, request, again: None })
    }

    /// Accepts a request that was judged. It is durable when this returns. A request that is repeated with the same
    /// idempotency key returns the first run.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn accept(&self, judged: Judged, idempotency_key: Option<&str>) -> Result<Accepted, Error> {
        let Judged { actor, action, mut request, again } = judged;
        // What was recorded for somebody else does not count when it is run again.
        request.policy.egress.fetch = Some(self.fetch_rule(&actor, &request).await?);
        if let Some(key) = idempotency_key {
            check_key(key)?;
        }
        let about = match again {
            None => json!({ "mode": request.shown_mode(), "network": request.policy.network,
                "agent": request.work.provider() }),
            Some(of) => json!({ "of": of }),
        };
        let mandate = mandate(&actor, action, request.id.as_str(), about);
        let enqueued = self.store.enqueue(&mandate, &request, idempotency_key).await?;
        self.store.wake();
        Ok(Accepted { run: enqueued.run, actor, created: enqueued.created })
    }
}

/// A key is its owner's own, which the store sees to: the same word of two owners is two keys.
fn check_key(text: &str) -> Result<(), InputError> {
    match !text.is_empty() && text.len() <= LONGEST_KEY && text.bytes().all(|b| b.is_ascii_graphic()) {
        true => Ok(()),
        false => Err(InputError::invalid(
            "Idempotency-Key",
            "must be a plain word",
            "write 1 to 200 letters, digits or signs, without spaces",
        )),
    }
}
