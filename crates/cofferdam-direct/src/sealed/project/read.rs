//! Reading one file.

use serde::{Deserialize, Serialize};

use super::{Links, Project, below, unreadable};

/// A larger file is read in part.
const MOST_BYTES: u64 = 64 << 20;
/// Lines that are shown where the model does not say how many.
const LINES: usize = 2000;
/// A line that is longer is cut.
const LINE_CHARS: usize = 2000;
/// What is shown of a file at once.
const MOST_CHARS: usize = 100_000;

/// Which part of which file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadJob {
    /// The file.
    pub path: String,
    /// The first line, from 1.
    pub offset: Option<usize>,
    /// How many lines.
    pub limit: Option<usize>,
}

/// The lines with their numbers.
pub(in crate::sealed) fn read(project: &Project, job: &ReadJob) -> Result<String, String> {
    let named = &job.path;
    let (bytes, is_cut) = project
        .bytes(&below(named)?, Links::Inside, MOST_BYTES)
        .map_err(|error| unreadable(named, &error))?;
    if bytes[..bytes.len().min(8192)].contains(&0) {
        return Err(format!("{named} is not a text file"));
    }
    let text = String::from_utf8_lossy(&bytes);
    let first = job.offset.unwrap_or(1).max(1);
    let wanted = job.limit.unwrap_or(LINES);
    let (mut shown, mut count, mut total) = (String::new(), 0, 0);
    for (number, line) in text.lines().enumerate() {
        total = number + 1;
        if total < first || count >= wanted || shown.len() >= MOST_CHARS {
            continue;
        }
        let cut = line.char_indices().nth(LINE_CHARS).map_or(line.len(), |(at, _)| at);
        shown.push_str(&format!("{total:>6}\t{}\n", &line[..cut]));
        count += 1;
    }
    match (count, total) {
        (_, 0) => Ok(format!("{named} is empty")),
        (0, _) => Err(format!("{named} has {total} lines, and none from line {first} on")),
        _ if first + count <= total || is_cut => {
            let last = first + count - 1;
            Ok(format!(
                "{shown}(lines {first} to {last} of {total}; the next one is at \"offset\": {})\n",
                last + 1
            ))
        }
        _ => Ok(shown),
    }
}
