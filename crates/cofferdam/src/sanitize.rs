//! Makes hostile text safe for a terminal.
//!
//! What an agent prints, the names of its files and the words of a git server reach the caller's terminal.
//! Escape sequences there can forge output, rewrite the clipboard (OSC 52), set the title or make the
//! terminal answer as if the caller had typed; direction marks can show a patch in another order than it
//! will be applied in.

use std::borrow::Cow;
use std::io::{self, Write};

/// Characters that reorder the text around them or are invisible.
fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// One clean line: escape sequences are dropped whole, other control characters become spaces, and
/// deceptive characters are dropped.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_csi(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
            c if c.is_control() => {
                if !out.is_empty() && !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c if is_deceptive(c) => {}
            c => out.push(c),
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// A clean line of at most `most` characters.
pub(crate) fn short_line(text: &str, most: usize) -> String {
    let clean = line(text);
    if clean.chars().count() <= most {
        return clean;
    }
    clean.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars<'_>) {
    match chars.next() {
        Some('[') => skip_csi(chars),
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(chars),
        // Intermediate bytes, as in `ESC ( B`, are followed by one final byte.
        Some(' '..='/') => {
            while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            chars.next();
        }
        _ => {}
    }
}

fn skip_csi(chars: &mut Chars<'_>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

/// OSC, DCS and their like run up to BEL or ST. One that never ends swallows the rest of the line, as a
/// terminal would.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next() {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// Writes bytes so that a person sees every one of them and the terminal obeys none: control and deceptive
/// characters are shown as `\x1b` or `\u{202e}`; newlines and tabs stay.
pub(crate) fn write_escaped(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    for chunk in bytes.utf8_chunks() {
        out.write_all(escape(chunk.valid()).as_bytes())?;
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

fn escape(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_deceptive(c);
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if harmful(c) && u32::from(c) < 0x100 => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if harmful(c) => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_loses_escape_sequences_whole() {
        for (hostile, clean) in [
            ("\x1b[31mred\x1b[0m", "red"),
            ("a\x1b]52;c;ZXZpbA==\x07b", "ab"),
            ("a\x1b]0;title\x1b\\b", "ab"),
            ("a\u{9b}2Jb", "ab"),
            ("a\u{9d}0;x\u{9c}b", "ab"),
            ("a\x1b(Bb", "ab"),
            ("a\x1bPq#0\x1b\\b", "ab"),
            ("a\x1b]never ends", "a"),
            ("50%\r100%", "50% 100%"),
            ("col\tcol\u{8}\u{8}", "col col"),
            ("\u{202e}gpj.exe\u{202c}", "gpj.exe"),
            ("end\x1b", "end"),
        ] {
            assert_eq!(line(hostile), clean, "{hostile:?}");
        }
    }

    #[test]
    fn no_input_leaves_a_control_character_in_a_line() {
        let every: String = (0..0x300_u32).filter_map(char::from_u32).collect();
        assert!(!line(&every).contains(|c: char| c.is_control()));
        assert!(!line(&every.chars().rev().collect::<String>()).contains(|c: char| c.is_control()));
    }

    #[test]
    fn a_patch_shows_what_it_hides_and_keeps_its_lines() {
        let mut out = Vec::new();
        write_escaped(&mut out, b"+a\tb\n+\x1b[8mhidden\xff\n+\xe2\x80\xaex\n").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "+a\tb\n+\\x1b[8mhidden\\xff\n+\\u{202e}x\n");
    }

    #[test]
    fn a_short_line_counts_characters() {
        assert_eq!(short_line("äöüß", 3), "äö…");
        assert_eq!(short_line("äöü", 3), "äöü");
    }
}
