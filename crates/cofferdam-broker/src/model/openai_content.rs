//! What is said to OpenAI's models: text, images and files, and references to what the vendor keeps.

use super::found::Found;
use super::json::{Ahead, Fault, Keep, Scanner, Shape, Short};
use super::refusal::Refusal;

/// A part of what is said.
#[derive(Default)]
pub(super) struct Part {
    pub(super) is_null: bool,
    kind: Option<Short>,
    pub(super) found: Found,
}

impl Part {
    pub(super) fn kind(&self) -> &str {
        self.kind.as_ref().map_or("", Short::word)
    }
}

/// Looks at everything that was said, however deep. What a tool was called with and answered is text there,
/// so nothing of the agent's own data looks like one of these fields.
pub(super) fn content(scanner: &mut Scanner<'_>) -> Result<Found, Fault> {
    if scanner.ahead()? == Ahead::Other {
        scanner.value()?;
        return Ok(Found::default());
    }
    part(scanner).map(|part| part.found)
}

pub(super) fn part(scanner: &mut Scanner<'_>) -> Result<Part, Fault> {
    let mut this = Part::default();
    match scanner.ahead()? {
        Ahead::Other => this.is_null = scanner.value()? == Shape::Null,
        Ahead::List => scanner.list(|scanner| {
            this.found.add(content(scanner)?);
            Ok(Keep::Yes)
        })?,
        Ahead::Object => {
            let begin = scanner.position();
            scanner.object(|scanner| {
                let at = scanner.position();
                if let Some(kind) = field_of_said(scanner, at, &mut this.found)? {
                    this.kind = Some(kind);
                }
                Ok(Keep::Yes)
            })?;
            check_kind(this.kind, begin, &mut this.found);
        }
    }
    Ok(this)
}

/// Reads a field of something that is said. Gives its text if it is the type.
pub(super) fn field_of_said(
    scanner: &mut Scanner<'_>,
    at: u64,
    found: &mut Found,
) -> Result<Option<Short>, Fault> {
    if scanner.name() == "type" && scanner.ahead()? == Ahead::Other {
        return Ok((scanner.value()? == Shape::Text).then(|| scanner.short()));
    }
    match scanner.name() {
        "file_id" => named(scanner, "file_id", at, found)?,
        "file_url" => named(scanner, "file_url", at, found)?,
        "container_id" => named(scanner, "container_id", at, found)?,
        "image_url" => image(scanner, at, found)?,
        "file_data" => {
            let field = part(scanner)?;
            if !field.is_null {
                found.count_document();
            }
            found.add(field.found);
        }
        _ => found.add(content(scanner)?),
    }
    Ok(None)
}

fn named(scanner: &mut Scanner<'_>, name: &str, at: u64, found: &mut Found) -> Result<(), Fault> {
    if scanner.value()? != Shape::Null {
        found.refuse(at, || Refusal::vendor_side(&format!("a file named by `{name}`")));
    }
    Ok(())
}

/// Refuses what stands for something that the vendor keeps or runs. `begin` is where the object does.
pub(super) fn check_kind(kind: Option<Short>, begin: u64, found: &mut Found) {
    let Some(kind) = kind else { return };
    if kind.word() == "input_audio" {
        found.refuse(begin, || Refusal::charge("audio, which has a price of its own,"));
    }
    if matches!(kind.word(), "item_reference" | "code_interpreter_call") || kind.as_str().starts_with("mcp_")
    {
        found.refuse(begin, || Refusal::vendor_side(&format!("an item of type `{}`", kind.as_str())));
    }
}

/// Responses has the URL itself, Chat Completions an object with it.
fn image(scanner: &mut Scanner<'_>, at: u64, found: &mut Found) -> Result<(), Fault> {
    let mut data = None;
    let mut look = |scanner: &Scanner<'_>| {
        let (begin, length) = scanner.text();
        data = begin.starts_with("data:").then_some(length);
    };
    match scanner.ahead()? {
        Ahead::Object => scanner.object(|scanner| {
            let is_url = scanner.name() == "url";
            if scanner.value()? == Shape::Text && is_url {
                look(scanner);
            }
            Ok(Keep::Yes)
        })?,
        Ahead::List | Ahead::Other => match scanner.value()? {
            Shape::Null => return Ok(()),
            Shape::Text => look(scanner),
            _ => {}
        },
    }
    match data {
        Some(length) => found.count_image(length),
        None => found.refuse(at, || Refusal::vendor_side("an image by its URL")),
    }
    Ok(())
}
