//! Reading dead letters.

use cofferdam_core::{Action, Actor, InputError, RunId, Subject};
use cofferdam_store::{KeptLetter, LetterCursor};

use crate::Operations;
use crate::error::Error;

/// The most letters of one page.
const MOST: u32 = 500;

/// A page of dead letters, the newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct LetterPage {
    /// The letters.
    pub letters: Vec<KeptLetter>,
    /// What to pass for the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

impl Operations {
    /// A page of the dead letters that an actor may see, the newest first.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_dead_letters(
        &self,
        actor: &Actor,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<LetterPage, Error> {
        self.authorise(actor, Action::ReadDeadLetters, "", Subject::Nothing).await?;
        let limit = limit.unwrap_or(MOST);
        if limit == 0 || limit > MOST {
            return Err(InputError::out_of_range("limit", 1, u64::from(MOST)).into());
        }
        let after = cursor.map(after).transpose()?;
        let page = self.store.letters_page(self.only_owner(actor).as_ref(), after.as_ref(), limit).await?;
        let next_cursor = page.rows.last().filter(|_| page.is_full(limit)).map(cursor_of);
        let letters = page.rows.into_iter().map(|letter| self.shown_to(actor, letter)).collect();
        Ok(LetterPage { letters, next_cursor })
    }

    /// Every dead letter that an actor may see, the newest first.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_all_dead_letters(&self, actor: &Actor) -> Result<Vec<KeptLetter>, Error> {
        self.authorise(actor, Action::ReadDeadLetters, "", Subject::Nothing).await?;
        let letters = self.store.letters(self.only_owner(actor).as_ref()).await?;
        Ok(letters.into_iter().map(|letter| self.shown_to(actor, letter)).collect())
    }

    /// A letter without a replay that the actor may not see: whoever replayed it may be another owner.
    fn shown_to(&self, actor: &Actor, letter: KeptLetter) -> KeptLetter {
        let only = self.only_owner(actor);
        let replay = letter.replay.filter(|replay| only.as_ref().is_none_or(|owner| *owner == replay.owner));
        KeptLetter { replay, ..letter }
    }

    /// The dead letter of a run.
    ///
    /// # Errors
    /// [`Error::DeadLetterNotFound`] also for a run that the actor may not see.
    pub async fn read_dead_letter(&self, actor: &Actor, run: &RunId) -> Result<KeptLetter, Error> {
        let missing = || Error::DeadLetterNotFound(run.clone());
        match self.visible_run(actor, run).await {
            Ok(_) => {
                let letter = self.store.letter(run).await?.ok_or_else(missing)?;
                Ok(self.shown_to(actor, letter))
            }
            Err(Error::RunNotFound(_)) => Err(missing()),
            Err(error) => Err(error),
        }
    }
}

fn cursor_of(letter: &KeptLetter) -> String {
    format!("{}.{}", letter.failed_at_ms, letter.run)
}

fn after(text: &str) -> Result<LetterCursor, InputError> {
    let parsed = text.split_once('.').and_then(|(at, run)| {
        // The store's times are signed.
        let failed_at_ms = at.parse::<i64>().ok().and_then(|at| u64::try_from(at).ok())?;
        Some(LetterCursor { failed_at_ms, run: run.parse().ok()? })
    });
    parsed.ok_or_else(|| {
        InputError::invalid("cursor", "it is not one of ours", "pass `next_cursor` of the page before")
    })
}
