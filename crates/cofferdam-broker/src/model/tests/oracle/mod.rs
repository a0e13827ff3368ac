//! The checks as they were when a request was first read into a tree of values, which took ten times its size: what the
//! checks of today must agree with.

mod anthropic;
mod json;
mod openai;

use cofferdam_core::VendorTool;
use json::Json;

use super::super::refusal::Refusal;
use super::super::route::Endpoint;

/// What a request becomes.
#[derive(Debug)]
pub(super) struct Rebuilt {
    pub model: String,
    pub stream: bool,
    pub max_output: Option<u64>,
    pub least_output: u64,
    pub image_tokens: u64,
    pub limit_field: &'static str,
    /// Without its limit.
    pub sent: serde_json::Value,
    pub stripped: Vec<String>,
}

const LEAST_OUTPUT: u64 = 1024;
const IMAGE_TOKENS: u64 = 5000;

/// Checks a body and rebuilds it.
pub(super) fn rebuild(endpoint: Endpoint, body: &[u8], allowed: &[VendorTool]) -> Result<Rebuilt, Refusal> {
    let mut json: Json<'_> = serde_json::from_slice(body)
        .map_err(|error| Refusal::bad_request("json", format!("the request is not JSON: {error}")))?;
    if json.get("background").is_some_and(|value| *value != Json::Bool(false)) {
        let message = "the field `background` is refused: nobody could fetch the answer later";
        return Err(Refusal::bad_request("background", message));
    }
    let mut findings = Findings::default();
    match endpoint {
        Endpoint::Responses => openai::check_responses(&mut json, &mut findings, allowed)?,
        Endpoint::Chat => openai::check_chat(&mut json, &mut findings, allowed)?,
        Endpoint::Messages | Endpoint::CountTokens => anthropic::check(&mut json, &mut findings, allowed)?,
        Endpoint::Preflight(_) | Endpoint::Models(_) => {}
    }
    payload(endpoint, json, findings)
}

fn payload(endpoint: Endpoint, mut json: Json<'_>, findings: Findings) -> Result<Rebuilt, Refusal> {
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
    Ok(Rebuilt {
        model,
        stream,
        max_output,
        least_output: max_output.map_or(least, |asked| asked.min(least)),
        image_tokens: findings.images * IMAGE_TOKENS,
        limit_field,
        sent: serde_json::to_value(&json).unwrap(),
        stripped: findings.stripped,
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

/// What was seen on the way through a request.
#[derive(Debug, Default)]
struct Findings {
    searches: bool,
    stripped: Vec<String>,
    images: u64,
    image_bytes: usize,
}

impl Findings {
    /// Remembers what was taken out.
    fn strip(&mut self, what: String) {
        if !self.stripped.contains(&what) && self.stripped.len() < 32 {
            self.stripped.push(what);
        }
    }

    /// Counts an image that is in the request.
    fn count_image(&mut self, bytes: usize) {
        self.images += 1;
        self.image_bytes += bytes;
    }

    /// Takes all other fields out.
    fn keep_fields(&mut self, body: &mut Json<'_>, known: &[&str]) {
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
