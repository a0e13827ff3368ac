//! The logins that the agents' CLIs keep in files of their own: where they are, and what they hold. Nothing is read
//! here but bytes that somebody hands over.

mod jwt;

pub(crate) use jwt::claims;

use cofferdam_core::{Credential, Login, Vendor};

/// The login of an agent.
pub struct LoginFacts {
    /// The files that it may be in; the first one with a usable credential counts.
    pub files: &'static [LoginFile],
    /// Reads such a file.
    pub parse: fn(&[u8]) -> Result<LoginContent, LoginProblem>,
    /// What a person types to log in.
    pub log_in: &'static str,
    /// What renews a login that has expired.
    pub renew: &'static str,
    /// What does not expire while nobody is there.
    pub lasting: &'static str,
    /// What `cofferdam sandbox doctor` calls it, for an agent that has a login with several vendors.
    pub finding: &'static str,
}

/// Where a login is.
pub struct LoginFile {
    /// Variables that name the folder; the first that is set counts.
    pub variables: &'static [&'static str],
    /// The folder below the home, where none of them is set.
    pub folder: &'static str,
    /// The path in that folder.
    pub name: &'static str,
}

/// What a login file holds.
#[derive(Clone, Default)]
pub struct LoginContent {
    /// What it holds for each vendor.
    pub vendors: Vec<VendorLogin>,
    /// Everything in it that must not be seen.
    pub secrets: Vec<String>,
}

/// What a file holds for one vendor.
#[derive(Clone)]
pub struct VendorLogin {
    /// Whose interface it is for.
    pub vendor: Vendor,
    /// What opens it, or why nothing does.
    pub found: Result<FoundLogin, LoginProblem>,
}

/// A login that opens a vendor's interface.
#[derive(Clone)]
pub struct FoundLogin {
    /// What the broker adds.
    pub credential: Credential,
    /// What the CLI inside is to think that it has.
    pub login: Login,
    /// When it ends, in milliseconds since the epoch, if that is known.
    pub expires_at_ms: Option<u64>,
}

impl FoundLogin {
    /// A key, which does not end.
    pub(crate) fn of_key(key: String) -> Result<Self, LoginProblem> {
        let key = token(Some(key)).ok_or(LoginProblem::Malformed)?;
        Ok(Self { credential: Credential::ApiKey(key), login: Login::Key, expires_at_ms: None })
    }
}

/// Why the content of a login file cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoginProblem {
    /// Not what the CLI writes.
    #[error("it is not what the CLI writes")]
    Malformed,
    /// A login of a kind that works for the CLI alone.
    #[error("{0}")]
    Unsupported(&'static str),
}

/// A variable with a key that is for one agent alone.
pub struct OwnKey {
    /// Its name.
    pub variable: &'static str,
    /// Whose interface the key is for.
    pub vendor: Vendor,
    /// Whether it counts before the vendor's own variable, or after it.
    pub order: KeyOrder,
    /// Reads it; `None` if nothing is in it.
    pub read: fn(String) -> Option<Credential>,
    /// What the CLI inside is to think that it has.
    pub login: Login,
}

/// Which of two keys counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrder {
    /// The agent's own one.
    BeforeVendorKey,
    /// The one that is for every agent.
    AfterVendorKey,
}

/// A token as it is written, if it can be one: a header's value with neither blanks nor line breaks in it.
pub(crate) fn token(text: Option<String>) -> Option<String> {
    let text = text?.trim().to_owned();
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic())).then_some(text)
}

/// The part of a token that must not be seen. Of a JSON web token that is its signature: the rest opens nothing without
/// it, and begins like every such token in every repository's tests, which would be redacted with it.
pub(crate) fn secret_part(token: &str) -> String {
    let part = if claims(token).is_some() { token.rsplit('.').next() } else { None };
    part.unwrap_or(token).to_owned()
}
