//! Which headers pass, both ways. Everything else is dropped: inbound credentials and cookies, the headers
//! that choose an organisation or project, what the vendors' libraries say of the machine, and on the way
//! back what names the account.

use cofferdam_core::{Credential, Vendor, VendorTool};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT,
};
use http::{HeaderMap, StatusCode};
use subtle::ConstantTimeEq;

use super::refusal::Refusal;
use super::vendor_tools::Allowed;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const ANTHROPIC_BETA: HeaderName = HeaderName::from_static("anthropic-beta");
const OPENAI_BETA: HeaderName = HeaderName::from_static("openai-beta");

/// Betas that open what is refused anyway: files, connectors, code that the vendor runs.
const VENDOR_SIDE_BETAS: [&str; 8] = [
    "files-api",
    "mcp-client",
    "mcp-servers",
    "code-execution",
    "skills",
    "web-fetch",
    "web-search",
    "managed-agents",
];

/// Those of them that come with a tool which can be allowed.
const VENDOR_TOOL_BETAS: [(&str, VendorTool); 2] =
    [("web-fetch", VendorTool::WebFetch), ("web-search", VendorTool::WebSearch)];

/// Opens a context of a million tokens, and with it a dearer rate.
const LONG_CONTEXT_BETA: &str = "context-1m";

/// What Anthropic wants to see beside a token of a login.
const OAUTH_BETA: &str = "oauth-2025-04-20";

/// Names the account that a login at ChatGPT is for.
const CHATGPT_ACCOUNT: HeaderName = HeaderName::from_static("chatgpt-account-id");

/// How Codex says who it is and in which form it asks. Without the last one its newer models' requests are not
/// understood; none of them chooses an account or makes the vendor keep or fetch anything.
const CODEX: [HeaderName; 4] = [
    HeaderName::from_static("originator"),
    HeaderName::from_static("session-id"),
    HeaderName::from_static("x-codex-beta-features"),
    HeaderName::from_static("x-openai-internal-codex-responses-lite"),
];

/// Longer values than any agent sends are dropped.
const LONGEST_VALUE: usize = 1024;

/// Whether the request carries what the agent was given instead of a key.
pub(crate) fn require_placeholder(headers: &HeaderMap, placeholder: &str) -> Result<(), Refusal> {
    let keys = headers.get_all(X_API_KEY).iter().map(HeaderValue::as_bytes);
    let bearers = headers.get_all(AUTHORIZATION).iter().filter_map(|value| bearer(value.as_bytes()));
    // In constant time, so that another user of the machine cannot find the placeholder byte by byte.
    if keys.chain(bearers).any(|given| given.ct_eq(placeholder.as_bytes()).into()) {
        return Ok(());
    }
    let message = "this address belongs to a run, and the request does not carry that run's placeholder key";
    Err(Refusal::new(StatusCode::UNAUTHORIZED, "placeholder", message))
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

/// The headers of the rebuilt request, without what opens the vendor's door.
pub(crate) fn rebuild(headers: &HeaderMap, vendor: Vendor, allowed: Allowed) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(12);
    let mut pass = |name: HeaderName| {
        if let Some(value) = headers.get(&name).filter(|value| value.len() <= LONGEST_VALUE) {
            out.insert(name, value.clone());
        }
    };
    [ACCEPT, USER_AGENT].into_iter().for_each(&mut pass);
    match vendor {
        Vendor::Anthropic => {}
        Vendor::Openai => CODEX.into_iter().for_each(&mut pass),
    }
    // The meter reads the answer; it could not read a compressed one.
    out.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    match vendor {
        Vendor::Anthropic => {
            let version = headers.get(&ANTHROPIC_VERSION).filter(|value| value.len() <= LONGEST_VALUE);
            out.insert(
                ANTHROPIC_VERSION,
                version.cloned().unwrap_or_else(|| HeaderValue::from_static("2023-06-01")),
            );
            insert_betas(&mut out, ANTHROPIC_BETA, betas(headers, &ANTHROPIC_BETA, allowed));
        }
        Vendor::Openai => insert_betas(&mut out, OPENAI_BETA, betas(headers, &OPENAI_BETA, allowed)),
    }
    out
}

/// Asks for no context beyond the usual one, for a model of which nobody knows what a longer one costs.
pub(crate) fn drop_long_context(headers: &mut HeaderMap) {
    // What is here was let through before.
    let mut left = betas(headers, &ANTHROPIC_BETA, Allowed::of(&VendorTool::ALL));
    left.retain(|beta| !beta.contains(LONG_CONTEXT_BETA));
    headers.remove(&ANTHROPIC_BETA);
    insert_betas(headers, ANTHROPIC_BETA, left);
}

/// Says that the body is JSON.
pub(crate) fn set_json(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
}

/// Adds what opens the vendor's door.
pub(crate) fn set_credential(
    headers: &mut HeaderMap,
    vendor: Vendor,
    credential: &Credential,
) -> Result<(), Refusal> {
    let (name, text) = match (vendor, credential) {
        (Vendor::Anthropic, Credential::ApiKey(key)) => (X_API_KEY, key.clone()),
        (Vendor::Openai, Credential::ApiKey(key))
        | (_, Credential::Bearer(key) | Credential::ChatGpt { token: key, .. }) => {
            (AUTHORIZATION, format!("Bearer {key}"))
        }
    };
    headers.insert(name, sensitive(text)?);
    if let Credential::ChatGpt { account: Some(account), .. } = credential {
        headers.insert(CHATGPT_ACCOUNT, sensitive(account.clone())?);
    }
    if vendor == Vendor::Anthropic && matches!(credential, Credential::Bearer(_)) {
        // What is here was let through before.
        let mut all = betas(headers, &ANTHROPIC_BETA, Allowed::of(&VendorTool::ALL));
        if !all.iter().any(|beta| beta == OAUTH_BETA) {
            all.push(OAUTH_BETA.to_owned());
        }
        insert_betas(headers, ANTHROPIC_BETA, all);
    }
    Ok(())
}

fn sensitive(text: String) -> Result<HeaderValue, Refusal> {
    let mut value = HeaderValue::try_from(text).map_err(|_| {
        Refusal::bad_request("key", "the model's key holds characters that no key has; set it again")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn betas(headers: &HeaderMap, name: &HeaderName, allowed: Allowed) -> Vec<String> {
    let plain = |beta: &&str| {
        let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'=');
        !beta.is_empty() && beta.len() <= 100 && beta.bytes().all(letter)
    };
    let is_allowed = |part: &str| {
        let tool = VENDOR_TOOL_BETAS.into_iter().find(|(of, _)| *of == part);
        tool.is_some_and(|(_, tool)| allowed.has(tool))
    };
    let known = |beta: &&str| {
        !VENDOR_SIDE_BETAS.into_iter().any(|refused| beta.contains(refused) && !is_allowed(refused))
    };
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(plain)
        .filter(known)
        .take(32)
        .map(ToOwned::to_owned)
        .collect()
}

fn insert_betas(headers: &mut HeaderMap, name: HeaderName, betas: Vec<String>) {
    if let Ok(value) = HeaderValue::try_from(betas.join(","))
        && !value.is_empty()
    {
        headers.insert(name, value);
    }
}

/// The headers of an answer that the agent gets, without `retry-after`, which has rules of its own.
pub(crate) fn passed_back(headers: &HeaderMap) -> HeaderMap {
    let passes = |name: &HeaderName| {
        let name = name.as_str();
        matches!(
            name,
            "content-type"
                | "request-id"
                | "x-request-id"
                | "openai-model"
                | "openai-processing-ms"
                | "openai-version"
                | "x-should-retry"
        ) || name.starts_with("anthropic-ratelimit-")
            || name.starts_with("x-ratelimit-")
    };
    headers
        .iter()
        .filter(|(name, value)| passes(name) && value.len() <= LONGEST_VALUE)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
