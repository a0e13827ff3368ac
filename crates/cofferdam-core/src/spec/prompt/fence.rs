//! Text of others within Markdown of ours: in a fence that is longer than any in the text, which therefore cannot end it.

/// A fenced block.
pub(super) fn block(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

/// A text on one line, as code.
pub(super) fn inline(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.trim();
    let fence = "`".repeat(longest_run(line) + 1);
    // The spaces keep a backtick at an end of the text apart from the fence.
    let space = if line.starts_with('`') || line.ends_with('`') || line.is_empty() { " " } else { "" };
    format!("{fence}{space}{line}{space}{fence}")
}

fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_fence() {
        for text in ["", "plain", "```\nout", "`````", "a ` b", "`", "end`"] {
            let block = block("text", text);
            let fence = block.lines().last().unwrap();
            assert!(fence.chars().all(|c| c == '`') && fence.len() >= 3);
            assert!(!text.contains(fence), "{block}");
            let inline = inline(text);
            let fence: String = inline.chars().take_while(|c| *c == '`').collect();
            assert!(!text.contains(&fence), "{inline}");
        }
        assert_eq!(inline("a\nb\u{7}"), "`a b`");
    }
}
