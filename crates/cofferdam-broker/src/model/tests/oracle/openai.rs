//! What a request to OpenAI may ask for, by Responses or by Chat Completions.

use cofferdam_core::VendorTool;

use super::super::super::refusal::Refusal;
use super::Findings;
use super::json::Json;

/// The fields of Responses that are forwarded; others are taken out, as for Anthropic. `service_tier` is left
/// out because it changes the price, `prompt_cache_retention` because it stores.
const RESPONSES: [&str; 23] = [
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
const CHAT: [&str; 27] = [
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

/// Refuses what lets the vendor fetch or keep things, takes out what is not known, and switches storing off.
pub(super) fn check_responses(
    body: &mut Json<'_>,
    findings: &mut Findings,
    allowed: &[VendorTool],
) -> Result<(), Refusal> {
    for field in ["previous_response_id", "conversation", "prompt"] {
        if body.get(field).is_some() {
            return Err(Refusal::vendor_side(&format!("the field `{field}`")));
        }
    }
    let searches = allowed.contains(&VendorTool::WebSearch);
    check_model(body, searches)?;
    findings.keep_fields(body, &RESPONSES);
    // Stored is the vendor's default, so leaving the field out is not enough.
    body.set("store", Json::Bool(false));
    if let Some(Json::List(tools)) = body.get_mut("tools") {
        keep_tools(tools, findings, searches)?;
    }
    if let Some(Json::List(items)) = body.get_mut("input") {
        items.iter_mut().try_for_each(|item| check_late_tools(item, findings, searches))?;
    }
    if findings.searches || (searches && is_search_model(body)) {
        body.set("max_tool_calls", Json::Number(10.into()));
    }
    check_tool_choice(body, searches)?;
    body.get("input").map_or(Ok(()), |input| content(input, findings))
}

/// The same for Chat Completions.
pub(super) fn check_chat(
    body: &mut Json<'_>,
    findings: &mut Findings,
    allowed: &[VendorTool],
) -> Result<(), Refusal> {
    let searches = allowed.contains(&VendorTool::WebSearch);
    if body.get("web_search_options").is_some() && !searches {
        return Err(Refusal::vendor_tool("the field `web_search_options`", VendorTool::WebSearch));
    }
    check_model(body, searches)?;
    let extra: &[&str] = if searches { &["web_search_options"] } else { &[] };
    findings.keep_fields(body, &[&CHAT, extra].concat());
    for tool in body.get("tools").map(Json::items).unwrap_or_default() {
        let kind = tool.get_text("type").unwrap_or("?");
        if !matches!(kind, "function" | "custom") {
            return Err(Refusal::vendor_side(&format!("the tool `{kind}`")));
        }
    }
    check_tool_choice(body, searches)?;
    body.get("messages").map_or(Ok(()), |messages| content(messages, findings))
}

/// Some models search the web without being given a tool.
fn check_model(body: &Json<'_>, searches: bool) -> Result<(), Refusal> {
    let model = body.get_text("model").unwrap_or_default();
    if is_search_model(body) && !searches {
        let what = format!("the model `{model}`, which searches the web,");
        return Err(Refusal::vendor_tool(&what, VendorTool::WebSearch));
    }
    Ok(())
}

fn is_search_model(body: &Json<'_>) -> bool {
    let model = body.get_text("model").unwrap_or_default();
    ["-search-", "deep-research"].iter().any(|part| model.contains(part))
}

/// Some models are told of their tools in the conversation and not beside it. The attack: a tool that the vendor
/// runs, offered there.
fn check_late_tools(item: &mut Json<'_>, findings: &mut Findings, searches: bool) -> Result<(), Refusal> {
    match item.get_mut("tools") {
        None => Ok(()),
        Some(Json::List(tools)) => keep_tools(tools, findings, searches),
        Some(_) => Err(Refusal::bad_request("json", "`tools` is not a list")),
    }
}

fn keep_tools(tools: &mut Vec<Json<'_>>, findings: &mut Findings, searches: bool) -> Result<(), Refusal> {
    let mut refused = None;
    tools.retain_mut(|tool| {
        let kind = tool.get_text("type").unwrap_or("?").to_owned();
        let keep = match kind.as_str() {
            "function" | "custom" | "local_shell" | "apply_patch" | "tool_search" => true,
            // Without an environment, or with a local one, the agent runs the command itself.
            "shell" => tool.get("environment").is_none_or(|it| it.get_text("type") == Some("local")),
            _ if searches && is_search(&kind) => {
                findings.searches = true;
                true
            }
            // Codex offers these whether or not anybody asked; without them it works on.
            "web_search" | "web_search_preview" | "image_generation" => {
                findings.strip(format!("the tool `{kind}`"));
                return false;
            }
            "namespace" => {
                if let Some(Json::List(inner)) = tool.get_mut("tools")
                    && let Err(refusal) = keep_tools(inner, findings, searches)
                {
                    refused.get_or_insert(refusal);
                }
                true
            }
            _ => false,
        };
        if !keep {
            refused.get_or_insert_with(|| Refusal::vendor_side(&format!("the tool `{kind}`")));
        }
        keep
    });
    refused.map_or(Ok(()), Err)
}

fn is_search(kind: &str) -> bool {
    kind == "web_search" || kind.starts_with("web_search_")
}

/// A choice can name a tool that the vendor runs, also one that is not in the list.
fn check_tool_choice(body: &Json<'_>, searches: bool) -> Result<(), Refusal> {
    let known = ["function", "custom", "local_shell", "shell", "apply_patch", "allowed_tools", "namespace"];
    match body.get("tool_choice") {
        None | Some(Json::Text(_)) => Ok(()),
        Some(choice) => match choice.get_text("type") {
            Some(kind) if known.contains(&kind) || (searches && is_search(kind)) => Ok(()),
            kind => Err(Refusal::vendor_side(&format!("the tool `{}`", kind.unwrap_or("?")))),
        },
    }
}

/// Looks at everything that was said, however deep. What a tool was called with and answered is text there,
/// so nothing of the agent's own data looks like one of these fields.
fn content(value: &Json<'_>, findings: &mut Findings) -> Result<(), Refusal> {
    for item in value.items() {
        content(item, findings)?;
    }
    if let Some(kind) = value.get_text("type")
        && (kind == "item_reference" || kind.starts_with("mcp_") || kind == "code_interpreter_call")
    {
        return Err(Refusal::vendor_side(&format!("an item of type `{kind}`")));
    }
    for (name, field) in value.fields() {
        match name.as_ref() {
            "file_id" | "file_url" | "container_id" if *field != Json::Null => {
                return Err(Refusal::vendor_side(&format!("a file named by `{name}`")));
            }
            "image_url" if *field != Json::Null => image(field, findings)?,
            _ => content(field, findings)?,
        }
    }
    Ok(())
}

/// Responses has the URL itself, Chat Completions an object with it.
fn image(field: &Json<'_>, findings: &mut Findings) -> Result<(), Refusal> {
    let url = field.as_text().or_else(|| field.get_text("url")).unwrap_or_default();
    if !url.starts_with("data:") {
        return Err(Refusal::vendor_side("an image by its URL"));
    }
    findings.count_image(url.len());
    Ok(())
}
