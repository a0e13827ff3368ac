//! Where a Docker engine listens.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::HostPort;
use crate::value::ValueError;

/// The port of an engine without TLS, which the `docker` command adds too.
const ENGINE_PORT: u16 = 2375;

/// The address of an engine, in the form of `DOCKER_HOST`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum EngineAddress {
    /// A socket on this machine: `unix:///var/run/docker.sock`.
    Unix(PathBuf),
    /// `tcp://HOST:PORT`.
    Tcp(HostPort),
}

impl FromStr for EngineAddress {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        const HINT: &str = "type an address such as `unix:///var/run/docker.sock` or `tcp://127.0.0.1:2375`";
        let refuse = |problem: &str| ValueError::new(text, problem, HINT);
        match text.split_once("://") {
            Some(("unix", path)) if path.starts_with('/') && !path.contains('\0') => {
                Ok(Self::Unix(path.into()))
            }
            Some(("unix", _)) => Err(refuse("does not hold an absolute path")),
            Some(("tcp", target)) => HostPort::parse_with_default(target, ENGINE_PORT)
                .map(Self::Tcp)
                .map_err(|error| refuse(&format!("does not hold a host and a port: {}", error.reason))),
            Some(("ssh", _)) => Err(ValueError::new(
                text,
                "goes over ssh to another machine, whose engine could not show the workspace",
                "type `unix:///var/run/docker.sock`, or run Cofferdam over there",
            )),
            _ => Err(refuse("is not the address of an engine")),
        }
    }
}

impl fmt::Display for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(target) => write!(f, "tcp://{target}"),
        }
    }
}

crate::text::written_as_text!(EngineAddress);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_at_a_socket_or_a_port() {
        for (text, printed) in [
            ("unix:///var/run/docker.sock", "unix:///var/run/docker.sock"),
            ("tcp://127.0.0.1:2376", "tcp://127.0.0.1:2376"),
            ("tcp://Engine.example", "tcp://engine.example:2375"),
            ("tcp://[::1]:2375", "tcp://[::1]:2375"),
        ] {
            let address: EngineAddress = text.parse().expect(text);
            assert_eq!(address.to_string(), printed);
            assert_eq!(printed.parse(), Ok(address));
        }
    }

    #[test]
    fn other_addresses_are_refused_with_what_to_type() {
        for text in [
            "",
            "/var/run/docker.sock",
            "unix://docker.sock",
            "unix://",
            "tcp://",
            "tcp://a:x",
            "tcp://a/b",
            "tcp://u@a",
            "http://a:1",
            "https://a:1",
            "npipe:////./pipe/docker_engine",
            "fd://",
            "a:1",
        ] {
            let error = text.parse::<EngineAddress>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` ")), "{error}");
            assert!(error.ends_with("`unix:///var/run/docker.sock` or `tcp://127.0.0.1:2375`"), "{error}");
        }
        let ssh = "ssh://me@far".parse::<EngineAddress>().unwrap_err().to_string();
        assert!(ssh.contains("another machine") && ssh.contains("type `unix://"), "{ssh}");
    }
}
