//! Networks that containers with an open network are put into.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::value::ValueError;

/// The network of an engine for `--network open`: `default`, or the name of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContainerNetwork(Option<String>);

impl ContainerNetwork {
    /// Its name; `None` for the one that the runtime chooses by itself.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Its name on a Docker engine, where the default is `bridge`.
    #[must_use]
    pub fn on_docker(&self) -> &str {
        self.name().unwrap_or("bridge")
    }
}

impl FromStr for ContainerNetwork {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const HINT: &str = "type `bridge`, or the name of a network that the engine has";
        let refuse = |problem| Err(ValueError::new(text, problem, HINT));
        if text == "host" {
            return refuse(
                "would give the container this machine's own network, and with it every local service",
            );
        }
        if text.starts_with("container:") {
            return refuse("would put the container into another one's network");
        }
        if text == "none" {
            let hint = "leave it out, and type `--network none` for a run that needs none";
            return Err(ValueError::new(text, "is no network for runs with an open one", hint));
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
        let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !begins_well || !text.bytes().all(plain) {
            return refuse("is not the name of a network");
        }
        Ok(Self((text != "default").then(|| text.to_owned())))
    }
}

impl fmt::Display for ContainerNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or("default"))
    }
}

crate::text::written_as_text!(ContainerNetwork);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_the_default_or_a_name() {
        let read = |text: &str| text.parse::<ContainerNetwork>().expect(text);
        assert_eq!(read("default"), ContainerNetwork::default());
        assert_eq!((read("default").name(), read("default").on_docker()), (None, "bridge"));
        for text in ["bridge", "my_net-1.x", "0"] {
            assert_eq!((read(text).name(), read(text).on_docker()), (Some(text), text));
            assert_eq!(read(text).to_string(), text);
        }
    }

    #[test]
    fn what_takes_the_wall_away_is_refused() {
        for (text, reason) in [
            ("host", "`host` would give the container this machine's own network"),
            (
                "container:db",
                "`container:db` would put the container into another one's network; type `bridge`",
            ),
            ("none", "type `--network none`"),
            ("", "`` is not the name of a network; type `bridge`"),
            ("-x", "is not the name"),
            ("a b", "is not the name"),
            ("ns:/proc/1/ns/net", "is not the name"),
            ("a,b", "is not the name"),
            ("ä", "is not the name"),
        ] {
            let error = text.parse::<ContainerNetwork>().unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("; "), "{text}: {error}");
        }
    }
}
