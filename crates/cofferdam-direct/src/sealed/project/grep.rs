//! Searching files.

use std::path::Path;

use globset::{Glob, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use super::walk::{Next, Walked, shown};
use super::{Links, Project};

/// A larger file is not searched.
const MOST_FILE_BYTES: u64 = 16 << 20;
/// A line that is longer is cut.
const LINE_CHARS: usize = 500;
/// Lines of output where the model does not say how many.
const LINES: usize = 250;
/// All of the output.
const MOST_CHARS: usize = 60_000;
/// What a pattern may become: one such as `(a{1000}){1000}` would take all memory there is.
const PATTERN_BYTES: usize = 10 << 20;

/// What to search for, where, and what to show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrepJob {
    /// A regular expression.
    pub pattern: String,
    /// A file or a folder; the root without one.
    pub path: Option<String>,
    /// Only files whose names fit.
    pub glob: Option<String>,
    /// What to show.
    pub output: GrepOutput,
    /// Whether the case of letters does not matter.
    pub ignore_case: bool,
    /// Lines to show before each match.
    pub before: usize,
    /// And after.
    pub after: usize,
    /// How many lines of output.
    pub limit: Option<usize>,
}

/// What a search shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrepOutput {
    /// The lines.
    Content,
    /// The files that have any.
    #[default]
    FilesWithMatches,
    /// How many each of them has.
    Count,
}

/// Searches.
pub(in crate::sealed) fn grep(project: &Project, job: &GrepJob) -> Result<String, String> {
    let search = Search::of(job)?;
    let start = project.start(job.path.as_deref())?;
    let mut output = Output { text: String::new(), lines: 0, most: job.limit.unwrap_or(LINES) };
    let walked = project.each(&start, |file| search.file(project, file, &mut output))?;
    let is_full = output.is_full();
    let Output { mut text, .. } = output;
    match (is_full, walked) {
        (true, _) => text.push_str("(there is more; use a narrower pattern, or a larger \"head_limit\")\n"),
        (false, Walked::Part) => {
            text.push_str("(the project is too large to be searched whole; name a folder)\n");
        }
        (false, Walked::Whole) if text.is_empty() => text.push_str("No matches found\n"),
        (false, Walked::Whole) => {}
    }
    Ok(text)
}

struct Output {
    text: String,
    lines: usize,
    most: usize,
}

impl Output {
    fn push(&mut self, line: &str) {
        if !self.is_full() {
            self.text.push_str(line);
            self.text.push('\n');
            self.lines += 1;
        }
    }

    fn is_full(&self) -> bool {
        self.lines >= self.most || self.text.len() >= MOST_CHARS
    }
}

struct Search<'a> {
    job: &'a GrepJob,
    pattern: Regex,
    names: Option<GlobMatcher>,
}

impl<'a> Search<'a> {
    fn of(job: &'a GrepJob) -> Result<Self, String> {
        let pattern = RegexBuilder::new(&job.pattern)
            .case_insensitive(job.ignore_case)
            .multi_line(true)
            .size_limit(PATTERN_BYTES)
            .dfa_size_limit(PATTERN_BYTES)
            .build()
            .map_err(|error| format!("the pattern is wrong: {error}"))?;
        let names = job.glob.as_deref().map(Glob::new).transpose();
        let names = names.map_err(|error| format!("\"glob\" is wrong: {error}"))?;
        Ok(Self { job, pattern, names: names.map(|names| names.compile_matcher()) })
    }

    fn file(&self, project: &Project, file: &Path, output: &mut Output) -> Next {
        let fits = |names: &GlobMatcher| {
            names.is_match(file) || file.file_name().is_some_and(|name| names.is_match(name))
        };
        if self.names.as_ref().is_none_or(fits)
            && let Ok((bytes, false)) = project.bytes(file, Links::Never, MOST_FILE_BYTES)
            && !bytes[..bytes.len().min(8192)].contains(&0)
        {
            self.content(&shown(file), &bytes, output);
        }
        if output.is_full() { Next::Stop } else { Next::Go }
    }

    fn content(&self, name: &str, bytes: &[u8], output: &mut Output) {
        let is_match = |line: &&[u8]| self.pattern.is_match(line);
        let lines =
            || bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        match self.job.output {
            GrepOutput::FilesWithMatches => {
                if lines().any(|line| is_match(&line)) {
                    output.push(name);
                }
            }
            GrepOutput::Count => match lines().filter(is_match).count() {
                0 => {}
                count => output.push(&format!("{name}:{count}")),
            },
            GrepOutput::Content => self.lines(name, &lines().collect::<Vec<_>>(), output),
        }
    }

    /// Matches are `name:12:text`, and lines around them `name-11-text`, as of grep.
    fn lines(&self, name: &str, lines: &[&[u8]], output: &mut Output) {
        let mut next = 0;
        for number in 0..lines.len() {
            if output.is_full() || !self.pattern.is_match(lines[number]) {
                continue;
            }
            let first = number.saturating_sub(self.job.before).max(next);
            if first > next && next > 0 && self.job.before + self.job.after > 0 {
                output.push("--");
            }
            let end = number.saturating_add(self.job.after).saturating_add(1).min(lines.len());
            for (around, bytes) in lines.iter().enumerate().take(end).skip(first) {
                let mark = if self.pattern.is_match(bytes) { ':' } else { '-' };
                let line = String::from_utf8_lossy(bytes);
                let cut = line.char_indices().nth(LINE_CHARS).map_or(line.len(), |(at, _)| at);
                output.push(&format!("{name}{mark}{}{mark}{}", around + 1, &line[..cut]));
            }
            next = end.max(next);
        }
    }
}
