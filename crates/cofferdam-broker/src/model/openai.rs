//! What a request to OpenAI may ask for, by Responses or by Chat Completions.

use cofferdam_core::VendorTool;

use super::found::{Found, Stripped};
use super::json::{Ahead, Fault, Keep, Scanner, Shape, Short};
pub(super) use super::openai_content::content;
use super::openai_content::{Part, field_of_said, part};
use super::refusal::Refusal;
use super::vendor_tools::{Allowed, OLDER_SEARCH_MICRO_USD, Offer, SEARCH_MICRO_USD};

/// The fields of Responses that are forwarded; others are taken out, as for Anthropic. `service_tier` is left
/// out because it changes the price, `prompt_cache_retention` because it stores.
pub(crate) const RESPONSES: [&str; 23] = [
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tool_calls",
    "stream",
    "stream_options",
    "max_output_tokens",
    "temperature",
    "top_p",
    "top_logprobs",
    "truncation",
    "reasoning",
    "text",
    "metadata",
    "client_metadata",
    "include",
    "prompt_cache_key",
    "safety_identifier",
    "user",
    "store",
];

/// The fields of Chat Completions that are forwarded. `n` is left out, because it multiplies what is reserved,
/// and `store`, which is off unless asked for.
pub(crate) const CHAT: [&str; 27] = [
    "model",
    "messages",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "seed",
    "stop",
    "response_format",
    "reasoning_effort",
    "verbosity",
    "metadata",
    "user",
    "prompt_cache_key",
];

/// Fields that let the vendor fetch or keep things.
pub(crate) const REFUSED_IN_RESPONSES: [&str; 3] = ["previous_response_id", "conversation", "prompt"];
/// The same for Chat Completions.
pub(crate) const REFUSED_IN_CHAT: [&str; 1] = [SEARCH_IN_CHAT];
/// How a chat asks for a search.
pub(crate) const SEARCH_IN_CHAT: &str = "web_search_options";

/// Some models search the web without being given a tool.
pub(crate) fn searches(model: &str) -> bool {
    ["-search-", "deep-research"].iter().any(|part| model.contains(part))
}

/// A search that a model makes by itself, once for an answer.
pub(crate) fn search_of_model() -> Offer {
    Offer { searches: 1, certain_searches: 1, search_micro_usd: OLDER_SEARCH_MICRO_USD, ..Offer::default() }
}

/// Refuses a model that searches the web, unless that is allowed.
pub(crate) fn check_model(model: &str, allowed: Allowed) -> Result<(), Refusal> {
    if searches(model) && !allowed.has(VendorTool::WebSearch) {
        let what = format!("the model `{model}`, which searches the web,");
        return Err(Refusal::vendor_tool(&what, VendorTool::WebSearch));
    }
    Ok(())
}

/// Tools that were offered, of which those that the vendor runs were taken out.
#[derive(Default)]
pub(crate) struct Offered {
    /// What must be refused.
    pub(crate) refused: Found,
    /// What was taken out.
    pub(crate) stripped: Stripped,
    /// What was found in those that were kept, read as something that is said.
    said: Found,
}

/// One tool, and what was found in it.
#[derive(Default)]
struct Tool {
    is_elsewhere: bool,
    inner: Option<Inner>,
    said: Part,
}

/// The tools in a tool.
struct Inner {
    at: u64,
    offered: Offered,
}

/// Reads the tools of Responses. One that the vendor runs is refused, or taken out if agents offer it by themselves.
pub(crate) fn tools(scanner: &mut Scanner<'_>, allowed: Allowed) -> Result<Offered, Fault> {
    let mut all = Offered::default();
    if scanner.ahead()? != Ahead::List {
        all.said = content(scanner)?;
        return Ok(all);
    }
    scanner.list(|scanner| {
        let at = scanner.position();
        let tool = tool(scanner, allowed)?;
        let kind = tool.said.kind;
        let kind = kind.as_ref().map_or("?", Short::as_str);
        let keep = match tool.said.kind() {
            "function" | "custom" => true,
            "local_shell" | "apply_patch" | "tool_search" => {
                all.refused.count_described_tool();
                true
            }
            // Without an environment, or with a local one, the agent runs the command itself.
            "shell" => {
                all.refused.count_described_tool();
                !tool.is_elsewhere
            }
            word if allowed.has(VendorTool::WebSearch) && is_search(word) => {
                let is_older = word.starts_with("web_search_preview");
                let search_micro_usd = if is_older { OLDER_SEARCH_MICRO_USD } else { SEARCH_MICRO_USD };
                all.refused.count_described_tool();
                // How often is limited for all tools together.
                all.refused.offer.add(Offer { search_micro_usd, ..Offer::default() });
                true
            }
            // Codex offers these whether or not anybody asked; without them it works on.
            "web_search" | "web_search_preview" | "image_generation" => {
                all.stripped.add(|| format!("the tool `{kind}`"));
                return Ok(Keep::No);
            }
            "namespace" => {
                if let Some(Inner { offered, .. }) = tool.inner {
                    all.take(offered);
                }
                all.said.add(tool.said.found);
                return Ok(Keep::Yes);
            }
            _ => false,
        };
        if !keep {
            all.refused.refuse(at, || Refusal::vendor_side(&format!("the tool `{kind}`")));
        }
        if let Some(Inner { at, offered }) = tool.inner {
            // They were read as those of a namespace, because nothing had said yet that this is none.
            if !offered.is_whole() {
                let message = "`tools` stands before `type` in a tool that is no namespace";
                all.refused.refuse(at, || Refusal::bad_request("json", message));
            }
            all.said.add(offered.said);
        }
        all.said.add(tool.said.found);
        Ok(Keep::Yes)
    })?;
    Ok(all)
}

fn is_search(kind: &str) -> bool {
    kind == "web_search" || kind.starts_with("web_search_")
}

impl Offered {
    fn take(&mut self, inner: Self) {
        self.refused.add(inner.refused);
        self.stripped.append(inner.stripped);
        self.said.add(inner.said);
    }

    /// Whether nothing was taken out of them, and nothing is to be refused.
    fn is_whole(&self) -> bool {
        self.stripped.is_empty() && !self.refused.is_refused()
    }
}

fn tool(scanner: &mut Scanner<'_>, allowed: Allowed) -> Result<Tool, Fault> {
    let mut tool = Tool::default();
    if scanner.ahead()? != Ahead::Object {
        tool.said.found = content(scanner)?;
        return Ok(tool);
    }
    let begin = scanner.position();
    scanner.object(|scanner| {
        let at = scanner.position();
        match scanner.name() {
            "tools" if tool.said.kind.is_none() || tool.said.kind() == "namespace" => {
                if scanner.ahead()? == Ahead::List {
                    tool.inner = Some(Inner { at, offered: tools(scanner, allowed)? });
                } else {
                    tool.said.found.add(content(scanner)?);
                }
            }
            "environment" => {
                let field = part(scanner)?;
                tool.is_elsewhere = !field.is_null && field.kind() != "local";
                tool.said.found.add(field.found);
            }
            _ => field_of_said(scanner, at, &mut tool.said)?,
        }
        Ok(Keep::Yes)
    })?;
    tool.said.end(begin);
    Ok(tool)
}

/// Reads the tools of Chat Completions.
pub(crate) fn tools_of_chat(scanner: &mut Scanner<'_>) -> Result<Found, Fault> {
    let mut found = Found::default();
    if scanner.ahead()? != Ahead::List {
        scanner.value()?;
        return Ok(found);
    }
    scanner.list(|scanner| {
        let at = scanner.position();
        let kind = kind(scanner)?;
        if !matches!(kind.as_ref().map(Short::word), Some("function" | "custom")) {
            let kind = kind.as_ref().map_or("?", Short::as_str);
            found.refuse(at, || Refusal::vendor_side(&format!("the tool `{kind}`")));
        }
        Ok(Keep::Yes)
    })?;
    Ok(found)
}

/// A choice can name a tool that the vendor runs, also one that is not in the list.
pub(crate) fn tool_choice(scanner: &mut Scanner<'_>, allowed: Allowed) -> Result<Found, Fault> {
    let known = ["function", "custom", "local_shell", "shell", "apply_patch", "allowed_tools", "namespace"];
    let at = scanner.position();
    let mut found = Found::default();
    let kind = match scanner.ahead()? {
        Ahead::Object => kind(scanner)?,
        Ahead::List | Ahead::Other => match scanner.value()? {
            Shape::Null | Shape::Text => return Ok(found),
            _ => None,
        },
    };
    let may = |kind: &str| known.contains(&kind) || (allowed.has(VendorTool::WebSearch) && is_search(kind));
    if !kind.as_ref().is_some_and(|kind| may(kind.word())) {
        let kind = kind.as_ref().map_or("?", Short::as_str);
        found.refuse(at, || Refusal::vendor_side(&format!("the tool `{kind}`")));
    }
    Ok(found)
}

/// The type of an object, if it is text.
fn kind(scanner: &mut Scanner<'_>) -> Result<Option<Short>, Fault> {
    let mut kind = None;
    if scanner.ahead()? != Ahead::Object {
        scanner.value()?;
        return Ok(kind);
    }
    scanner.object(|scanner| {
        let is_kind = scanner.name() == "type";
        if scanner.value()? == Shape::Text && is_kind {
            kind = Some(scanner.short());
        }
        Ok(Keep::Yes)
    })?;
    Ok(kind)
}

/// What is said to Responses: what was found in it, and the tools that are offered in it.
pub(crate) fn input(scanner: &mut Scanner<'_>, allowed: Allowed) -> Result<(Found, Offered), Fault> {
    let (mut found, mut late) = (Found::default(), Offered::default());
    if scanner.ahead()? != Ahead::List {
        return Ok((content(scanner)?, late));
    }
    scanner.list(|scanner| {
        found.add(item(scanner, &mut late, allowed)?);
        Ok(Keep::Yes)
    })?;
    Ok((found, late))
}

/// Some models are told of their tools in the conversation and not beside it. The attack: a tool that the vendor
/// runs, offered there.
fn item(scanner: &mut Scanner<'_>, late: &mut Offered, allowed: Allowed) -> Result<Found, Fault> {
    if scanner.ahead()? != Ahead::Object {
        return content(scanner);
    }
    let begin = scanner.position();
    let mut said = Part::default();
    scanner.object(|scanner| {
        let at = scanner.position();
        if scanner.name() == "tools" {
            if scanner.ahead()? != Ahead::List {
                late.refused.refuse(at, || Refusal::bad_request("json", "`tools` is not a list"));
            }
            let mut offered = tools(scanner, allowed)?;
            // What a tool is told with is text, however it is dressed.
            said.found.add(std::mem::take(&mut offered.said).or_text());
            late.take(offered);
        } else {
            field_of_said(scanner, at, &mut said)?;
        }
        Ok(Keep::Yes)
    })?;
    said.end(begin);
    Ok(said.found)
}
