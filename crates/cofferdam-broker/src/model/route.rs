//! Which requests are forwarded at all: these methods on these paths, byte for byte. Nothing is decoded,
//! joined or normalised, so no two readings of a path can differ.

use cofferdam_core::{Vendor, gateway};
use http::{HeaderMap, Method, StatusCode, Uri, header};

use super::refusal::Refusal;

/// What can be asked of a vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// Whether somebody is here, asked by Claude Code before its first call. Answered by the broker itself.
    Preflight(Vendor),
    /// The list of models.
    Models(Vendor),
    /// Anthropic's Messages.
    Messages,
    /// How many tokens a message would have; generates nothing.
    CountTokens,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions.
    Chat,
}

impl Endpoint {
    /// Whose it is.
    #[must_use]
    pub fn vendor(self) -> Vendor {
        match self {
            Self::Preflight(vendor) | Self::Models(vendor) => vendor,
            Self::Messages | Self::CountTokens => Vendor::Anthropic,
            Self::Responses | Self::Chat => Vendor::Openai,
        }
    }

    /// The path at the vendor.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Preflight(_) => "/",
            Self::Models(_) => "/v1/models",
            Self::Messages => "/v1/messages",
            Self::CountTokens => "/v1/messages/count_tokens",
            Self::Responses => "/v1/responses",
            Self::Chat => "/v1/chat/completions",
        }
    }

    /// The same where the address has the version already, or has none.
    #[must_use]
    pub fn path_without_version(self) -> &'static str {
        self.path().strip_prefix("/v1").unwrap_or(self.path())
    }

    /// Whether the model generates something, so that budgets count it.
    #[must_use]
    pub fn generates(self) -> bool {
        match self {
            Self::Messages | Self::Responses | Self::Chat => true,
            Self::Preflight(_) | Self::Models(_) | Self::CountTokens => false,
        }
    }

    pub(crate) fn method(self) -> Method {
        match self {
            Self::Preflight(_) => Method::HEAD,
            Self::Models(_) => Method::GET,
            Self::Messages | Self::CountTokens | Self::Responses | Self::Chat => Method::POST,
        }
    }
}

/// Whose error shape a request is answered in, whatever becomes of it.
pub(crate) fn vendor_of(uri: &Uri) -> Vendor {
    if uri.path().starts_with(gateway::ANTHROPIC) { Vendor::Anthropic } else { Vendor::Openai }
}

/// The one endpoint that a request names.
pub(crate) fn find(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Endpoint, Refusal> {
    if uri.scheme().is_some() || uri.authority().is_some() {
        let message = "the model is asked for by its path alone, not by an absolute address";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "absolute_form", message));
    }
    if headers.contains_key(header::UPGRADE) {
        let message = "the model is asked over plain HTTP; WebSockets and other upgrades are refused";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "upgrade", message));
    }
    let endpoint = by_path(uri.path())?;
    if endpoint.method() != method {
        let message = format!("{} takes {} only", uri.path(), endpoint.method());
        return Err(Refusal::new(StatusCode::FORBIDDEN, "method", message));
    }
    match (endpoint, uri.query()) {
        // Claude Code says so on every call; it selects the same interface with beta fields.
        (Endpoint::Messages | Endpoint::CountTokens, Some("beta=true")) | (_, None) => Ok(endpoint),
        // With a login Codex asks which models there are for it.
        (Endpoint::Models(Vendor::Openai), Some(query)) if is_client_version(query) => Ok(endpoint),
        (_, Some(_)) => {
            let message = "a query on a model's path is refused; only ?beta=true is known";
            Err(Refusal::new(StatusCode::FORBIDDEN, "query", message))
        }
    }
}

fn is_client_version(query: &str) -> bool {
    let version = query.strip_prefix("client_version=").unwrap_or_default();
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    !version.is_empty() && version.len() <= 40 && version.bytes().all(letter)
}

fn by_path(path: &str) -> Result<Endpoint, Refusal> {
    let (vendor, rest) = [(Vendor::Anthropic, gateway::ANTHROPIC), (Vendor::Openai, gateway::OPENAI)]
        .into_iter()
        .find_map(|(vendor, prefix)| path.strip_prefix(prefix).map(|rest| (vendor, rest)))
        .ok_or_else(|| unknown("there is no such vendor"))?;
    match (vendor, rest) {
        (_, "" | "/") => Ok(Endpoint::Preflight(vendor)),
        (_, "/v1/models") => Ok(Endpoint::Models(vendor)),
        (Vendor::Anthropic, "/v1/messages") => Ok(Endpoint::Messages),
        (Vendor::Anthropic, "/v1/messages/count_tokens") => Ok(Endpoint::CountTokens),
        (Vendor::Openai, "/v1/responses") => Ok(Endpoint::Responses),
        (Vendor::Openai, "/v1/chat/completions") => Ok(Endpoint::Chat),
        (_, rest) if rest.contains('%') || rest.contains("//") || rest.contains("/.") => {
            Err(unknown("a path is taken as it is written: no `.` or `..`, no `//`, nothing percent-encoded"))
        }
        (Vendor::Anthropic, _) => {
            Err(unknown("only /v1/messages, /v1/messages/count_tokens and /v1/models are forwarded"))
        }
        (Vendor::Openai, _) => {
            Err(unknown("only /v1/responses, /v1/chat/completions and /v1/models are forwarded"))
        }
    }
}

fn unknown(message: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "path", message)
}
