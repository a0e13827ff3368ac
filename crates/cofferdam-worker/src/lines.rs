//! Cuts a stream of bytes into lines, and overlong lines into pieces, without keeping more than one
//! piece in memory. Pure: somebody else reads the bytes.

/// A part of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A whole line, without its newline.
    Line(&'a [u8]),
    /// The beginning of a line that is too long; [`Piece::Rest`] follows.
    Beginning(&'a [u8]),
    /// More of that line, and whether it ends here.
    Rest { bytes: &'a [u8], last: bool },
}

/// Cuts one stream.
#[derive(Debug)]
pub(crate) struct Splitter {
    longest: usize,
    /// What came after the last newline. While a rest is being passed on, at most three bytes: the
    /// beginning of a character whose end has not arrived.
    kept: Vec<u8>,
    in_rest: bool,
}

impl Splitter {
    /// A splitter that cuts lines after `longest` bytes, or up to three earlier where that would cut a
    /// character.
    pub(crate) fn new(longest: usize) -> Self {
        Self { longest, kept: Vec::new(), in_rest: false }
    }

    /// Takes the next bytes, and hands over what is complete.
    pub(crate) fn push<E>(
        &mut self,
        mut bytes: &[u8],
        mut deliver: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.extend(&bytes[..end], &mut deliver)?;
            self.end_line(&mut deliver)?;
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes, &mut deliver)
    }

    /// The stream has ended: hands over what has no newline.
    pub(crate) fn finish<E>(&mut self, mut deliver: impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        if self.kept.is_empty() && !self.in_rest { Ok(()) } else { self.end_line(&mut deliver) }
    }

    fn extend<E>(
        &mut self,
        bytes: &[u8],
        deliver: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.kept.extend_from_slice(bytes);
        if !self.in_rest && self.kept.len() > self.longest {
            let cut = character_boundary(&self.kept, self.longest);
            deliver(Piece::Beginning(&self.kept[..cut]))?;
            self.kept.drain(..cut);
            self.in_rest = true;
        }
        while self.in_rest && !self.kept.is_empty() {
            let most = self.kept.len().min(self.longest);
            let cut = character_boundary(&self.kept, most);
            if cut == 0 {
                break;
            }
            deliver(Piece::Rest { bytes: &self.kept[..cut], last: false })?;
            self.kept.drain(..cut);
        }
        Ok(())
    }

    fn end_line<E>(&mut self, deliver: &mut impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        if self.in_rest {
            deliver(Piece::Rest { bytes: &self.kept, last: true })?;
        } else {
            deliver(Piece::Line(&self.kept))?;
        }
        self.in_rest = false;
        self.kept.clear();
        // One long line must not keep its memory until the agent ends.
        self.kept.shrink_to(64 << 10);
        Ok(())
    }
}

/// The last place at or before `at` that is not inside a character. Bytes that are not UTF-8 have no
/// characters, and are cut at `at`.
fn character_boundary(bytes: &[u8], at: usize) -> usize {
    for back in 1..=at.min(3) {
        let length = match bytes[at - back] {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        return if length > back { at - back } else { at };
    }
    at
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
