//! Where the tags of a reply are. A reply is Markdown: what stands in a code block or between backticks is quoted,
//! and stays as it is.

use std::ops::Range;

const OPENING: &str = "[send_file:";

/// A tag, and where it is in the reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) range: Range<usize>,
    /// Without the spaces around it; empty if nothing was named.
    pub(super) path: String,
}

/// Every tag outside of code, in order. A tag is closed on its own line; brackets inside are part of the path if they
/// come in pairs.
pub(super) fn find(reply: &str) -> Vec<Tag> {
    let code = code_ranges(reply);
    let lower = reply.to_ascii_lowercase();
    let mut tags = Vec::new();
    let mut from = 0;
    while let Some(at) = lower[from..].find(OPENING).map(|found| from + found) {
        if let Some(quoted) = code.iter().find(|range| range.contains(&at)) {
            from = quoted.end;
            continue;
        }
        let path_at = at + OPENING.len();
        match path_end(&reply[path_at..]) {
            Some(length) => {
                let end = path_at + length;
                tags.push(Tag { range: at..end + 1, path: reply[path_at..end].trim().to_owned() });
                from = end + 1;
            }
            None => from = path_at,
        }
    }
    tags
}

/// The reply without its tags. A line that had nothing else is gone with them.
pub(super) fn strip(reply: &str, tags: &[Tag]) -> String {
    let mut text = String::with_capacity(reply.len());
    let mut at = 0;
    let mut after_dropped = false;
    for line in reply.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let here: Vec<&Tag> = tags.iter().filter(|tag| range.contains(&tag.range.start)).collect();
        if here.is_empty() {
            let surplus =
                after_dropped && line.trim().is_empty() && (text.is_empty() || text.ends_with("\n\n"));
            if !surplus {
                text.push_str(line);
                after_dropped = false;
            }
            continue;
        }
        let rest = without(reply, &range, &here);
        // A list item that was only a file.
        after_dropped = matches!(rest.trim(), "" | "-" | "*" | "+");
        if !after_dropped {
            text.push_str(rest.trim_end());
            text.push('\n');
        }
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text
}

fn without(reply: &str, line: &Range<usize>, tags: &[&Tag]) -> String {
    let mut rest = String::new();
    let mut from = line.start;
    let ends = tags.iter().map(|tag| (tag.range.start, tag.range.end)).chain([(line.end, line.end)]);
    for (start, end) in ends {
        let part = &reply[from..start];
        // Of the spaces on both sides of a tag one is enough.
        let doubled = from > line.start && (rest.is_empty() || rest.ends_with([' ', '\t']));
        rest.push_str(if doubled { part.trim_start_matches([' ', '\t']) } else { part });
        from = end;
    }
    rest
}

/// Where the path of a tag ends, if the tag is closed on this line.
fn path_end(text: &str) -> Option<usize> {
    let line = &text[..text.find(['\n', '\r']).unwrap_or(text.len())];
    let mut depth = 0;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 0 => return Some(at),
            b']' => depth -= 1,
            _ => {}
        }
    }
    // A lone bracket is part of a name, too.
    line.find(']')
}

/// Code blocks between fences, and code between backticks within a paragraph.
fn code_ranges(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut fence: Option<(Fence, usize)> = None;
    let (mut at, mut paragraph) = (0, 0);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        match fence {
            Some((open, opened_at)) => {
                if open.is_closed_by(line) {
                    ranges.push(opened_at..at);
                    (fence, paragraph) = (None, at);
                }
            }
            None => {
                if let Some(open) = Fence::opened_by(line) {
                    inline_code(text, paragraph..start, &mut ranges);
                    fence = Some((open, start));
                } else if line.trim().is_empty() {
                    inline_code(text, paragraph..start, &mut ranges);
                    paragraph = at;
                }
            }
        }
    }
    match fence {
        // One that nobody closed runs to the end.
        Some((_, opened_at)) => ranges.push(opened_at..text.len()),
        None => inline_code(text, paragraph..text.len(), &mut ranges),
    }
    ranges
}

#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let line = line.trim();
        let mark = line.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
        let length = line.chars().take_while(|c| *c == mark).count();
        // Three backticks and more on the same line are code between backticks.
        let is_inline = mark == '`' && line[length..].contains('`');
        (length >= 3 && !is_inline).then_some(Self { mark, length })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }
}

fn inline_code(text: &str, within: Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let runs = backtick_runs(text, within);
    let mut next = 0;
    while let Some(open) = runs.get(next) {
        let close = runs[next + 1..].iter().position(|run| run.len() == open.len());
        match close {
            Some(close) => {
                ranges.push(open.start..runs[next + 1 + close].end);
                next += close + 2;
            }
            None => next += 1,
        }
    }
}

fn backtick_runs(text: &str, within: Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in within.filter(|at| bytes[*at] == b'`') {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}
