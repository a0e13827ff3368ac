//! Whose model an agent uses.

use std::sync::Arc;

use cofferdam_core::{Agent, Login, Vendor};

/// Finds whose model a coding agent can use now, of these vendors; the first that something opens.
pub type ModelLookup = Arc<dyn Fn(Agent, &[Vendor]) -> Result<ModelChoice, NoModel> + Send + Sync>;

/// Whose model an agent uses, and what its CLI is to think that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// Whose model it is.
    pub vendor: Vendor,
    /// A key, or which login.
    pub login: Login,
}

/// Why an agent has no model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoModel {
    /// What is missing or wrong.
    pub message: String,
    /// What to type.
    pub hint: String,
}
