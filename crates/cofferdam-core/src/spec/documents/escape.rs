//! Text that agents and people wrote, within Markdown of ours. It cannot become a heading, a list, a table, HTML or an
//! image, and the only links are addresses that it shows itself.

/// The most characters of one text. What is longer is cut.
const LONGEST_TEXT: usize = 20_000;

/// A text on one line.
pub(super) fn line(text: &str) -> String {
    let words = text.split_whitespace().map(word);
    begin(&cut(words.collect::<Vec<_>>().join(" ")))
}

/// A text in a cell of a table, where line breaks would end the row.
pub(super) fn cell(text: &str) -> String {
    match text.trim().is_empty() {
        true => "–".to_owned(),
        false => line(text),
    }
}

/// A text of several paragraphs.
pub(super) fn paragraphs(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for text in text.lines() {
        let text = line(text);
        // One empty line is as good as several.
        if !text.is_empty() || lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push(text);
        }
    }
    cut(lines.join("\n").trim().to_owned())
}

fn cut(text: String) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        // Not within an escape, and not within an address.
        Some((end, _)) => format!("{} …", text[..end].rsplit_once(' ').map_or("", |(whole, _)| whole)),
        None => text,
    }
}

fn word(word: &str) -> String {
    if is_address(word) {
        return format!("<{word}>");
    }
    let has_scheme = word.contains("://") || is_scheme(word);
    let mut escaped = String::with_capacity(word.len() + 8);
    for c in word.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '#' | '&' | '!' | '$' => {
                escaped.push('\\');
                escaped.push(c);
            }
            // Some readers make links of these by themselves.
            '@' => escaped.push_str("&#64;"),
            ':' if has_scheme => escaped.push_str("&#58;"),
            // They hide text, or turn it around.
            c if c.is_control() || is_invisible(c) => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Whether a line begins with something that makes a list or a rule of it.
fn begin(line: &str) -> String {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match line[digits..].chars().next() {
        Some('-' | '+' | '=') if digits == 0 => format!("\\{line}"),
        Some('.' | ')') if digits > 0 => format!("{}\\{}", &line[..digits], &line[digits..]),
        _ => line.to_owned(),
    }
}

/// Whether a word is an address that a reader may follow: nothing but the plain characters of one, and nobody's name and
/// password before the host, which make people take one host for another.
fn is_address(word: &str) -> bool {
    let rest = word.strip_prefix("https://").or_else(|| word.strip_prefix("http://"));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._/?=%&+,;:#".contains(c);
    rest.is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_alphanumeric()) && rest.chars().all(is_plain)
    })
}

/// Whether a word begins like an address that is not one of the web.
fn is_scheme(word: &str) -> bool {
    const SCHEMES: [&str; 6] = ["mailto:", "xmpp:", "javascript:", "data:", "file:", "vbscript:"];
    let word = word.to_ascii_lowercase();
    SCHEMES.iter().any(|scheme| word.contains(scheme))
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_in_its_place() {
        for (text, written) in [
            ("plain words, (and) these.", "plain words, (and) these."),
            ("# heading", "\\# heading"),
            ("a | b", "a \\| b"),
            ("- item", "\\- item"),
            ("12. item", "12\\. item"),
            ("1.5 hours", "1\\.5 hours"),
            ("=== rule", "\\=== rule"),
            ("<script>alert(1)</script>", "\\<script\\>alert(1)\\</script\\>"),
            ("![x](https://example.com)", "\\!\\[x\\](https&#58;//example.com)"),
            ("[x](javascript:alert(1))", "\\[x\\](javascript&#58;alert(1))"),
            ("mailto:a@b.example", "mailto&#58;a&#64;b.example"),
            ("see https://example.com/a_b?c=1 for it", "see <https://example.com/a_b?c=1> for it"),
            ("https://github.com@evil.example", "https&#58;//github.com&#64;evil.example"),
            ("ftp://example.com", "ftp&#58;//example.com"),
            ("GET /a:b", "GET /a:b"),
            ("&lt;b&gt;", "\\&lt;b\\&gt;"),
            ("a\u{202e}b\u{7}", "a\u{fffd}b\u{fffd}"),
            ("two\nlines\r\nhere", "two lines here"),
        ] {
            assert_eq!(line(text), written, "{text}");
        }
    }

    #[test]
    fn paragraphs_stay_paragraphs() {
        assert_eq!(paragraphs("\n\n    code\n\n\n## two\n- three\n"), "code\n\n\\#\\# two\n\\- three");
        assert_eq!(cell(" \n"), "–");
        let long = paragraphs(&"word ".repeat(100_000));
        assert!(long.chars().count() <= LONGEST_TEXT + 2 && long.ends_with("word …"), "{}", long.len());
    }
}
