//! Binary hunks of a patch. Git compresses them and writes them in base85, so a secret in them is found only by
//! undoing both.

use std::io::{self, BufRead, Read, Write};
use std::ops::Range;

use cofferdam_core::{RedactedStream, Redactor};
use flate2::write::ZlibDecoder;

/// No line of a binary hunk is longer: its length, and 13 groups.
const LONGEST_LINE: u64 = 67;

const BASE85: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Where the binary hunks are that have a secret in them, or that cannot be read.
pub(super) fn hunks_with_secrets(
    mut patch: impl BufRead,
    redactor: &Redactor,
) -> io::Result<Vec<Range<u64>>> {
    let mut found = Vec::new();
    let mut open: Option<Hunk> = None;
    let mut line = Vec::new();
    let (mut position, mut is_start) = (0, true);
    while (&mut patch).take(LONGEST_LINE).read_until(b'\n', &mut line)? > 0 {
        let start = position;
        position += line.len() as u64;
        let is_first_part = std::mem::replace(&mut is_start, line.ends_with(b"\n"));
        open = match open.take() {
            // Every line of a text hunk begins with its mark, and no header with these words.
            None if is_first_part && line.starts_with(b"literal ") => {
                Some(Hunk::new(start, Form::Whole, redactor))
            }
            None if is_first_part && line.starts_with(b"delta ") => {
                Some(Hunk::new(start, Form::Delta(Delta::default()), redactor))
            }
            None => None,
            Some(hunk) if line == b"\n" => {
                let start = hunk.start;
                found.extend(hunk.has_secret().then_some(start..position));
                None
            }
            Some(mut hunk) => {
                hunk.read(&line);
                Some(hunk)
            }
        };
        line.clear();
    }
    // One that does not end was not written by git.
    found.extend(open.map(|hunk| hunk.start..position));
    Ok(found)
}

struct Hunk {
    start: u64,
    content: ZlibDecoder<Content>,
    is_readable: bool,
}

impl Hunk {
    fn new(start: u64, form: Form, redactor: &Redactor) -> Self {
        let content = Content { form, stream: redactor.patch_stream() };
        Self { start, content: ZlibDecoder::new(content), is_readable: true }
    }

    fn read(&mut self, line: &[u8]) {
        let read = decode_line(line).map(|bytes| self.content.write_all(&bytes).is_ok());
        self.is_readable &= read.unwrap_or(false);
    }

    /// What cannot be read is not known to be free of secrets.
    fn has_secret(self) -> bool {
        let Ok(mut content) = self.content.finish() else { return true };
        let _ = content.stream.finish();
        !self.is_readable || content.stream.has_redacted()
    }
}

/// What was compressed, as it comes out.
struct Content {
    form: Form,
    stream: RedactedStream,
}

enum Form {
    Whole,
    Delta(Delta),
}

impl Write for Content {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.form {
            Form::Whole => drop(self.stream.push(bytes)),
            Form::Delta(delta) => drop(self.stream.push(&delta.inserted(bytes))),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads git's delta: two sizes, then commands that copy from the old file or insert what is new. What is
/// inserted comes in pieces of at most 127 bytes, which may cut a secret.
#[derive(Default)]
struct Delta {
    sizes_read: u8,
    inserting: u8,
    skipping: u32,
}

impl Delta {
    /// What these bytes of the delta insert.
    fn inserted(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut inserted = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if self.sizes_read < 2 {
                self.sizes_read += u8::from(byte & 0x80 == 0);
            } else if self.skipping > 0 {
                self.skipping -= 1;
            } else if self.inserting > 0 {
                self.inserting -= 1;
                inserted.push(byte);
            } else if byte & 0x80 == 0 {
                self.inserting = byte;
            } else {
                // One byte follows for each bit. What was copied stands between what was inserted.
                self.skipping = (byte & 0x7f).count_ones();
                inserted.push(0xff);
            }
        }
        inserted
    }
}

/// A line of git's base85: a letter for how many bytes it has, and five characters for each four of them.
fn decode_line(line: &[u8]) -> Option<Vec<u8>> {
    let (&length, groups) = line.strip_suffix(b"\n")?.split_first()?;
    let length = match length {
        b'A'..=b'Z' => length - b'A' + 1,
        b'a'..=b'z' => length - b'a' + 27,
        _ => return None,
    };
    let mut bytes = Vec::with_capacity(groups.len());
    for group in groups.chunks(5).filter(|group| group.len() == 5) {
        let word = group.iter().try_fold(0_u32, |word, character| {
            let digit = BASE85.iter().position(|one| one == character)?;
            word.checked_mul(85)?.checked_add(u32::try_from(digit).ok()?)
        });
        bytes.extend_from_slice(&word?.to_be_bytes());
    }
    (bytes.len() >= usize::from(length)).then(|| {
        bytes.truncate(usize::from(length));
        bytes
    })
}
