//! The world outside a sandbox: names, and servers whose authority programs are told to trust.

use std::fs;

use cofferdam_local_servers::{Authority, NameServer};
use serde_json::json;

use crate::Fixture;

/// A name server that the broker asks, and an authority for https.
pub struct Outside {
    /// Signs for the servers.
    pub authority: Authority,
    /// Answers the broker. Another resolver of the machine knows nothing of its names.
    pub names: NameServer,
}

impl Outside {
    /// Makes them, and settings of the fixture that name them.
    ///
    /// # Panics
    /// If they cannot be made.
    pub async fn around(fixture: &Fixture) -> Self {
        let outside = Self { authority: Authority::new(), names: NameServer::start().await };
        let settings = json!({ "egress": { "name_servers": [outside.names.address()] } });
        fs::create_dir_all(fixture.state()).expect("a new folder");
        fs::write(fixture.state().join("settings.json"), settings.to_string()).expect("a new file");
        fs::write(fixture.path("authority.crt"), outside.authority.pem()).expect("a new file");
        outside
    }
}

/// Whether a program is installed. Without it a test says on stderr that it is skipped, and returns; in CI,
/// where it must be, it fails.
///
/// # Panics
/// If it is missing in CI.
#[must_use]
pub fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        let in_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false");
        // Rust is installed for one user, and the tests also run as another.
        assert!(!in_ci || program == "cargo", "{program} is not installed");
        eprintln!("skipped: {program} is not installed");
    }
    found
}
