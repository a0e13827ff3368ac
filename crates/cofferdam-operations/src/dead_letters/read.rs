//! Reading dead letters.

use cofferdam_core::{Action, Actor, RunId, Subject};
use cofferdam_store::KeptLetter;

use crate::Operations;
use crate::error::Error;

impl Operations {
    /// The dead letters that an actor may see, the newest first.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_dead_letters(&self, actor: &Actor) -> Result<Vec<KeptLetter>, Error> {
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
