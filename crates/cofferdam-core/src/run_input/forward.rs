//! What a request calls a service on the sandbox's own loopback.

use std::str::FromStr;

use super::{InputError, InputSyntax};
use crate::egress::{Forward, HostError};
use crate::policy::gateway;
use crate::run_input::bounds::MOST_FORWARDS;
use crate::settings::{ForwardName, SandboxSettings};
use crate::value::ValueError;

const FIELD: &str = "options.forward";

/// A service of the settings by its name, or one that the caller describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ForwardEntry {
    /// One of `sandbox.forwards`.
    Named(ForwardName),
    /// `PORT=HOST:PORT`.
    Given(Forward),
}

/// The services of a sealed run: those that the settings give to every one, and those that it asks for.
pub(super) fn forwards_of(
    asked: &[ForwardEntry],
    sandbox: &SandboxSettings,
    syntax: InputSyntax,
) -> Result<Vec<Forward>, InputError> {
    let name = syntax.name(FIELD);
    let conflict = |problem: String, hint: &str| InputError::conflict(FIELD, problem, hint);
    let mut forwards: Vec<Forward> = Vec::new();
    let always = sandbox.forwards.values().filter(|service| service.always);
    let always = always.map(|service| Ok(service.forward()));
    for forward in always.chain(asked.iter().map(|entry| found(entry, sandbox, syntax))) {
        let forward = forward?;
        match forwards.iter().find(|other| other.port == forward.port) {
            None => forwards.push(forward),
            // Asked for although every run has it.
            Some(same) if *same == forward && !is_given_twice(asked, &forward) => {}
            Some(_) => {
                let problem = format!("{name}: port {} is given twice", forward.port);
                return Err(conflict(problem, "give each service a port of its own"));
            }
        }
    }
    match forwards.len() > MOST_FORWARDS {
        true => Err(conflict(
            format!("{name}: with those of every run there are more than {MOST_FORWARDS} services"),
            "leave some of them out",
        )),
        false => Ok(forwards),
    }
}

fn is_given_twice(asked: &[ForwardEntry], forward: &Forward) -> bool {
    asked.iter().filter(|entry| matches!(entry, ForwardEntry::Given(given) if given == forward)).count() > 1
}

fn found(
    entry: &ForwardEntry,
    sandbox: &SandboxSettings,
    syntax: InputSyntax,
) -> Result<Forward, InputError> {
    let named = match entry {
        ForwardEntry::Given(forward) => return Ok(forward.clone()),
        ForwardEntry::Named(named) => named,
    };
    sandbox.forwards.get(named).map(crate::settings::ForwardSettings::forward).ok_or_else(|| {
        let known: Vec<&str> = sandbox.forwards.keys().map(ForwardName::as_str).collect();
        let hint = match known.is_empty() {
            true => format!("add \"sandbox\": {{\"forwards\": {{\"{named}\": {{\"port\": 5432, \"target\": \"127.0.0.1:5432\"}}}}}} to ~/.cofferdam/settings.json"),
            false => format!("use one of: {}; or PORT=HOST:PORT", known.join(", ")),
        };
        let problem = format!("{}: the settings have no service `{named}`", syntax.name(FIELD));
        InputError::conflict(FIELD, problem, hint)
    })
}

/// As in `db`, or `5432=db.example:5432`.
impl FromStr for ForwardEntry {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text.contains('=') {
            true => text.parse().map(Self::Given),
            false => text.parse().map(Self::Named).map_err(|_| refuse(text, "there is no `=` in it")),
        }
    }
}

/// As in `5432=db.example:5432`.
impl FromStr for Forward {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let refuse = |why: &str| refuse(text, why);
        let (port, target) = text.split_once('=').ok_or_else(|| refuse("there is no `=` in it"))?;
        let port: u16 = port.parse().map_err(|_| refuse("the port is a number from 1024 to 65535"))?;
        if port < 1024 {
            return Err(refuse("ports below 1024 are closed to the agent's user"));
        }
        if port == gateway::PORT {
            return Err(refuse("this port is the broker's own"));
        }
        let target = target.parse().map_err(|error: HostError| refuse(&error.to_string()))?;
        Ok(Self { port, target })
    }
}

fn refuse(text: &str, why: &str) -> ValueError {
    ValueError {
        problem: format!("`{}`: {why}", crate::egress::printable(text)),
        hint:
            "type PORT=HOST:PORT such as `5432=db.example:5432`, or the name of a service of sandbox.forwards"
                .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(text: &str) -> SandboxSettings {
        serde_json::from_str(text).unwrap()
    }

    fn ports(asked: &[&str], sandbox: &SandboxSettings) -> Result<Vec<u16>, String> {
        let asked: Vec<ForwardEntry> = asked.iter().map(|text| text.parse().unwrap()).collect();
        let found = forwards_of(&asked, sandbox, InputSyntax::Flags);
        let found = found.map_err(|error| format!("{}; {}", error.problem, error.hint))?;
        Ok(found.iter().map(|forward| forward.port).collect())
    }

    #[test]
    fn every_sealed_run_has_the_services_that_are_always_there_and_asks_for_others_by_name() {
        let set = sandbox(
            r#"{"forwards": {"db": {"port": 5432, "target": "127.0.0.1:5432"},
                             "cache": {"port": 6379, "target": "127.0.0.1:6380", "always": true}}}"#,
        );
        assert_eq!(ports(&[], &set), Ok(vec![6379]));
        assert_eq!(ports(&["db"], &set), Ok(vec![6379, 5432]));
        assert_eq!(ports(&["cache", "db", "db"], &set), Ok(vec![6379, 5432]));
        assert_eq!(ports(&["9000=a.example:1"], &set), Ok(vec![6379, 9000]));
        assert!(ports(&["6379=a.example:1"], &set).unwrap_err().contains("port 6379 is given twice"));
        let unknown = ports(&["queue"], &set).unwrap_err();
        assert!(unknown.contains("no service `queue`") && unknown.contains("cache, db"), "{unknown}");
        assert!(ports(&["queue"], &SandboxSettings::default()).unwrap_err().contains("settings.json"));
    }

    #[test]
    fn what_is_neither_a_name_nor_a_service_is_refused_with_what_to_type() {
        for text in ["", "a b", "-x", "5432=", "80=a:1"] {
            let error = text.parse::<ForwardEntry>().unwrap_err();
            assert!(error.hint.contains("PORT=HOST:PORT"), "{text}: {error}");
        }
    }
}
