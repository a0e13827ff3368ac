//! Listing specs.

use cofferdam_core::{Action, Actor, IdError, InputError, ProjectId, Spec, SpecId, SpecListInput, Subject};
use cofferdam_store::SpecList;

use crate::Operations;
use crate::error::Error;

/// Specs of one page, if nobody says.
const USUAL: u32 = 50;
/// The most specs of one page.
const MOST: u32 = 500;

/// A page of specs, the newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecPage {
    /// The specs.
    pub specs: Vec<Spec>,
    /// What to pass for the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

impl Operations {
    /// The specs that an actor may see, the newest first.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_specs(&self, actor: &Actor, input: &SpecListInput) -> Result<SpecPage, Error> {
        self.authorise(actor, Action::ListSpecs, "", Subject::Nothing).await?;
        let limit = input.limit.unwrap_or(USUAL);
        if limit == 0 || limit > MOST {
            return Err(InputError::out_of_range("limit", 1, u64::from(MOST)).into());
        }
        let list = SpecList {
            of: self.only_owner(actor),
            project: input.project_id.as_deref().map(project).transpose()?,
            archived: input.archived.unwrap_or_default(),
            before: input.cursor.as_deref().map(cursor).transpose()?,
            limit,
        };
        let specs = self.store.specs(&list).await?;
        // One that is not full is the last. A full one may be the last as well, and then the next is empty.
        let is_full = u32::try_from(specs.len()).is_ok_and(|read| read == limit);
        let next_cursor = specs.last().filter(|_| is_full).map(cursor_of);
        Ok(SpecPage { specs, next_cursor })
    }
}

fn project(text: &str) -> Result<ProjectId, InputError> {
    text.parse().map_err(|error: IdError| {
        InputError::invalid("project_id", error.to_string(), "GET /api/v1/projects lists the ids")
    })
}

fn cursor_of(spec: &Spec) -> String {
    format!("{}.{}", spec.created_at_ms, spec.id)
}

fn cursor(text: &str) -> Result<(u64, SpecId), InputError> {
    let parsed = text.split_once('.').and_then(|(at, spec)| {
        // The store's times are signed.
        let at = at.parse::<i64>().ok().and_then(|at| u64::try_from(at).ok())?;
        Some((at, spec.parse().ok()?))
    });
    parsed.ok_or_else(|| {
        InputError::invalid("cursor", "it is not one of ours", "pass `next_cursor` of the page before")
    })
}
