//! Whose model an agent uses.

use std::sync::Arc;

use cofferdam_core::{Login, Vendor, Work};

/// Finds whose model can be used now for some work: the first that something opens. `None` where no model is needed.
pub type ModelLookup = Arc<dyn Fn(&Work) -> Result<Option<ModelChoice>, NoModel> + Send + Sync>;

/// Whose model an agent uses, and what its CLI is to think that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// Whose model it is.
    pub vendor: Vendor,
    /// A key, or which login.
    pub login: Login,
}

/// Why there is no model for some work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoModel {
    /// What is missing or wrong.
    pub message: String,
    /// What to type.
    pub hint: String,
}
