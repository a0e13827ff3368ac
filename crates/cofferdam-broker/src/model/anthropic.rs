//! What a request to Anthropic may ask for.

use cofferdam_core::VendorTool;

use super::found::Found;
use super::json::{Ahead, Fault, Keep, Scanner, Shape, Short};
use super::refusal::Refusal;
use super::vendor_tools::{Allowed, Offer};

/// The fields that are forwarded. A field that is not here is taken out: tomorrow's connector must not pass
/// because today nobody knew its name. `service_tier`, `speed` and `inference_geo` are left out on purpose,
/// since they change the price.
pub(crate) const FIELDS: [&str; 18] = [
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

/// Fields that let the vendor fetch or keep things, unless they are empty.
pub(crate) const REFUSED: [&str; 2] = ["mcp_servers", "container"];

/// Tools that the agent runs itself, by the beginning of their type. Searching among the request's own tools
/// is done by the vendor, but reaches nothing.
const CLIENT_TOOLS: [&str; 5] = ["bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_"];

/// Tools that Anthropic runs and that can be allowed, by the beginning of their type.
const VENDOR_TOOLS: [(&str, VendorTool); 2] =
    [("web_search_", VendorTool::WebSearch), ("web_fetch_", VendorTool::WebFetch)];

/// Reads the tools that are offered.
pub(crate) fn tools(scanner: &mut Scanner<'_>, allowed: Allowed) -> Result<Found, Fault> {
    let mut found = Found::default();
    if scanner.ahead()? != Ahead::List {
        scanner.value()?;
        return Ok(found);
    }
    scanner.list(|scanner| {
        let at = scanner.position();
        let Tool { kind, max_uses } = tool(scanner)?;
        match kind {
            None => {}
            Some(Some(kind)) if kind.word() == "custom" => {}
            Some(Some(kind)) if is_client_tool(kind) => found.count_described_tool(),
            Some(kind) => {
                let kind = kind.as_ref().map_or("?", Short::as_str);
                vendor_tool(kind, max_uses, allowed, at, &mut found);
            }
        }
        Ok(Keep::Yes)
    })?;
    Ok(found)
}

/// A tool that the vendor runs: counted if it is allowed, and refused if not.
fn vendor_tool(kind: &str, max_uses: Uses, allowed: Allowed, at: u64, found: &mut Found) {
    let what = format!("the tool `{kind}`");
    let known = VENDOR_TOOLS.into_iter().find(|(begin, _)| kind.starts_with(begin));
    match (known, max_uses) {
        (None, _) => found.refuse(at, || Refusal::vendor_side(&what)),
        (Some((_, tool)), _) if !allowed.has(tool) => found.refuse(at, || Refusal::vendor_tool(&what, tool)),
        (Some(_), Uses::Malformed) => found.refuse(at, || {
            Refusal::bad_request("json", format!("`max_uses` of {what} is not a number of uses"))
        }),
        (Some((_, tool)), Uses::Unset) => {
            found.count_described_tool();
            found.offer.add(Offer::new(tool, None));
        }
        (Some((_, tool)), Uses::Most(uses)) => {
            found.count_described_tool();
            found.offer.add(Offer::new(tool, Some(uses)));
        }
    }
}

fn is_client_tool(kind: Short) -> bool {
    CLIENT_TOOLS.iter().any(|begin| kind.as_str().starts_with(begin))
}

/// What matters of a tool.
#[derive(Default)]
struct Tool {
    /// Its type, if it has one, and if that is text.
    kind: Option<Option<Short>>,
    max_uses: Uses,
}

/// How often a tool may be used.
#[derive(Debug, Clone, Copy, Default)]
enum Uses {
    #[default]
    Unset,
    Most(u64),
    Malformed,
}

fn tool(scanner: &mut Scanner<'_>) -> Result<Tool, Fault> {
    let mut tool = Tool::default();
    if scanner.ahead()? != Ahead::Object {
        scanner.value()?;
        return Ok(tool);
    }
    scanner.object(|scanner| {
        let (is_kind, is_uses) = (scanner.name() == "type", scanner.name() == "max_uses");
        match scanner.value()? {
            Shape::Count(uses) if is_uses => tool.max_uses = Uses::Most(uses),
            Shape::Text if is_kind => tool.kind = Some(Some(scanner.short())),
            Shape::Null => {}
            _ if is_kind => tool.kind = Some(None),
            _ if is_uses => tool.max_uses = Uses::Malformed,
            _ => {}
        }
        Ok(Keep::Yes)
    })?;
    Ok(tool)
}

/// Reads how the conversation is to be shortened. The vendor can do so by asking the model once more, which is charged beside what
/// it tells of the answer.
pub(crate) fn context_management(scanner: &mut Scanner<'_>) -> Result<Found, Fault> {
    let at = scanner.position();
    let mut found = Found::default();
    edits(scanner, at, &mut found)?;
    Ok(found)
}

fn edits(scanner: &mut Scanner<'_>, at: u64, found: &mut Found) -> Result<(), Fault> {
    match scanner.ahead()? {
        Ahead::Other => {
            scanner.value()?;
            Ok(())
        }
        Ahead::List => scanner.list(|scanner| edits(scanner, at, found).map(|()| Keep::Yes)),
        Ahead::Object => scanner.object(|scanner| {
            let is_kind = scanner.name() == "type" && scanner.ahead()? == Ahead::Other;
            if !is_kind {
                edits(scanner, at, found)?;
            } else if scanner.value()? == Shape::Text && scanner.text().0.starts_with("compact") {
                found.refuse(at, || Refusal::charge("compaction by the vendor"));
            }
            Ok(Keep::Yes)
        }),
    }
}

/// A part of what is said.
#[derive(Default)]
struct Part {
    is_text: bool,
    kind: Option<Short>,
    /// How long its `data` is.
    data: usize,
    found: Found,
}

impl Part {
    fn kind(&self) -> &str {
        self.kind.as_ref().map_or("", Short::word)
    }
}

/// Looks at every content block, however deep: results of tools and documents hold blocks too.
pub(crate) fn content(scanner: &mut Scanner<'_>) -> Result<Found, Fault> {
    if scanner.ahead()? == Ahead::Other {
        scanner.value()?;
        return Ok(Found::default());
    }
    part(scanner).map(|part| part.found)
}

fn part(scanner: &mut Scanner<'_>) -> Result<Part, Fault> {
    match scanner.ahead()? {
        Ahead::Other => Ok(Part { is_text: scanner.value()? == Shape::Text, ..Part::default() }),
        Ahead::List => {
            let mut found = Found::default();
            scanner.list(|scanner| {
                found.add(content(scanner)?);
                Ok(Keep::Yes)
            })?;
            Ok(Part { found, ..Part::default() })
        }
        Ahead::Object => block(scanner),
    }
}

/// What a block's type decides is found when the block has been read: its type may be its last field.
fn block(scanner: &mut Scanner<'_>) -> Result<Part, Fault> {
    let begin = scanner.position();
    let mut block = Part::default();
    let (mut input, mut source, mut has_file_id) = (Found::default(), None, false);
    scanner.object(|scanner| {
        let at = scanner.position();
        match scanner.name() {
            "type" => {
                let field = part(scanner)?;
                if field.is_text {
                    block.kind = Some(scanner.short());
                }
                block.found.add(field.found.or_text());
            }
            "data" => {
                let field = part(scanner)?;
                if field.is_text {
                    block.data = scanner.text().1;
                }
                block.found.add(field.found.or_text());
            }
            "input" => input = content(scanner)?,
            "source" => source = Some((at, part(scanner)?)),
            "file_id" => has_file_id = scanner.value()? != Shape::Null,
            "image_url" => named(scanner, "image_url", at, &mut block.found)?,
            "file_url" => named(scanner, "file_url", at, &mut block.found)?,
            "content" => block.found.add(content(scanner)?),
            // Nothing that the vendor takes for an image is said elsewhere.
            _ => block.found.add(content(scanner)?.or_text()),
        }
        Ok(Keep::Yes)
    })?;
    if block.kind() == "container_upload" || has_file_id {
        block.found.refuse(begin, || Refusal::vendor_side("a file that is kept at the vendor"));
    }
    // What the model once passed to a tool is the agent's own data; the vendor reads nothing in it. What it passed to one of the
    // vendor's (`server_tool_use`, `mcp_tool_use`) is looked at, but the model reads it as text.
    if block.kind() != "tool_use" {
        block.found.add(input.or_text());
    }
    if let Some((at, source)) = source {
        let found = judge_source(source, block.kind(), at);
        block.found.add(found);
    }
    Ok(block)
}

/// Not in this interface; a gateway that translates between them might know it all the same.
fn named(scanner: &mut Scanner<'_>, name: &str, at: u64, found: &mut Found) -> Result<(), Fault> {
    if scanner.value()? != Shape::Null {
        found.refuse(at, || Refusal::vendor_side(&format!("a file or image named by `{name}`")));
    }
    Ok(())
}

fn judge_source(source: Part, block: &str, at: u64) -> Found {
    let mut found = Found::default();
    // A search result that the agent made itself names its source in words.
    if source.is_text && block == "search_result" {
        return found;
    }
    let refused = match source.kind() {
        "base64" if block == "image" => {
            found.count_image();
            found.leave_out_image(source.data);
            return found;
        }
        "base64" => {
            found.count_document();
            return found;
        }
        "text" => return found,
        "content" => return source.found,
        "url" => "an image or document by its URL",
        "file" => "a file that is kept at the vendor",
        _ => "a content block whose source is not in the request",
    };
    found.refuse(at, || Refusal::vendor_side(refused));
    found
}
