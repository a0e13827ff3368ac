//! The fields of a request, read once and in their order: what is forwarded of them, and what a check or a budget has to
//! know of the rest.

use cofferdam_core::VendorTool;

use super::anthropic;
use super::found::{Found, Stripped};
use super::json::{Ahead, Fault, Keep, Scanner, Shape};
use super::most_input::Sent;
use super::openai::{self, Offered};
use super::refusal::Refusal;
use super::route::Endpoint;
use super::vendor_tools::{Allowed, MOST_CALLS, Offer, SEARCH_MICRO_USD};

/// What a request is checked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checks {
    /// It has no body.
    None,
    Anthropic,
    Responses,
    Chat,
}

impl Checks {
    fn of(endpoint: Endpoint) -> Self {
        match endpoint {
            Endpoint::Messages | Endpoint::CountTokens => Self::Anthropic,
            Endpoint::Responses => Self::Responses,
            Endpoint::Chat => Self::Chat,
            Endpoint::Preflight(_) | Endpoint::Models(_) => Self::None,
        }
    }

    fn forwards(self, field: &str, allowed: Allowed) -> bool {
        match self {
            Self::None => true,
            Self::Anthropic => anthropic::FIELDS.contains(&field),
            Self::Responses => openai::RESPONSES.contains(&field),
            Self::Chat if field == openai::SEARCH_IN_CHAT => allowed.has(VendorTool::WebSearch),
            Self::Chat => openai::CHAT.contains(&field),
        }
    }

    /// Fields that are refused and not only taken out.
    fn refused(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Anthropic => &anthropic::REFUSED,
            Self::Responses => &openai::REFUSED_IN_RESPONSES,
            Self::Chat => &openai::REFUSED_IN_CHAT,
        }
    }
}

/// What is known of a request's fields.
pub(super) struct Fields {
    endpoint: Endpoint,
    checks: Checks,
    allowed: Allowed,
    is_background: bool,
    /// Which of the refused fields it has, by their order.
    refused: Option<usize>,
    /// The beginning of the model's name, and its length.
    pub(super) model: Option<(String, usize)>,
    /// `None` if it is neither true nor false.
    pub(super) stream: Option<bool>,
    /// The limits of the answer, by the order of [`limits`].
    pub(super) limits: [Limit; 2],
    /// How many tokens the model may think.
    pub(super) thinking: Option<u64>,
    /// How often the vendor's tools may be called, at Responses.
    max_tool_calls: Option<u64>,
    searches_in_chat: bool,
    context_management: Found,
    stores: bool,
    stream_options: Option<Vec<u8>>,
    tools: Offered,
    late_tools: Offered,
    tool_choice: Found,
    system: Found,
    said: Found,
    stripped: Stripped,
}

/// What a request says of a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Limit {
    #[default]
    Unset,
    Tokens(u64),
    Malformed,
}

/// What a request was found to be.
pub(super) struct Checked {
    pub(super) stripped: Vec<String>,
    /// Without its bytes.
    pub(super) sent: Sent,
    pub(super) image_bytes: usize,
    /// The tools of the vendor's that it offers.
    pub(super) offer: Offer,
    /// How often they may be called, if the request does not say so and can be told.
    pub(super) tool_calls: Option<u64>,
}

/// The fields that limit an answer, newer names first.
pub(super) fn limits(endpoint: Endpoint) -> &'static [&'static str] {
    match endpoint {
        Endpoint::Messages => &["max_tokens"],
        Endpoint::Responses => &["max_output_tokens"],
        Endpoint::Chat => &["max_completion_tokens", "max_tokens"],
        Endpoint::CountTokens | Endpoint::Preflight(_) | Endpoint::Models(_) => &[],
    }
}

impl Fields {
    /// Reads a whole request. What is written is an object without its closing brace and without its limits.
    pub(super) fn read(
        scanner: &mut Scanner<'_>,
        endpoint: Endpoint,
        allowed: Allowed,
    ) -> Result<Self, Fault> {
        let mut fields = Self::new(endpoint, allowed);
        if scanner.ahead()? == Ahead::Object {
            scanner.object(|scanner| fields.field(scanner))?;
            scanner.unwrite(1);
            fields.end(scanner)?;
        } else {
            scanner.skip()?;
        }
        Ok(fields)
    }

    fn new(endpoint: Endpoint, allowed: Allowed) -> Self {
        Self {
            endpoint,
            checks: Checks::of(endpoint),
            allowed,
            is_background: false,
            refused: None,
            model: None,
            stream: Some(false),
            limits: [Limit::Unset; 2],
            thinking: None,
            max_tool_calls: None,
            searches_in_chat: false,
            context_management: Found::default(),
            stores: false,
            stream_options: None,
            tools: Offered::default(),
            late_tools: Offered::default(),
            tool_choice: Found::default(),
            system: Found::default(),
            said: Found::default(),
            stripped: Stripped::default(),
        }
    }

    fn field(&mut self, scanner: &mut Scanner<'_>) -> Result<Keep, Fault> {
        let name = scanner.short_name();
        let name = name.word();
        let allowed = self.allowed;
        if !self.checks.forwards(name, allowed) {
            return self.unknown_field(scanner, name);
        }
        if let Some(at) = limits(self.endpoint).iter().position(|limit| *limit == name) {
            self.limits[at] = match scanner.skip()? {
                Shape::Null => Limit::Unset,
                Shape::Count(tokens) if tokens > 0 => Limit::Tokens(tokens),
                _ => Limit::Malformed,
            };
            return Ok(Keep::No);
        }
        match (name, self.checks) {
            ("model", _) => {
                if scanner.value()? == Shape::Text {
                    let (begin, length) = scanner.text();
                    self.model = Some((begin.to_owned(), length));
                }
            }
            ("stream", _) => {
                self.stream = match scanner.value()? {
                    Shape::Null => Some(false),
                    Shape::Bool(stream) => Some(stream),
                    _ => None,
                };
            }
            ("background", _) => self.background(scanner.value()?),
            ("thinking", _) => self.thinking = budget_tokens(scanner)?,
            ("stream_options", _) if self.endpoint == Endpoint::Chat => {
                self.stream_options = Some(scanner.apart()?.1);
                return Ok(Keep::No);
            }
            ("store", Checks::Responses) => {
                scanner.skip()?;
                scanner.write(b"false")?;
                self.stores = true;
            }
            ("max_tool_calls", Checks::Responses) => match scanner.value()? {
                Shape::Count(calls) => self.max_tool_calls = Some(calls),
                // As if it were not there: it may be written below.
                Shape::Null => return Ok(Keep::No),
                _ => {}
            },
            (openai::SEARCH_IN_CHAT, Checks::Chat) => {
                self.searches_in_chat = scanner.value()? != Shape::Null;
            }
            ("context_management", Checks::Anthropic) => {
                self.context_management = anthropic::context_management(scanner)?;
            }
            ("tools", Checks::Anthropic) => self.tools.refused = anthropic::tools(scanner, allowed)?,
            ("tools", Checks::Responses) => self.tools = openai::tools(scanner, allowed)?,
            ("tools", Checks::Chat) => self.tools.refused = openai::tools_of_chat(scanner)?,
            ("tool_choice", Checks::Responses | Checks::Chat) => {
                self.tool_choice = openai::tool_choice(scanner, allowed)?;
            }
            ("system", Checks::Anthropic) => self.system = anthropic::content(scanner)?,
            ("messages", Checks::Anthropic) => self.said = anthropic::content(scanner)?,
            ("messages", Checks::Chat) => self.said = openai::content(scanner)?,
            ("input", Checks::Responses) => (self.said, self.late_tools) = openai::input(scanner, allowed)?,
            _ => drop(scanner.value()?),
        }
        Ok(Keep::Yes)
    }

    /// A field that is taken out.
    fn unknown_field(&mut self, scanner: &mut Scanner<'_>, name: &str) -> Result<Keep, Fault> {
        self.stripped.add(|| {
            let shown: String = scanner.name().chars().take(40).flat_map(char::escape_default).collect();
            format!("the field `{shown}`")
        });
        let shape = scanner.skip()?;
        if name == "background" {
            self.background(shape);
        }
        let is_set = match (self.checks, shape) {
            (_, Shape::Null) | (Checks::Anthropic, Shape::List { is_empty: true }) => false,
            (Checks::None | Checks::Anthropic | Checks::Responses | Checks::Chat, _) => true,
        };
        if let Some(at) = self.checks.refused().iter().position(|refused| *refused == name)
            && is_set
        {
            self.refused = Some(self.refused.map_or(at, |first| first.min(at)));
        }
        Ok(Keep::No)
    }

    fn background(&mut self, shape: Shape) {
        self.is_background |= !matches!(shape, Shape::Null | Shape::Bool(false));
    }

    /// Writes the fields that are set here.
    fn end(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Fault> {
        // Stored is the vendor's default, so leaving the field out is not enough.
        if self.checks == Checks::Responses && !self.stores {
            scanner.write(b",\"store\":false")?;
        }
        let options = self.stream_options.take();
        if self.endpoint == Endpoint::Chat && self.stream == Some(true) {
            // Otherwise the stream says nothing of what it cost.
            let asked = options.and_then(|options| serde_json::from_slice(&options).ok());
            let mut options: serde_json::Map<_, _> = asked.unwrap_or_default();
            options.insert("include_usage".to_owned(), true.into());
            let options = serde_json::Value::Object(options).to_string();
            scanner.write(b",\"stream_options\":")?;
            scanner.write(options.as_bytes())?;
        } else if let Some(options) = options {
            scanner.write(b",\"stream_options\":")?;
            scanner.write(&options)?;
        }
        Ok(())
    }

    /// Refuses what must not be forwarded.
    pub(super) fn check(&mut self) -> Result<Checked, Refusal> {
        if self.is_background {
            let message = "the field `background` is refused: nobody could fetch the answer later";
            return Err(Refusal::bad_request("background", message));
        }
        if let Some(field) = self.refused.and_then(|at| self.checks.refused().get(at)) {
            let what = format!("the field `{field}`");
            return Err(match *field == openai::SEARCH_IN_CHAT {
                true => Refusal::vendor_tool(&what, VendorTool::WebSearch),
                false => Refusal::vendor_side(&what),
            });
        }
        if let (Checks::Responses | Checks::Chat, Some((model, _))) = (self.checks, &self.model) {
            openai::check_model(model, self.allowed)?;
        }
        let findings = [
            &mut self.context_management,
            &mut self.tools.refused,
            &mut self.late_tools.refused,
            &mut self.tool_choice,
            &mut self.system,
            &mut self.said,
        ];
        findings.into_iter().try_for_each(Found::verdict)?;
        let mut stripped = std::mem::take(&mut self.stripped);
        stripped.append(std::mem::take(&mut self.tools.stripped));
        stripped.append(std::mem::take(&mut self.late_tools.stripped));
        let parts = [&self.tools.refused, &self.late_tools.refused, &self.system, &self.said];
        let sum = |count: fn(&Found) -> u64| parts.into_iter().map(count).sum();
        let image_bytes = parts.into_iter().map(|part| part.image_bytes).sum();
        let (offer, tool_calls) = self.offer();
        Ok(Checked {
            stripped: stripped.into_list(),
            sent: Sent {
                bytes: 0,
                images: sum(|part| part.images),
                documents: sum(|part| part.documents),
                described_tools: sum(|part| part.described_tools),
            },
            image_bytes,
            offer,
            tool_calls,
        })
    }

    /// The tools of the vendor's that are offered, and how often they may be called where that has to be added.
    fn offer(&self) -> (Offer, Option<u64>) {
        let mut offer = self.tools.refused.offer;
        offer.add(self.late_tools.refused.offer);
        let model = self.model.as_ref().map(|(model, _)| model.as_str()).unwrap_or_default();
        match self.checks {
            Checks::None | Checks::Anthropic => (offer, None),
            // One limit holds for all tools there.
            Checks::Responses if offer.search_micro_usd > 0 || openai::searches(model) => {
                let searches = self.max_tool_calls.unwrap_or(MOST_CALLS);
                let search_micro_usd = offer.search_micro_usd.max(SEARCH_MICRO_USD);
                let added = self.max_tool_calls.is_none().then_some(searches);
                (Offer { searches, search_micro_usd, ..offer }, added)
            }
            Checks::Chat if self.searches_in_chat || openai::searches(model) => {
                (openai::search_of_model(), None)
            }
            Checks::Responses | Checks::Chat => (Offer::default(), None),
        }
    }
}

/// How many tokens the model may think.
fn budget_tokens(scanner: &mut Scanner<'_>) -> Result<Option<u64>, Fault> {
    let mut budget = None;
    if scanner.ahead()? != Ahead::Object {
        scanner.value()?;
        return Ok(budget);
    }
    scanner.object(|scanner| {
        let is_budget = scanner.name() == "budget_tokens";
        if let Shape::Count(tokens) = scanner.value()?
            && is_budget
        {
            budget = Some(tokens);
        }
        Ok(Keep::Yes)
    })?;
    Ok(budget)
}
