//! The agents of the settings: whether each has a key or a login, in its own mode.

use cofferdam_sandbox::{Finding, Status};

use crate::caller::Caller;
use crate::known_agents::{KnownAgent, known_agents};
use crate::secrets::{CallerSecrets, no_model};
use crate::settings;

/// A finding for each of them. Settings that cannot be read have been told of before.
pub(super) fn configured(caller: &Caller) -> Vec<Finding> {
    let Ok(loaded) = settings::load(caller, &settings::local_folder(caller)) else { return Vec::new() };
    let name = "agent_access";
    let weak = |detail: &str, remedy: &str| Finding::new(name, Status::Weak, detail, remedy);
    let agents = match known_agents(&loaded.effective) {
        Ok(agents) => agents,
        Err(error) => return vec![weak(&error.to_string(), "cofferdam sandbox show")],
    };
    let secrets = match CallerSecrets::of(caller) {
        Ok(secrets) => secrets,
        Err(failure) => {
            return vec![weak(failure.message(), failure.remedy().unwrap_or("cofferdam agents list"))];
        }
    };
    let look = |agent: KnownAgent| {
        let who = format!("{} ({}, mode {})", agent.name, agent.agent.as_str(), agent.mode);
        match secrets.describe(&agent.work(String::new())) {
            Ok(access) => Finding::ok(name, format!("{who}: {access} (not tried)")),
            Err(error) => {
                let none = no_model(&error);
                weak(&format!("{who}: {}", none.message), &none.hint)
            }
        }
    };
    agents.into_iter().filter(|agent| agent.settings.is_some()).map(look).collect()
}
