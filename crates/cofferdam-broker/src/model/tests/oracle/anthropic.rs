//! What a request to Anthropic may ask for.

use cofferdam_core::VendorTool;

use super::super::super::refusal::Refusal;
use super::Findings;
use super::json::Json;

/// The fields that are forwarded. A field that is not here is taken out: tomorrow's connector must not pass
/// because today nobody knew its name. `service_tier`, `speed` and `inference_geo` are left out on purpose,
/// since they change the price.
const FIELDS: [&str; 18] = [
    "model",
    "messages",
    "system",
    "max_tokens",
    "stream",
    "tools",
    "tool_choice",
    "thinking",
    "metadata",
    "stop_sequences",
    "temperature",
    "top_p",
    "top_k",
    "context_management",
    "output_config",
    "output_format",
    "cache_control",
    "diagnostics",
];

/// Tools that the agent runs itself, by the beginning of their type. Searching among the request's own tools
/// is done by the vendor, but reaches nothing.
const CLIENT_TOOLS: [&str; 5] = ["bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_"];

/// Refuses what lets the vendor fetch or keep things, and takes out what is not known.
pub(super) fn check(
    body: &mut Json<'_>,
    findings: &mut Findings,
    allowed: &[VendorTool],
) -> Result<(), Refusal> {
    for field in ["mcp_servers", "container"] {
        if body.get(field).is_some_and(|value| *value != Json::List(Vec::new())) {
            return Err(Refusal::vendor_side(&format!("the field `{field}`")));
        }
    }
    findings.keep_fields(body, &FIELDS);
    for tool in body.get("tools").map(Json::items).unwrap_or_default() {
        match tool.get("type").map(Json::as_text) {
            None | Some(Some("custom")) => {}
            Some(Some(kind)) if CLIENT_TOOLS.iter().any(|begin| kind.starts_with(begin)) => {}
            Some(kind) => {
                let kind = kind.unwrap_or("?");
                let what = format!("the tool `{kind}`");
                match VendorTool::ALL.into_iter().find(|it| kind.starts_with(&format!("{it}_"))) {
                    Some(known) if allowed.contains(&known) => {}
                    Some(known) => return Err(Refusal::vendor_tool(&what, known)),
                    None => return Err(Refusal::vendor_side(&what)),
                }
            }
        }
    }
    for field in ["system", "messages"] {
        if let Some(value) = body.get(field) {
            content(value, findings)?;
        }
    }
    Ok(())
}

/// Looks at every content block, however deep: results of tools and documents hold blocks too.
fn content(value: &Json<'_>, findings: &mut Findings) -> Result<(), Refusal> {
    for item in value.items() {
        content(item, findings)?;
    }
    let kind = value.get_text("type").unwrap_or_default();
    if kind == "container_upload" || value.get("file_id").is_some() {
        return Err(Refusal::vendor_side("a file that is kept at the vendor"));
    }
    for (name, field) in value.fields() {
        match name.as_ref() {
            // What the model once passed to a tool is the agent's own data; the vendor reads nothing in it.
            "input" if kind == "tool_use" => {}
            "source" => source(field, kind, findings)?,
            // Not in this interface; a gateway that translates between them might know it all the same.
            "image_url" | "file_url" | "file_id" if *field != Json::Null => {
                return Err(Refusal::vendor_side(&format!("a file or image named by `{name}`")));
            }
            _ => content(field, findings)?,
        }
    }
    Ok(())
}

fn source(source: &Json<'_>, block: &str, findings: &mut Findings) -> Result<(), Refusal> {
    // A search result that the agent made itself names its source in words.
    if source.as_text().is_some() && block == "search_result" {
        return Ok(());
    }
    match source.get_text("type") {
        Some("base64") if block == "image" => {
            findings.count_image(source.get_text("data").map_or(0, str::len));
            Ok(())
        }
        Some("base64" | "text") => Ok(()),
        Some("content") => content(source, findings),
        Some("url") => Err(Refusal::vendor_side("an image or document by its URL")),
        Some("file") => Err(Refusal::vendor_side("a file that is kept at the vendor")),
        _ => Err(Refusal::vendor_side("a content block whose source is not in the request")),
    }
}
