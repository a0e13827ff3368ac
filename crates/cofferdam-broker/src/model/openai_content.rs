//! What is said to OpenAI's models: text, images and files, and references to what the vendor keeps.

use super::found::Found;
use super::json::{Ahead, Fault, Keep, Scanner, Shape, Short};
use super::refusal::Refusal;

/// Objects with an `image_url` that the model sees as an image, by their type.
const IMAGES: [&str; 3] = ["input_image", "image_url", "computer_screenshot"];
/// Fields in which something is said or shown to the model. In others nothing is an image, whatever its type: arguments of tools and
/// variables of commands are any objects, and text to the model.
const SHOWN: [&str; 2] = ["content", "output"];

/// A part of what is said.
#[derive(Default)]
pub(super) struct Part {
    pub(super) is_null: bool,
    pub(super) kind: Option<Short>,
    /// How long the data of its image is.
    image: usize,
    pub(super) found: Found,
}

impl Part {
    pub(super) fn kind(&self) -> &str {
        self.kind.as_ref().map_or("", Short::word)
    }

    /// Judges an object whose fields were read. `begin` is where it does.
    pub(super) fn end(&mut self, begin: u64) {
        check_kind(self.kind, begin, &mut self.found);
        // Its type may be its last field, so that this is not known before.
        if IMAGES.contains(&self.kind()) {
            self.found.leave_out_image(self.image);
        }
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
                field_of_said(scanner, at, &mut this)?;
                Ok(Keep::Yes)
            })?;
            this.end(begin);
        }
    }
    Ok(this)
}

/// Reads a field of something that is said.
pub(super) fn field_of_said(scanner: &mut Scanner<'_>, at: u64, said: &mut Part) -> Result<(), Fault> {
    if scanner.name() == "type" && scanner.ahead()? == Ahead::Other {
        if scanner.value()? == Shape::Text {
            said.kind = Some(scanner.short());
        }
        return Ok(());
    }
    let found = &mut said.found;
    match scanner.name() {
        "file_id" => named(scanner, "file_id", at, found)?,
        "file_url" => named(scanner, "file_url", at, found)?,
        "container_id" => named(scanner, "container_id", at, found)?,
        "image_url" => said.image = image(scanner, at, found)?,
        "file_data" => {
            let field = part(scanner)?;
            if !field.is_null {
                found.count_document();
            }
            found.add(field.found.or_text());
        }
        name if SHOWN.contains(&name) => found.add(content(scanner)?),
        _ => found.add(content(scanner)?.or_text()),
    }
    Ok(())
}

fn named(scanner: &mut Scanner<'_>, name: &str, at: u64, found: &mut Found) -> Result<(), Fault> {
    if scanner.value()? != Shape::Null {
        found.refuse(at, || Refusal::vendor_side(&format!("a file named by `{name}`")));
    }
    Ok(())
}

/// Refuses what stands for something that the vendor keeps or runs. `begin` is where the object does.
fn check_kind(kind: Option<Short>, begin: u64, found: &mut Found) {
    let Some(kind) = kind else { return };
    if kind.word() == "input_audio" {
        found.refuse(begin, || Refusal::charge("audio, which has a price of its own,"));
    }
    if matches!(kind.word(), "item_reference" | "code_interpreter_call") || kind.as_str().starts_with("mcp_")
    {
        found.refuse(begin, || Refusal::vendor_side(&format!("an item of type `{}`", kind.as_str())));
    }
}

/// Responses has the URL itself, Chat Completions an object with it. Gives how long its data is.
fn image(scanner: &mut Scanner<'_>, at: u64, found: &mut Found) -> Result<usize, Fault> {
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
            Shape::Null => return Ok(0),
            Shape::Text => look(scanner),
            _ => {}
        },
    }
    match data {
        Some(_) => found.count_image(),
        None => found.refuse(at, || Refusal::vendor_side("an image by its URL")),
    }
    Ok(data.unwrap_or(0))
}
