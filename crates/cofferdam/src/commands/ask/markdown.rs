//! Markdown as it comes, character by character, for a terminal: headings, lists, code and bold text. What it does not know
//! stays as it was written.

const BOLD: &str = "\u{1b}[1m";
const CODE: &str = "\u{1b}[36m";
const PLAIN: &str = "\u{1b}[0m";
const FENCE: &str = "```";

/// Turns Markdown into text for a terminal. The text was cleaned before: an escape sequence in it would be the model's.
#[derive(Debug)]
pub(super) struct Markdown {
    /// The beginning of a line, while it is not known what kind of line it is; `None` behind it.
    start: Option<String>,
    is_in_block: bool,
    is_bold: bool,
    is_code: bool,
    /// A star that may be the first of two.
    has_star: bool,
    /// Whether the line has a style that ends with it.
    is_styled: bool,
    out: String,
}

impl Default for Markdown {
    fn default() -> Self {
        Self {
            start: Some(String::new()),
            is_in_block: false,
            is_bold: false,
            is_code: false,
            has_star: false,
            is_styled: false,
            out: String::new(),
        }
    }
}

impl Markdown {
    /// Takes more text, and returns what can be shown.
    pub(super) fn push(&mut self, text: &str) -> String {
        text.chars().for_each(|c| self.take(c));
        std::mem::take(&mut self.out)
    }

    /// Returns what was held back at the end of a text, and is ready for another one.
    pub(super) fn end(&mut self) -> String {
        self.begin_line();
        self.end_line();
        std::mem::take(self).out
    }

    fn take(&mut self, c: char) {
        if c == '\n' {
            if !self.begin_line() {
                self.end_line();
                self.out.push('\n');
            }
            self.start = Some(String::new());
            return;
        }
        match &mut self.start {
            None => self.inline(c),
            Some(start) => {
                start.push(c);
                if !self.is_undecided() {
                    self.begin_line();
                }
            }
        }
    }

    /// Whether more of the line has to come before it is known what kind of line it is.
    fn is_undecided(&self) -> bool {
        let start = self.start.as_deref().unwrap_or_default().trim_start();
        let may_be_fence = FENCE.starts_with(start) || start.starts_with(FENCE);
        let may_be_marked = matches!(start, "-" | "*" | "+") || start.bytes().all(|byte| byte == b'#');
        may_be_fence || (!self.is_in_block && may_be_marked)
    }

    /// Shows the beginning of a line. True if the line is a fence, which is not shown.
    fn begin_line(&mut self) -> bool {
        let Some(start) = self.start.take() else { return false };
        let text = start.trim_start();
        if text.starts_with(FENCE) {
            self.is_in_block = !self.is_in_block;
            return true;
        }
        let (indent, hashes) = (&start[..start.len() - text.len()], text.trim_start_matches('#'));
        if self.is_in_block {
            self.style(CODE);
            self.out.push_str(&start);
        } else if hashes.len() < text.len() && hashes.starts_with(' ') {
            self.style(BOLD);
        } else if matches!(text, "- " | "* " | "+ ") {
            self.out.push_str(indent);
            self.out.push_str("• ");
        } else {
            start.chars().for_each(|c| self.inline(c));
        }
        false
    }

    fn inline(&mut self, c: char) {
        let had_star = std::mem::take(&mut self.has_star);
        match c {
            _ if self.is_in_block => self.out.push(c),
            '*' if !self.is_code && had_star => {
                self.is_bold = !self.is_bold;
                self.style(if self.is_bold { BOLD } else { PLAIN });
            }
            '*' if !self.is_code => self.has_star = true,
            c => {
                if had_star {
                    self.out.push('*');
                }
                if c == '`' {
                    self.is_code = !self.is_code;
                    self.style(if self.is_code { CODE } else { PLAIN });
                } else {
                    self.out.push(c);
                }
            }
        }
    }

    fn style(&mut self, style: &str) {
        self.out.push_str(style);
        self.is_styled = true;
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.has_star) {
            self.out.push('*');
        }
        if std::mem::take(&mut self.is_styled) {
            self.out.push_str(PLAIN);
        }
        (self.is_bold, self.is_code) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut markdown = Markdown::default();
        let out = markdown.push(text) + &markdown.end();
        out.replace(BOLD, "<b>").replace(CODE, "<c>").replace(PLAIN, "<p>")
    }

    #[test]
    fn headings_lists_code_and_bold_text_are_drawn() {
        for (text, drawn) in [
            ("# Title\ntext", "<b>Title<p>\ntext"),
            ("#hashtag", "#hashtag"),
            ("- one\n  * two", "• one\n  • two"),
            ("a **b** `c` d", "a <b>b<p> <c>c<p> d<p>"),
            ("2 * 3 ** 4", "2 * 3 <b> 4<p>"),
            ("`a ** b`", "<c>a ** b<p><p>"),
            ("```sh\nls *\n# x\n```\nend", "<c>ls *<p>\n<c># x<p>\nend"),
            ("-", "-"),
            ("ends with *", "ends with *"),
            ("", ""),
        ] {
            assert_eq!(shown(text), drawn, "{text:?}");
        }
    }

    #[test]
    fn it_does_not_matter_how_the_text_is_cut() {
        let text = "# A\n\n- `x` **y**\n```rust\nlet a = 1;\n```\n> *z* üß";
        let whole = shown(text);
        let mut markdown = Markdown::default();
        let mut pieces: String = text.chars().map(|c| markdown.push(&c.to_string())).collect();
        pieces.push_str(&markdown.end());
        assert_eq!(pieces.replace(BOLD, "<b>").replace(CODE, "<c>").replace(PLAIN, "<p>"), whole);
    }
}
