//! The events of a spec: those of all its runs, one run after the other.

use std::fmt;
use std::str::FromStr;

use cofferdam_core::{Actor, Event, InputError, RunId, Spec, SpecId};
use cofferdam_store::MOST_PAGE_BYTES;

use crate::Operations;
use crate::error::Error;

const USUAL: u32 = 500;
const MOST: u32 = 1_000;

/// A place in the events of a spec, written `RUN.SEQ`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecPosition {
    /// The run.
    pub run: RunId,
    /// The number of the last event that was seen of it; 0 before its first.
    pub seq: u64,
}

/// An event of one of the runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecEvent {
    /// The run.
    pub run: RunId,
    /// What happened.
    pub event: Event,
}

/// A page of a spec's events.
#[derive(Debug, Clone, PartialEq)]
pub struct SpecEventPage {
    /// In their order.
    pub events: Vec<SpecEvent>,
    /// Where the next page begins; `None` if there was no event yet.
    pub next_after: Option<SpecPosition>,
    /// Whether no run is under way and these are the last.
    pub ended: bool,
}

impl Operations {
    /// The events of a spec after a place.
    ///
    /// # Errors
    /// [`Error::SpecNotFound`] also for a spec that the actor may not see.
    pub async fn read_spec_events(
        &self,
        actor: &Actor,
        id: &SpecId,
        after: Option<SpecPosition>,
        limit: Option<u32>,
    ) -> Result<SpecEventPage, Error> {
        // How it stands is read first: what is read after that is all, unless a run is under way.
        let spec = self.visible_spec(actor, id).await?;
        let limit = limit.unwrap_or(USUAL);
        if limit == 0 || limit > MOST {
            return Err(InputError::out_of_range("limit", 1, u64::from(MOST)).into());
        }
        let mut events = Vec::new();
        let mut next_after = after.clone();
        let (mut bytes, mut is_full) = (0_usize, false);
        for run in self.runs_from(&spec, after.as_ref()).await? {
            let left = limit.saturating_sub(u32::try_from(events.len()).unwrap_or(u32::MAX));
            is_full = is_full || left == 0 || bytes >= MOST_PAGE_BYTES;
            if is_full {
                break;
            }
            let seq = after.as_ref().filter(|after| after.run == run).map_or(0, |after| after.seq);
            let read = self.store.events_page(&run, seq, left).await?;
            is_full = read.is_full(left);
            bytes = bytes.saturating_add(read.bytes);
            if let Some(last) = read.rows.last() {
                next_after = Some(SpecPosition { run: run.clone(), seq: last.seq });
            }
            events.extend(read.rows.into_iter().map(|event| SpecEvent { run: run.clone(), event }));
        }
        let ended = spec.live_run().is_none() && !is_full;
        Ok(SpecEventPage { events, next_after, ended })
    }

    /// The next run of a spec after one of them, or the first one; `None` if there is none.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn spec_run_after(&self, id: &SpecId, run: Option<&RunId>) -> Result<Option<RunId>, Error> {
        let runs = self.runs_in_order(id).await?;
        let Some(run) = run else { return Ok(runs.into_iter().next()) };
        let next = place_of(&runs, run);
        Ok(runs.into_iter().skip(next).find(|next| next != run))
    }

    /// Whether a run is one of this spec: a place that somebody names may be in any run.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn is_run_of_spec(&self, id: &SpecId, run: &RunId) -> Result<bool, Error> {
        Ok(self.store.spec_runs(id).await?.iter().any(|worked| worked.run == *run))
    }

    /// The runs of a spec from a place on, the oldest first.
    async fn runs_from(&self, spec: &Spec, after: Option<&SpecPosition>) -> Result<Vec<RunId>, Error> {
        let mut runs = self.runs_in_order(&spec.id).await?;
        let first = after.map_or(0, |after| place_of(&runs, &after.run));
        Ok(runs.split_off(first))
    }

    /// The oldest first.
    async fn runs_in_order(&self, id: &SpecId) -> Result<Vec<RunId>, Error> {
        Ok(self.store.spec_runs(id).await?.into_iter().rev().map(|worked| worked.run).collect())
    }
}

/// Where a run is among those of a spec, or would be if it is not on record any more.
fn place_of(runs: &[RunId], run: &RunId) -> usize {
    let place = runs.iter().position(|one| one == run);
    place.or_else(|| runs.iter().position(|one| one > run)).unwrap_or(runs.len())
}

impl fmt::Display for SpecPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.run, self.seq)
    }
}

impl FromStr for SpecPosition {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        const MOST_DIGITS: usize = 15;
        let parsed = text.trim().split_once('.').and_then(|(run, seq)| {
            let is_number = seq.len() <= MOST_DIGITS && seq.bytes().all(|byte| byte.is_ascii_digit());
            Some(Self { run: run.parse().ok()?, seq: seq.parse().ok().filter(|_| is_number)? })
        });
        parsed.ok_or_else(|| {
            InputError::invalid(
                "after",
                "it is not a place in the events of a spec",
                "pass `next_after` of the page before, or the `id` of the last frame",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_and_nothing_else_is_one() {
        let place = SpecPosition { run: RunId::new(1, 2), seq: 7 };
        assert_eq!(place.to_string().parse(), Ok(place.clone()));
        let run = &place.run;
        for text in
            ["", "7", &format!("{run}"), &format!("{run}.+7"), &format!("{run}.-1"), &format!("{run}.")]
        {
            assert!(text.parse::<SpecPosition>().is_err(), "{text}");
        }
    }
}
