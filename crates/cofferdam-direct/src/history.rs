//! What was said before.

use crate::turn::Turn;

/// The turns of a conversation so far, from the journal.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Those of the run that is resumed, and of the ones that it resumed. They are sent to the model, and count for
    /// nothing else.
    pub before: Vec<Turn>,
    /// This run's own, over all of its attempts. The first is the prompt.
    pub own: Vec<Turn>,
}
