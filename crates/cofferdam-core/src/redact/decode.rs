//! Escapes: one written character or byte in the place of another.

/// What an escape stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    bytes: [u8; 4],
    count: usize,
    /// How many bytes it is written with.
    pub(super) width: usize,
}

impl Unit {
    /// The bytes that it stands for.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.count]
    }

    fn byte(byte: u8, width: usize) -> Self {
        Self { bytes: [byte, 0, 0, 0], count: 1, width }
    }

    fn nothing(width: usize) -> Self {
        Self { bytes: [0; 4], count: 0, width }
    }

    fn character(code: u32, width: usize) -> Self {
        let mut bytes = [0; 4];
        let count = char::from_u32(code).map_or(0, |character| character.encode_utf8(&mut bytes).len());
        Self { bytes, count, width }
    }
}

/// Whether an escape may begin with this byte.
#[inline]
pub(super) fn may_begin(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&')
}

/// Whether more may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// This is all.
    Here,
    /// More may come.
    Open,
}

/// Reads the escape at the beginning of `rest`, which [`may_begin`] one. What is none is itself. `None`: it
/// depends on what follows.
pub(super) fn decode(rest: &[u8], end: End) -> Option<Unit> {
    let reader = Reader { rest, end };
    let read = match rest[0] {
        b'%' => reader.percent(),
        b'&' => reader.entity(),
        _ => reader.backslash(),
    };
    match read {
        Ok(unit) => Some(unit),
        Err(Unread::NoEscape) => Some(Unit::byte(rest[0], 1)),
        Err(Unread::Short) => None,
    }
}

/// All of the bytes with their escapes read.
pub(super) fn decode_all(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(&byte) = rest.first() {
        match may_begin(byte).then(|| decode(rest, End::Here)).flatten() {
            Some(unit) => {
                decoded.extend_from_slice(unit.bytes());
                rest = &rest[unit.width..];
            }
            None => {
                decoded.push(byte);
                rest = &rest[1..];
            }
        }
    }
    decoded
}

/// Why nothing was read.
enum Unread {
    NoEscape,
    Short,
}

struct Reader<'a> {
    rest: &'a [u8],
    end: End,
}

/// More backslashes than this in a row are not the work of nested quoting.
const MOST_BACKSLASHES: usize = 8;

impl Reader<'_> {
    fn at(&self, index: usize) -> Result<u8, Unread> {
        match (self.rest.get(index), self.end) {
            (Some(&byte), _) => Ok(byte),
            (None, End::Here) => Err(Unread::NoEscape),
            (None, End::Open) => Err(Unread::Short),
        }
    }

    /// `%41`, and `%2541`: encoded twice.
    fn percent(&self) -> Result<Unit, Unread> {
        let byte = self.digits(1, 2, 16)?;
        if byte == u32::from(b'%') {
            match self.digits(3, 2, 16) {
                Ok(inner) => return Ok(Unit::byte(inner as u8, 5)),
                Err(Unread::Short) => return Err(Unread::Short),
                Err(Unread::NoEscape) => {}
            }
        }
        Ok(Unit::byte(byte as u8, 3))
    }

    /// `\x41`, `\u0041`, `\u{41}`, `\101`, `\n`, `\"`, with any number of backslashes: text in JSON in JSON.
    fn backslash(&self) -> Result<Unit, Unread> {
        let mut slashes = 1;
        while self.at(slashes)? == b'\\' {
            slashes += 1;
            if slashes > MOST_BACKSLASHES {
                return Ok(Unit::nothing(1));
            }
        }
        let read = match self.at(slashes)? {
            b'x' => self.digits(slashes + 1, 2, 16).map(|byte| Unit::byte(byte as u8, slashes + 3)),
            b'u' => self.unicode(slashes + 1),
            b'0'..=b'3' => self.digits(slashes, 3, 8).map(|byte| Unit::byte(byte as u8, slashes + 3)),
            b'n' | b'r' | b't' => Ok(Unit::nothing(slashes + 1)),
            _ => Err(Unread::NoEscape),
        };
        match read {
            Err(Unread::NoEscape) => Ok(Unit::nothing(slashes)),
            read => read,
        }
    }

    fn unicode(&self, from: usize) -> Result<Unit, Unread> {
        if self.at(from)? != b'{' {
            return self.digits(from, 4, 16).map(|code| Unit::character(code, from + 4));
        }
        let (code, width) = self.number(from + 1, 16, b'}')?;
        Ok(Unit::character(code, from + 1 + width))
    }

    /// `&#65;`, `&#x41;`, `&amp;`.
    fn entity(&self) -> Result<Unit, Unread> {
        if self.at(1)? != b'#' {
            return self.named_entity();
        }
        let (from, base) = if self.at(2)? | 0x20 == b'x' { (3, 16) } else { (2, 10) };
        let (code, width) = self.number(from, base, b';')?;
        Ok(Unit::character(code, from + width))
    }

    fn named_entity(&self) -> Result<Unit, Unread> {
        const NAMED: [(&[u8], u8); 5] =
            [(b"&amp;", b'&'), (b"&lt;", b'<'), (b"&gt;", b'>'), (b"&quot;", b'"'), (b"&apos;", b'\'')];
        for (name, byte) in NAMED {
            let common = name.len().min(self.rest.len());
            if self.rest[..common] == name[..common] {
                self.at(name.len() - 1)?;
                return Ok(Unit::byte(byte, name.len()));
            }
        }
        Err(Unread::NoEscape)
    }

    /// A number of exactly `count` digits.
    fn digits(&self, from: usize, count: usize, base: u32) -> Result<u32, Unread> {
        (from..from + count).try_fold(0, |number, index| {
            let digit = char::from(self.at(index)?).to_digit(base).ok_or(Unread::NoEscape)?;
            Ok(number * base + digit)
        })
    }

    /// A number of up to eight digits that `stop` ends, and its width with that.
    fn number(&self, from: usize, base: u32, stop: u8) -> Result<(u32, usize), Unread> {
        let mut number: u32 = 0;
        for width in 0..=8 {
            let byte = self.at(from + width)?;
            if byte == stop && width > 0 {
                return Ok((number, width + 1));
            }
            let digit = char::from(byte).to_digit(base).ok_or(Unread::NoEscape)?;
            number = number.saturating_mul(base).saturating_add(digit);
        }
        Err(Unread::NoEscape)
    }
}
