//! Files that a reply names with `[send_file: PATH]`, as attachments.
//!
//! The attack: the agent, or whoever told it what to say, names a file that it could not read itself: `/etc/shadow`,
//! a link to a key, a file that is swapped for a link between the check and the copy, a masked file. So a path is
//! resolved in the agent's own folder alone, one name at a time and without links, and what is copied is read from
//! the very descriptor that was checked.

mod copy;
mod open;
mod tags;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use cofferdam_core::Mask;
use serde::{Deserialize, Serialize};

use crate::raw_path::{RawPath, escape};
use open::Root;

/// How many files one reply may bring.
const MOST_FILES: usize = 20;
/// How large one file may be.
pub const MOST_FILE_BYTES: u64 = 100 << 20;
/// How large all files of one reply may be together.
const MOST_BYTES: u64 = 256 << 20;
/// How many of the files that were left out a reply names. The agent makes as many as it likes.
const NAMED: usize = 3;
/// How much of a path a warning repeats.
const SHOWN_CHARS: usize = 120;

/// The folder that a reply's paths are resolved in.
#[derive(Debug, Clone, Copy)]
pub struct MappedRoot<'a> {
    /// On the host.
    pub host: &'a Path,
    /// Where the agent saw it.
    pub inside: &'a Path,
    /// What of it was hidden from the agent.
    pub mask: &'a Mask,
}

/// A reply without its tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// What is said, with a warning at its end if something could not be attached.
    pub text: String,
    /// What comes with it.
    pub attachments: Vec<Attachment>,
    /// What was named and does not come with it.
    pub left_out: Vec<LeftOut>,
}

/// A file that comes with a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// As the agent named it.
    pub named: String,
    /// Where the agent's own file is. It may have changed since.
    pub host_path: RawPath,
    /// Where the copy is that was checked.
    pub artifact: RawPath,
    /// How large it is.
    pub bytes: u64,
}

/// A file that was named and does not come with a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// As the agent named it.
    pub named: String,
    /// Why, for people.
    pub reason: String,
}

/// Why a file is not attached. The texts follow its name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("it has no name")]
    Empty,
    #[error("it is not in the agent's folder")]
    Outside,
    #[error("its path goes up with `..`")]
    Up,
    #[error("there is no such file")]
    Missing,
    #[error("it is or leads through a link")]
    Link,
    #[error("it is not a file")]
    NotAFile,
    #[error("it is hidden from agents")]
    Hidden,
    #[error("the agent may not read it")]
    Closed,
    #[error("it is another name of somebody else's file")]
    HardLink,
    #[error("it is larger than {} MiB", MOST_FILE_BYTES >> 20)]
    TooLarge,
    #[error("all attachments together are larger than {} MiB", MOST_BYTES >> 20)]
    TooMuch,
    #[error("a reply has at most {MOST_FILES} attachments")]
    TooMany,
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Takes the tags out of a reply and copies the files that they name into `into`, which is made if it is needed.
///
/// # Errors
/// If the folder itself cannot be opened, or a copy cannot be written. A file that cannot be attached is no error.
pub fn attach(reply: &str, root: &MappedRoot<'_>, into: &Path) -> io::Result<Reply> {
    let tags = tags::find(reply);
    let mut found = Reply { text: tags::strip(reply, &tags), ..Reply::default() };
    if tags.is_empty() {
        return Ok(found);
    }
    let opened = Root::open(root)?;
    let mut seen = BTreeSet::new();
    let mut bytes = 0;
    for tag in &tags {
        let resolved = opened.relative(&tag.path);
        // Two ways to write the same file are one file.
        let key = resolved.as_ref().map_or_else(|_| PathBuf::from(&tag.path), PathBuf::clone);
        if !seen.insert(key) {
            continue;
        }
        let attached = resolved.and_then(|relative| {
            let room = Room { files: found.attachments.len(), bytes };
            let (artifact, copied) = room.take(&opened, &relative, into)?;
            let host_path = RawPath(root.host.join(&relative));
            Ok(Attachment { named: tag.path.clone(), host_path, artifact: RawPath(artifact), bytes: copied })
        });
        match attached {
            Ok(attachment) => {
                bytes += attachment.bytes;
                found.attachments.push(attachment);
            }
            Err(reason) => {
                found.left_out.push(LeftOut { named: tag.path.clone(), reason: reason.to_string() });
            }
        }
    }
    append_warning(&mut found.text, &found.left_out);
    Ok(found)
}

/// What a reply has used of what it may.
struct Room {
    files: usize,
    bytes: u64,
}

impl Room {
    fn take(&self, root: &Root<'_>, relative: &Path, into: &Path) -> Result<(PathBuf, u64), Refused> {
        if self.files == MOST_FILES {
            return Err(Refused::TooMany);
        }
        let file = root.file(relative)?;
        let left = MOST_BYTES - self.bytes;
        if file.metadata()?.len() > left {
            return Err(Refused::TooMuch);
        }
        copy::copy(file, relative, self.files + 1, into, left.min(MOST_FILE_BYTES))
    }
}

/// Says at the end of a reply what it does not bring.
fn append_warning(text: &mut String, left_out: &[LeftOut]) {
    if left_out.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str("Warning: not attached: ");
    let named: Vec<String> = left_out
        .iter()
        .take(NAMED)
        .map(|file| format!("`{}` ({})", shown(&file.named), file.reason))
        .collect();
    text.push_str(&named.join(", "));
    if let Some(more) = left_out.len().checked_sub(NAMED).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
}

fn shown(path: &str) -> String {
    let text = escape(Path::new(path)).replace('`', "'");
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
#[path = "attachments_tests.rs"]
mod tests;
