//! A request to the model, checked and rebuilt from its parsed parts. Nothing of what arrived is forwarded as
//! it was, so nothing that only the vendor's parser would see can hide in it. No I/O happens here.

use cofferdam_core::{Vendor, VendorTool};
use http::{HeaderMap, Method, Uri};

use super::fields::{Fields, Limit, limits};
use super::json::{Out, Scanner, Source};
use super::most_input::Sent;
use super::refusal::Refusal;
use super::route::{self, Endpoint};
use super::vendor_tools::{Allowed, Offer};
use super::{decode, headers};
use crate::body::Body;
use crate::memory::{Memory, Rope};
use crate::options::Bounds;

/// What the request is checked against.
#[derive(Debug, Clone)]
pub struct Rules {
    /// What the request must carry, if it must.
    pub placeholder: Option<String>,
    /// The tools that the vendor may run on the agent's behalf.
    pub vendor_tools: Vec<VendorTool>,
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
pub struct Payload {
    /// Which model.
    pub model: String,
    /// Whether the answer is asked for as a stream.
    pub stream: bool,
    /// How many tokens the answer may have, if the agent said so.
    pub max_output: Option<u64>,
    /// With fewer tokens than this the call would fail or be worth nothing.
    pub least_output: u64,
    /// The most tokens that the request can be charged as.
    pub most_input: u64,
    /// Whether a document is among it, which may be charged as any number of them.
    pub has_document: bool,
    /// The tools of the vendor's that it offers.
    pub(crate) offer: Offer,
    /// How often they may be called, where the request does not say so.
    tool_calls: Option<u64>,
    limit_field: &'static str,
    /// The object without its limit and without its closing brace.
    open_object: Rope,
}

/// What is worth a call when the budget is nearly spent.
const LEAST_OUTPUT: u64 = 1024;

/// Checks a whole request that is in memory already.
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
    let mut rebuilt = begin(endpoint, uri, headers, rules);
    if endpoint.method() == Method::POST {
        let encoding = decode::encoding(headers)?;
        let bounds =
            Bounds { held_bytes: rules.body_bytes, held_by_all: rules.body_bytes, ..Bounds::default() };
        let share = Memory::new(&bounds).share(&bounds);
        let room =
            share.requests.reserve_now(rules.body_bytes).map_err(|_| decode::too_large(rules.body_bytes))?;
        let payload = match encoding {
            None => read(&mut rebuilt, Source::Decoded(Box::new(body)), Out::into(room), rules),
            Some(encoding) => encoding
                .read(body, share.memory(), |source| read(&mut rebuilt, source, Out::into(room), rules)),
        };
        rebuilt.payload = Some(payload?.into_payload());
    }
    Ok(rebuilt)
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

/// The request without its body.
pub(crate) fn begin(endpoint: Endpoint, uri: &Uri, headers: &HeaderMap, rules: &Rules) -> Rebuilt {
    Rebuilt {
        endpoint,
        // Admitted byte for byte.
        query: uri.query().map(str::to_owned),
        headers: headers::rebuild(headers, endpoint.vendor(), Allowed::of(&rules.vendor_tools)),
        payload: None,
        stripped: Vec::new(),
    }
}

/// A body that was read, and may be forwarded.
pub(crate) struct Read {
    payload: Payload,
    peak: usize,
}

impl Read {
    /// The most room that writing it took.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    pub(crate) fn into_payload(self) -> Payload {
        self.payload
    }
}

/// Reads the body of a request, and writes it again.
pub(crate) fn read(
    rebuilt: &mut Rebuilt,
    source: Source<'_>,
    out: Out,
    rules: &Rules,
) -> Result<Read, Refusal> {
    let endpoint = rebuilt.endpoint;
    let mut scanner = Scanner::new(source, rules.body_bytes as u64, out);
    let mut fields = Fields::read(&mut scanner, endpoint, Allowed::of(&rules.vendor_tools))?;
    let out = scanner.finish()?;
    let checked = fields.check()?;
    headers::set_json(&mut rebuilt.headers);
    rebuilt.stripped = checked.stripped;

    let model = fields.model.take().filter(|(begin, length)| begin.len() == *length && is_model(begin));
    let (model, _) = model.ok_or_else(|| Refusal::bad_request("model", "the request names no model"))?;
    let stream =
        fields.stream.ok_or_else(|| Refusal::bad_request("json", "`stream` is neither true nor false"))?;
    let (limit_field, max_output) = limit(endpoint, fields.limits)?;
    let least = fields.thinking.map_or(LEAST_OUTPUT, |budget| budget.saturating_add(LEAST_OUTPUT));
    let sent = Sent { bytes: out.len().saturating_sub(checked.image_bytes) as u64, ..checked.sent };
    let peak = out.peak();
    let payload = Payload {
        model,
        stream,
        max_output,
        least_output: max_output.map_or(least, |asked| asked.min(least)),
        most_input: sent.most_tokens(endpoint.vendor()).saturating_add(checked.offer.tokens()),
        has_document: sent.documents > 0,
        offer: checked.offer,
        tool_calls: checked.tool_calls,
        limit_field,
        open_object: out.into_rope(),
    };
    Ok(Read { payload, peak })
}

/// The limit of the answer, which is forwarded as the budget has it.
fn limit(endpoint: Endpoint, found: [Limit; 2]) -> Result<(&'static str, Option<u64>), Refusal> {
    let fields = limits(endpoint);
    let mut lowest = None;
    for (&field, limit) in fields.iter().zip(found) {
        match limit {
            Limit::Unset => {}
            Limit::Malformed => {
                let message = format!("`{field}` is not a number of tokens");
                return Err(Refusal::bad_request("json", message));
            }
            // Old names may stand beside new ones; the lower limit is within both.
            Limit::Tokens(limit) => {
                lowest =
                    Some(lowest.map_or((field, limit), |(first, old): (_, u64)| (first, old.min(limit))));
            }
        }
    }
    let default = fields.first().copied().unwrap_or("max_tokens");
    Ok(lowest.map_or((default, None), |(field, limit)| (field, Some(limit))))
}

/// A name goes into events and error messages.
fn is_model(name: &str) -> bool {
    !name.is_empty() && name.len() <= 200 && name.bytes().all(|b| b.is_ascii_graphic())
}

impl Payload {
    /// The body, with this limit for the answer, if there is one.
    #[must_use]
    pub fn into_bytes(self, limit: Option<u64>) -> Vec<u8> {
        let end = self.end(limit);
        let parts: Vec<&[u8]> = self.open_object.segments().chain([end.as_slice()]).collect();
        parts.concat()
    }

    /// The same, to be sent: what is sent takes no memory any more.
    pub(crate) fn into_body(self, limit: Option<u64>) -> Body {
        let end = self.end(limit);
        http_body_util::BodyExt::boxed(self.open_object.into_body(end))
    }

    /// The same request for an interface that knows no limits.
    pub(crate) fn without_limits(self) -> Self {
        Self { tool_calls: None, ..self }
    }

    fn end(&self, limit: Option<u64>) -> Vec<u8> {
        let limit = limit.map(|limit| format!(",\"{}\":{limit}", self.limit_field)).unwrap_or_default();
        let calls = self.tool_calls.map(|calls| format!(",\"max_tool_calls\":{calls}")).unwrap_or_default();
        format!("{limit}{calls}}}").into_bytes()
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Payload").field("model", &self.model).finish_non_exhaustive()
    }
}

/// How a vendor's key is called in the environment.
pub(crate) fn key_name(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Anthropic => "ANTHROPIC_API_KEY",
        Vendor::Openai => "OPENAI_API_KEY",
    }
}
