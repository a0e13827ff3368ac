//! Which service is called, if one is: `--server`, or `COFFERDAM_SERVER`.

use std::net::IpAddr;

use clap::Args;
use cofferdam_api::Client;

use crate::caller::Caller;
use crate::failure::{Failure, UsageError};
use crate::records::client_failure;
use crate::terminal;

const SERVER: &str = "COFFERDAM_SERVER";
const KEY: &str = "COFFERDAM_API_KEY";
/// The key that the first start of a service makes, in the state folder.
const KEY_FILE: &str = "api-key";

/// Which service is called.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServerFlag {
    /// Ask a service to do it, such as `http://127.0.0.1:8787` [default: COFFERDAM_SERVER, or this machine]
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) server: Option<String>,
}

/// A service that is called.
pub(crate) struct Called {
    /// Calls it.
    pub(crate) client: Client,
    /// Whether it is on this machine, so that it sees the same paths.
    pub(crate) is_here: bool,
}

impl ServerFlag {
    /// The service that was named; `None` if it is to be done here.
    pub(crate) fn called(&self, caller: &Caller) -> Result<Option<Called>, Failure> {
        let of_variable = caller.var(SERVER).map(|value| value.to_string_lossy().into_owned());
        let Some(url) = self.server.clone().or(of_variable) else { return Ok(None) };
        let is_here = is_here(&url);
        let key = key(caller, is_here)?;
        if key.is_some() && !is_here && url.starts_with("http:") {
            terminal::write_stderr(
                "cofferdam: WARNING: the key goes over the network unencrypted; use https\n",
            );
        }
        let client = Client::new(&url, key.as_deref()).map_err(|error| client_failure(&error))?;
        Ok(Some(Called { client, is_here }))
    }
}

/// The key of the variable, or that of this machine's own service. The latter is sent to nobody else: whoever gives us
/// the address of a service must not get the key of another.
fn key(caller: &Caller, is_here: bool) -> Result<Option<String>, Failure> {
    if let Some(value) = caller.var(KEY) {
        let text = value.to_str().ok_or_else(|| {
            UsageError::new(format!("the value of {KEY} is not valid UTF-8"), "export a key that is")
        })?;
        return Ok(Some(text.trim().to_owned()));
    }
    if !is_here {
        return Ok(None);
    }
    let path = caller.state_to_read()?.map(|state| state.join(KEY_FILE));
    Ok(path.and_then(|path| std::fs::read_to_string(path).ok()).map(|text| text.trim().to_owned()))
}

/// Whether an address is of this machine, whoever resolves it.
fn is_here(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    !authority.contains('@')
        && (host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_loopback))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machines_key_is_for_this_machine_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(KEY_FILE), "cof_own\n").unwrap();
        let env = [("COFFERDAM_HOME".into(), folder.path().into())].into();
        let caller = Caller { env, current_folder: "/".into() };
        assert_eq!(key(&caller, true).unwrap().as_deref(), Some("cof_own"));
        assert_eq!(key(&caller, false).unwrap(), None);
        for url in ["http://127.0.0.1:8787", "http://localhost", "https://[::1]:1/x"] {
            assert!(is_here(url), "{url}");
        }
        for url in ["http://evil.example", "http://127.0.0.1@evil.example", "http://localhost.evil.example"] {
            assert!(!is_here(url), "{url}");
        }
    }
}
