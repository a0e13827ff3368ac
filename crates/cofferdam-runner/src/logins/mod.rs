//! The logins that people have with the agent CLIs on this machine: where they are, and what opens a model now.
//!
//! Main type: [`Logins`]. It reads the CLIs' own files at each question, if they have changed, so that a token which a
//! CLI has renewed meanwhile is used by the next call. It never writes, never renews a token (that would log the CLI
//! out), and gives out nothing but what opens the model: a refresh token is known to the redactor alone.

mod error;
mod file;
mod places;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_core::{Agent, Credential, Login, Vendor};

pub use error::LoginError;
pub use file::Problem;
pub use places::LoginPlaces;

use file::LoginFile;

/// The logins of this machine's user. Clones share what was read.
#[derive(Clone, Default)]
pub struct Logins {
    files: Arc<BTreeMap<Agent, Vec<LoginFile>>>,
}

/// A login that opens a model.
#[derive(Clone)]
pub struct OpenLogin {
    /// The file that it is in.
    pub path: PathBuf,
    /// What the broker adds.
    pub credential: Credential,
    /// What the CLI inside is to think that it has.
    pub login: Login,
    /// When it ends, in milliseconds since the epoch, if that is known.
    pub expires_at_ms: Option<u64>,
}

impl fmt::Debug for OpenLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, login, expires_at_ms, credential: _ } = self;
        let mut shown = f.debug_struct("OpenLogin");
        shown.field("path", path).field("login", login).field("expires_at_ms", expires_at_ms);
        shown.finish_non_exhaustive()
    }
}

impl Logins {
    /// The logins in these places. Nothing is read yet.
    #[must_use]
    pub fn new(places: LoginPlaces) -> Self {
        let files =
            |agent| places.files(agent).iter().map(|path| LoginFile::new(agent, path.clone())).collect();
        Self { files: Arc::new(Agent::ALL.into_iter().map(|agent| (agent, files(agent))).collect()) }
    }

    /// What a CLI's login opens of a vendor, as it is on the disk now.
    ///
    /// # Errors
    /// [`LoginError`] if there is no login, or none that opens anything.
    pub fn current(&self, agent: Agent, vendor: Vendor, now_ms: u64) -> Result<OpenLogin, LoginError> {
        let mut first_problem = None;
        for file in self.files.get(&agent).into_iter().flatten() {
            match usable(file, agent, vendor, now_ms) {
                Ok(Some(open)) => return Ok(open),
                Ok(None) => {}
                Err(error) => drop(first_problem.get_or_insert(error)),
            }
        }
        Err(first_problem.unwrap_or(LoginError::Missing { agent }))
    }

    /// Every secret in the files, usable or not, so that none of them is ever shown.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let read = |file: &LoginFile| file.read().ok().flatten().map(|content| content.secrets);
        self.files.values().flatten().filter_map(read).flatten().collect()
    }
}

/// `None` if there is nothing for this vendor in the file, or no file.
fn usable(
    file: &LoginFile,
    agent: Agent,
    vendor: Vendor,
    now_ms: u64,
) -> Result<Option<OpenLogin>, LoginError> {
    let unusable = |problem| LoginError::Unusable { agent, path: file.path().to_owned(), problem };
    let Some(content) = file.read().map_err(unusable)? else { return Ok(None) };
    let Some(of_vendor) = content.vendors.into_iter().find(|one| one.vendor == vendor) else {
        return Ok(None);
    };
    let found = of_vendor.found.map_err(|problem| unusable(problem.into()))?;
    match found.expires_at_ms {
        Some(at) if at <= now_ms => Err(LoginError::Expired { agent, path: file.path().to_owned() }),
        expires_at_ms => Ok(Some(OpenLogin {
            path: file.path().to_owned(),
            credential: found.credential,
            login: found.login,
            expires_at_ms,
        })),
    }
}

/// Below a home, for people: `~/.claude/.credentials.json`.
#[must_use]
pub fn shown_path(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}
