//! A request to the model, checked and rebuilt from its parsed parts. Nothing of what arrived is forwarded as
//! it was, so nothing that only the vendor's parser would see can hide in it. No I/O happens here.

use cofferdam_core::Vendor;
use http::{HeaderMap, Method, Uri};

use super::json::Json;
use super::refusal::Refusal;
use super::route::{self, Endpoint};
use super::{anthropic, decode, headers, openai};

/// What the request is checked against.
#[derive(Debug, Clone)]
pub struct Rules {
    /// What the request must carry, if it must.
    pub placeholder: Option<String>,
    /// Whether the vendor may fetch and keep things.
    pub vendor_tools: bool,
    /// How large a body may be, also after it is decompressed.
    pub body_bytes: usize,
}

/// A request that may be forwarded.
#[derive(Debug)]
pub struct Rebuilt {
    /// To where.
    pub endpoint: Endpoint,
    /// `beta=true` or `client_version=…`, if that was asked for.
    pub query: Option<String>,
    /// Without what opens the vendor's door.
    pub headers: HeaderMap,
    /// `None` where there is none to send.
    pub payload: Option<Payload>,
    /// What was taken out, for people.
    pub stripped: Vec<String>,
}

/// A body to send, with what a budget has to know of it.
#[derive(Debug)]
pub struct Payload {
    /// Which model.
    pub model: String,
    /// Whether the answer is asked for as a stream.
    pub stream: bool,
    /// How many tokens the answer may have, if the agent said so.
    pub max_output: Option<u64>,
    /// With fewer tokens than this the call would fail or be worth nothing.
    pub least_output: u64,
    /// About how many tokens the request has.
    pub input_estimate: u64,
    limit_field: &'static str,
    /// The object without its limit and without its closing brace.
    open_object: Vec<u8>,
}

/// What is worth a call when the budget is nearly spent.
const LEAST_OUTPUT: u64 = 1024;

/// What an image counts at most, whatever its size in bytes.
const IMAGE_TOKENS: u64 = 5000;

/// Checks a whole request.
///
/// # Errors
/// [`Refusal`] if it is not forwarded.
pub fn check(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: &[u8],
    rules: &Rules,
) -> Result<Rebuilt, Refusal> {
    let endpoint = admit(method, uri, headers, rules)?;
    rebuild(endpoint, uri, headers, body, rules)
}

/// The part that can be decided before the body has arrived.
pub(crate) fn admit(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    rules: &Rules,
) -> Result<Endpoint, Refusal> {
    let endpoint = route::find(method, uri, headers)?;
    match (&rules.placeholder, endpoint) {
        // The preflight carries no key, and is answered without one.
        (None, _) | (_, Endpoint::Preflight(_)) => {}
        (Some(placeholder), _) => headers::require_placeholder(headers, placeholder)?,
    }
    Ok(endpoint)
}

/// The part that reads the body.
pub(crate) fn rebuild(
    endpoint: Endpoint,
    uri: &Uri,
    headers: &HeaderMap,
    body: &[u8],
    rules: &Rules,
) -> Result<Rebuilt, Refusal> {
    let mut rebuilt = Rebuilt {
        endpoint,
        // Admitted byte for byte.
        query: uri.query().map(str::to_owned),
        headers: headers::rebuild(headers, endpoint.vendor(), rules.vendor_tools),
        payload: None,
        stripped: Vec::new(),
    };
    if endpoint.method() != Method::POST {
        return Ok(rebuilt);
    }
    let decoded = decode::decode(headers, body, rules.body_bytes)?;
    let mut json: Json<'_> = serde_json::from_slice(&decoded)
        .map_err(|error| Refusal::bad_request("json", format!("the request is not JSON: {error}")))?;
    if json.get("background").is_some_and(|value| *value != Json::Bool(false)) {
        let message = "the field `background` is refused: nobody could fetch the answer later";
        return Err(Refusal::bad_request("background", message));
    }
    let mut findings = Findings::default();
    if !rules.vendor_tools {
        match endpoint {
            Endpoint::Responses => openai::check_responses(&mut json, &mut findings)?,
            Endpoint::Chat => openai::check_chat(&mut json, &mut findings)?,
            Endpoint::Messages | Endpoint::CountTokens => anthropic::check(&mut json, &mut findings)?,
            Endpoint::Preflight(_) | Endpoint::Models(_) => {}
        }
    }
    headers::set_json(&mut rebuilt.headers);
    rebuilt.payload = Some(payload(endpoint, json, &findings)?);
    rebuilt.stripped = findings.stripped;
    Ok(rebuilt)
}

fn payload(endpoint: Endpoint, mut json: Json<'_>, findings: &Findings) -> Result<Payload, Refusal> {
    let model = json.get_text("model").filter(|model| is_model(model)).map(ToOwned::to_owned);
    let model = model.ok_or_else(|| Refusal::bad_request("model", "the request names no model"))?;
    let stream = match json.get("stream") {
        None | Some(Json::Bool(false)) => false,
        Some(Json::Bool(true)) => true,
        Some(_) => return Err(Refusal::bad_request("json", "`stream` is neither true nor false")),
    };
    if endpoint == Endpoint::Chat && stream {
        // Otherwise the stream says nothing of what it cost.
        let mut options = json.remove("stream_options").unwrap_or(Json::Null);
        if !matches!(options, Json::Object(_)) {
            options = Json::Object(Vec::new());
        }
        options.set("include_usage", Json::Bool(true));
        json.set("stream_options", options);
    }
    let (limit_field, max_output) = take_limit(endpoint, &mut json)?;
    let thinking = json.get("thinking").and_then(|it| it.get("budget_tokens")).and_then(Json::as_count);
    let least = thinking.map_or(LEAST_OUTPUT, |budget| budget.saturating_add(LEAST_OUTPUT));
    let mut open_object = serde_json::to_vec(&json).expect("JSON that was read can be written");
    open_object.pop();
    let text_bytes = open_object.len().saturating_sub(findings.image_bytes) as u64;
    Ok(Payload {
        model,
        stream,
        max_output,
        least_output: max_output.map_or(least, |asked| asked.min(least)),
        input_estimate: text_bytes / 3 + findings.images * IMAGE_TOKENS,
        limit_field,
        open_object,
    })
}

/// Takes the limit of the answer out, since a budget may lower it.
fn take_limit(endpoint: Endpoint, json: &mut Json<'_>) -> Result<(&'static str, Option<u64>), Refusal> {
    let fields: &[&'static str] = match endpoint {
        Endpoint::Messages => &["max_tokens"],
        Endpoint::Responses => &["max_output_tokens"],
        Endpoint::Chat => &["max_completion_tokens", "max_tokens"],
        Endpoint::CountTokens | Endpoint::Preflight(_) | Endpoint::Models(_) => &[],
    };
    let mut found = None;
    for &field in fields {
        match json.remove(field) {
            None | Some(Json::Null) => {}
            Some(value) => {
                let limit = value.as_count().filter(|&limit| limit > 0).ok_or_else(|| {
                    Refusal::bad_request("json", format!("`{field}` is not a number of tokens"))
                })?;
                // Old names may stand beside new ones; the lower limit is within both.
                found = Some(found.map_or((field, limit), |(first, old): (_, u64)| (first, old.min(limit))));
            }
        }
    }
    let default = fields.first().copied().unwrap_or("max_tokens");
    Ok(found.map_or((default, None), |(field, limit)| (field, Some(limit))))
}

/// A name goes into events and error messages.
fn is_model(name: &str) -> bool {
    !name.is_empty() && name.len() <= 200 && name.bytes().all(|b| b.is_ascii_graphic())
}

impl Payload {
    /// The body, with this limit for the answer, if there is one.
    #[must_use]
    pub fn into_bytes(self, limit: Option<u64>) -> Vec<u8> {
        let mut bytes = self.open_object;
        if let Some(limit) = limit {
            bytes.extend_from_slice(format!(",\"{}\":{limit}", self.limit_field).as_bytes());
        }
        bytes.push(b'}');
        bytes
    }
}

/// What was seen on the way through a request.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    stripped: Vec<String>,
    images: u64,
    image_bytes: usize,
}

impl Findings {
    /// Remembers what was taken out.
    pub(crate) fn strip(&mut self, what: String) {
        if !self.stripped.contains(&what) && self.stripped.len() < 32 {
            self.stripped.push(what);
        }
    }

    /// Counts an image that is in the request.
    pub(crate) fn count_image(&mut self, bytes: usize) {
        self.images += 1;
        self.image_bytes += bytes;
    }

    /// Takes all other fields out.
    pub(crate) fn keep_fields(&mut self, body: &mut Json<'_>, known: &[&str]) {
        let Json::Object(fields) = body else { return };
        fields.retain(|(name, _)| {
            let keep = known.contains(&name.as_ref());
            if !keep {
                let shown: String = name.chars().take(40).flat_map(char::escape_default).collect();
                self.strip(format!("the field `{shown}`"));
            }
            keep
        });
    }
}

/// How a vendor's key is called in the environment.
pub(crate) fn key_name(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Anthropic => "ANTHROPIC_API_KEY",
        Vendor::Openai => "OPENAI_API_KEY",
    }
}
