//! Logins in folders that an operator may change while we work.

use std::sync::{Arc, Mutex, PoisonError};

use cofferdam_core::SystemConfig;
use cofferdam_runner::logins::{LoginPlaces, Logins};

use crate::caller::Caller;
use crate::followed_config::FollowedConfig;
use crate::secrets::login_places_with;

/// The logins of the moment. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct FollowedLogins {
    /// Whose variables count, and what is set before them; `None` where nothing changes.
    of: Option<(Arc<Caller>, FollowedConfig)>,
    /// What they came to last, so that what was read of the files is kept.
    last: Arc<Mutex<(SystemConfig, Logins)>>,
}

impl FollowedLogins {
    /// Always these.
    pub(crate) fn fixed(logins: Logins) -> Self {
        Self { of: None, last: Arc::new(Mutex::new((SystemConfig::default(), logins))) }
    }

    /// Those in the folders that are set, or that the caller's variables name.
    pub(crate) fn following(caller: &Caller, config: FollowedConfig) -> Self {
        let now = config.now();
        let logins = Logins::new(login_places_with(caller, &now));
        Self { of: Some((Arc::new(caller.clone()), config)), last: Arc::new(Mutex::new((now, logins))) }
    }

    /// The logins of this moment.
    pub(crate) fn now(&self) -> Logins {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((caller, config)) = &self.of {
            let now = config.now();
            if now != last.0 {
                *last = (now.clone(), Logins::new(login_places_with(caller, &now)));
            }
        }
        last.1.clone()
    }

    /// Where they are looked for.
    pub(crate) fn places(&self) -> LoginPlaces {
        match &self.of {
            Some((caller, config)) => login_places_with(caller, &config.now()),
            None => LoginPlaces::default(),
        }
    }
}
