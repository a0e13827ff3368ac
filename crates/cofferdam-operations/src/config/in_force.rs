//! The settings of the moment: the service's own, with what is on record over them.

use std::sync::{Arc, Mutex, PoisonError};

use cofferdam_core::{Effective, Mode, SystemConfig};

use crate::Operations;
use crate::error::Error;

/// Whose settings requests are judged by.
#[derive(Clone)]
pub(crate) enum InForce {
    /// Those that the process was started with. Nobody's own shell is changed by a database.
    Fixed,
    /// Those with what is on record over them, which is read anew for each judgement; what was made of it last is kept.
    Recorded(Arc<Mutex<Option<Kept>>>),
}

/// What is on record, and what it came to.
type Kept = (SystemConfig, Arc<Effective>);

impl Operations {
    /// The same operations, judged by the settings of this moment.
    pub(crate) async fn now(&self) -> Result<Self, Error> {
        let settings = match &self.in_force {
            InForce::Fixed => return Ok(self.clone()),
            InForce::Recorded(kept) => {
                let config = self.recorded_config().await?;
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                match kept.as_ref().filter(|(of, _)| *of == config) {
                    Some((_, settings)) => Arc::clone(settings),
                    None => {
                        let settings = Arc::new(config.over(&self.settings));
                        *kept = Some((config, Arc::clone(&settings)));
                        settings
                    }
                }
            }
        };
        Ok(Self { settings, in_force: InForce::Fixed, ..self.clone() })
    }

    /// The mode of runs if the environment were switched to `sandbox` now.
    pub(crate) async fn mode_of_sandbox(&self) -> Result<Mode, Error> {
        let switch = [("EXECUTION_ENVIRONMENT".to_owned(), Some("sandbox".to_owned()))].into();
        Ok(self.recorded_config().await?.changed(&switch)?.over(&self.settings).settings.sandbox.mode)
    }

    /// What is on record.
    pub(crate) async fn recorded_config(&self) -> Result<SystemConfig, Error> {
        let entries = self.store.system_config().await?;
        Ok(SystemConfig::of_record(entries.into_iter().map(|entry| (entry.key, entry.value))))
    }
}
