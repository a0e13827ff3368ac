//! What opens a vendor's interface. It has no `Debug`, so that no log can show it.

/// What opens a vendor's interface.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// `x-api-key` for Anthropic, a bearer token for OpenAI.
    ApiKey(String),
    /// A bearer token for either.
    Bearer(String),
    /// A subscription at ChatGPT, whose interface is like OpenAI's Responses.
    ChatGpt {
        /// The bearer token.
        token: String,
        /// Which of the user's accounts it is for.
        account: Option<String>,
    },
}

impl Credential {
    /// The secret itself.
    #[must_use]
    pub fn secret(&self) -> &str {
        match self {
            Self::ApiKey(secret) | Self::Bearer(secret) | Self::ChatGpt { token: secret, .. } => secret,
        }
    }
}
