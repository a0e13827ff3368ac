//! From what a server sent to text for a model.

mod charset;
mod markdown;
mod unpack;

use std::path::Path;

use serde::{Deserialize, Serialize};

/// What is known of a page besides its bytes, and which part of it is wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageJob {
    /// Where it is from: what its links are relative to.
    pub url: String,
    /// What the server calls it.
    pub content_type: Option<String>,
    /// How the server has packed it.
    pub content_encoding: Option<String>,
    /// How many characters to leave out at the beginning.
    pub offset: usize,
    /// How many characters there may be.
    pub most_chars: usize,
}

/// A part of a page's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// What it calls itself; empty if it does not.
    pub title: String,
    /// The part.
    pub text: String,
    /// How many characters the whole text has.
    pub total_chars: usize,
}

/// Reads a page.
pub(super) fn read(job: &PageJob, path: &Path) -> Result<Page, String> {
    let bytes = unpack::unpack(path, job.content_encoding.as_deref())?;
    let kind = Kind::of(job.content_type.as_deref(), &bytes)?;
    let text = charset::decode(&bytes, job.content_type.as_deref(), kind == Kind::Html);
    drop(bytes);
    let (title, text) = match kind {
        Kind::Html => markdown::of(&text, &job.url),
        Kind::Text => (String::new(), text),
    };
    let part = text.chars().skip(job.offset).take(job.most_chars).collect();
    Ok(Page { title, text: part, total_chars: text.chars().count() })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
}

impl Kind {
    /// What the server says it is; where it says nothing, what it looks like.
    fn of(content_type: Option<&str>, bytes: &[u8]) -> Result<Self, String> {
        let named =
            content_type.map(|text| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        let kind = match named.as_deref() {
            None | Some("") if bytes.trim_ascii_start().starts_with(b"<") => Self::Html,
            Some("text/html" | "application/xhtml+xml") => Self::Html,
            None | Some("" | "application/json" | "application/xml" | "application/javascript") => Self::Text,
            Some(named)
                if named.starts_with("text/") || named.ends_with("+json") || named.ends_with("+xml") =>
            {
                Self::Text
            }
            Some(named) => {
                return Err(format!("the page is of the type {}, and only text can be read", short(named)));
            }
        };
        // Two bytes a character is the one way in which text holds zeros.
        let is_wide = bytes.starts_with(&[0xfe, 0xff]) || bytes.starts_with(&[0xff, 0xfe]);
        match !is_wide && bytes[..bytes.len().min(4096)].contains(&0) {
            true => Err("the page is not text".to_owned()),
            false => Ok(kind),
        }
    }
}

/// A name of the server's choice, made short.
fn short(text: &str) -> String {
    let clean = text.chars().filter(|c| c.is_ascii_graphic()).take(60).collect::<String>();
    format!("`{clean}`")
}
