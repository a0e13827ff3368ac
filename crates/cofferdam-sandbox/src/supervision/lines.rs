//! Reading what the kernel writes about a process, in a fixed amount of memory.

use std::fs::File;
use std::io::Read;

use super::survey::{Budget, Unfinished};

/// How much of a line's beginning is kept. In `maps` the fields before the name take 85 bytes at most.
const HEAD: usize = 128;
/// How much of its end.
const TAIL: usize = 10;
/// How much is read at a time.
const PIECE: usize = 64 << 10;
/// How much of that is looked at together.
const CHUNK: usize = 512;

/// What is kept of a line. The agent chooses what is between, which may be a name of any length.
pub(super) struct Line {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Line {
    fn new() -> Self {
        Self { head: Vec::with_capacity(HEAD), tail: Vec::with_capacity(2 * TAIL) }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = HEAD - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        let surplus = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..surplus);
    }

    fn clear(&mut self) {
        self.head.clear();
        self.tail.clear();
    }

    /// Its beginning.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The words at its beginning, as far as they are text.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        let words = self.head.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.map_while(|word| std::str::from_utf8(word).ok())
    }

    /// Whether it ends with these, which are few.
    pub(super) fn ends_with(&self, end: &[u8; TAIL]) -> bool {
        self.tail == end
    }
}

/// Calls `each` with every line of a file of `/proc`. A process that ends meanwhile has no more lines.
pub(super) fn each_line(
    path: &str,
    budget: &mut Budget,
    mut each: impl FnMut(&Line, &mut Budget) -> Result<(), Unfinished>,
) -> Result<(), Unfinished> {
    let Ok(mut file) = File::open(path) else { return Ok(()) };
    let (mut piece, mut line) = (vec![0; PIECE], Line::new());
    loop {
        let count = match file.read(&mut piece) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => count,
        };
        budget.read(count)?;
        // Most of a long line is only passed over: no newline is looked for byte by byte where there is none.
        for chunk in piece[..count].chunks(CHUNK) {
            if !chunk.contains(&b'\n') {
                line.push(chunk);
                continue;
            }
            let mut parts = chunk.split(|byte| *byte == b'\n');
            line.push(parts.next().unwrap_or_default());
            for part in parts {
                each(&line, budget)?;
                line.clear();
                line.push(part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        std::fs::write(&path, text).unwrap();
        let mut found = Vec::new();
        let keep = |line: &Line, _: &mut Budget| {
            found.push((line.head.clone(), line.tail.clone()));
            Ok(())
        };
        each_line(path.to_str().unwrap(), &mut Budget::of_a_look(), keep).unwrap();
        found
    }

    #[test]
    fn of_a_line_its_beginning_and_its_end_are_kept_however_long_it_is() {
        let long = [b"begin ".as_slice(), &[b'x'; 3 * PIECE], b" (deleted)\nshort\n\n"].concat();
        let found = lines_of(&long);
        assert_eq!(found.len(), 3);
        assert!(found[0].0.starts_with(b"begin xxx") && found[0].0.len() == HEAD);
        assert_eq!(found[0].1, b" (deleted)");
        assert_eq!(found[1], (b"short".to_vec(), b"short".to_vec()));
        assert_eq!(found[2], (Vec::new(), Vec::new()));
    }

    #[test]
    fn lines_that_are_cut_anywhere_are_read_alike() {
        let lines: Vec<Vec<u8>> =
            (0..2_000).map(|n| format!("{n} {}", "y".repeat(n % 90)).into_bytes()).collect();
        let mut text = lines.join(b"\n".as_slice());
        text.push(b'\n');
        let found = lines_of(&text);
        assert_eq!(found.into_iter().map(|(head, _)| head).collect::<Vec<_>>(), lines);
    }

    #[test]
    fn a_file_that_is_too_long_is_not_read_to_its_end() {
        let mut budget = Budget::of_a_look();
        // Most of it is used up already.
        while budget.read(8 << 20).is_ok() {}
        let endless = each_line("/dev/zero", &mut budget, |_, _| Ok(()));
        assert_eq!(endless, Err(Unfinished));
    }
}
