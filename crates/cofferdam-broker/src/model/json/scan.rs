//! The reader itself.

use super::fault::Fault;
use super::letters::{grammar, plain};
use super::names::Names;
use super::out::Out;
use super::text::{Kept, Short};
use super::window::{Source, Window};

/// How deep lists and objects are read; as deep as serde_json reads them. Each level is a call of a function here.
const DEEPEST: usize = 127;
/// The attack: millions of tiny values, which take their time here and at the vendor. Each is a token at least, and no
/// model reads so many.
const MOST_VALUES: usize = 1 << 20;
/// The longest number. None of a computer's own numbers has as many digits.
const LONGEST_NUMBER: usize = 1024;
/// The longest name of a field. It is kept whole while its field is read.
const LONGEST_NAME: usize = 64 << 10;
/// What is kept of a text. A model's name has 200 letters at most, and nothing else that is looked at has more.
const KEPT: usize = 256;

/// Reads a request and writes it again.
pub(crate) struct Scanner<'a> {
    window: Window<'a>,
    out: Out,
    depth: usize,
    values: usize,
    names: Names,
    name: Kept,
    text: Kept,
    number: Vec<u8>,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    Object,
    List,
    Other,
}

/// What a value was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Null,
    Bool(bool),
    /// A number that is whole, not negative, and not too large.
    Count(u64),
    Number,
    /// Its beginning is [`Scanner::text`], until the next value is read.
    Text,
    List {
        is_empty: bool,
    },
    Object,
}

/// Whether what was read is forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Yes,
    No,
}

impl<'a> Scanner<'a> {
    /// Reads this, of which there may be so many bytes, and writes it there.
    pub(crate) fn new(source: Source<'a>, limit: u64, out: Out) -> Self {
        Self {
            window: Window::new(source, limit),
            out,
            depth: 0,
            values: 0,
            names: Names::default(),
            name: Kept::new(LONGEST_NAME),
            text: Kept::new(KEPT),
            number: Vec::new(),
        }
    }

    /// What comes next. Anything that is no value is found when it is read.
    pub(crate) fn ahead(&mut self) -> Result<Ahead, Fault> {
        Ok(match self.token()? {
            Some(b'{') => Ahead::Object,
            Some(b'[') => Ahead::List,
            _ => Ahead::Other,
        })
    }

    /// How many bytes have passed.
    pub(crate) fn position(&self) -> u64 {
        self.window.position()
    }

    /// The name of the field whose value comes next.
    pub(crate) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The same, if it is short.
    pub(crate) fn short_name(&self) -> Short {
        Short::new(&self.name)
    }

    /// The beginning of the text that was read last, and its length.
    pub(crate) fn text(&self) -> (&str, usize) {
        (self.text.as_str(), self.text.len())
    }

    /// The text that was read last, if it is short.
    pub(crate) fn short(&self) -> Short {
        Short::new(&self.text)
    }

    /// Reads any value.
    pub(crate) fn value(&mut self) -> Result<Shape, Fault> {
        match self.token()? {
            Some(b'{') => {
                self.object(|scanner| scanner.value().map(|_| Keep::Yes))?;
                Ok(Shape::Object)
            }
            Some(b'[') => {
                let mut is_empty = true;
                self.list(|scanner| {
                    is_empty = false;
                    scanner.value().map(|_| Keep::Yes)
                })?;
                Ok(Shape::List { is_empty })
            }
            Some(byte) => {
                self.count_value()?;
                self.scalar(byte)
            }
            None => Err(self.syntax("it ends too early")),
        }
    }

    /// Reads any value, and forwards nothing of it.
    pub(crate) fn skip(&mut self) -> Result<Shape, Fault> {
        self.quietly(Self::value)
    }

    /// Reads something, and forwards nothing of it.
    pub(crate) fn quietly<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let before = self.out.mute(true);
        let found = read(self);
        self.out.mute(before);
        found
    }

    /// Reads a value of a few bytes, and keeps what would be written.
    pub(crate) fn apart(&mut self) -> Result<(Shape, Vec<u8>), Fault> {
        self.out.begin_apart();
        let shape = self.value()?;
        Ok((shape, self.out.take_apart()))
    }

    /// Writes something that was not read.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.out.push(bytes)
    }

    /// Forgets the last bytes that were written.
    pub(crate) fn unwrite(&mut self, bytes: usize) {
        self.out.truncate(self.out.len().saturating_sub(bytes));
    }

    /// Reads a list. `each` reads one of its values.
    pub(crate) fn list(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<Keep, Fault>,
    ) -> Result<(), Fault> {
        self.enter(b"[")?;
        let mut is_first = true;
        if self.token()? != Some(b']') {
            loop {
                let before = self.out.len();
                if !is_first {
                    self.out.push(b",")?;
                }
                match each(self)? {
                    Keep::Yes => is_first = false,
                    Keep::No => self.out.truncate(before),
                }
                if !self.goes_on(b']')? {
                    break;
                }
            }
        }
        self.leave(b"]")
    }

    /// Reads an object. `each` reads the value of the field that [`Self::name`] names.
    pub(crate) fn object(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<Keep, Fault>,
    ) -> Result<(), Fault> {
        self.enter(b"{")?;
        let names = self.names.open();
        let mut is_first = true;
        if self.token()? != Some(b'}') {
            loop {
                let before = self.out.len();
                if !is_first {
                    self.out.push(b",")?;
                }
                self.field_name(names)?;
                match each(self)? {
                    Keep::Yes => is_first = false,
                    Keep::No => self.out.truncate(before),
                }
                if !self.goes_on(b'}')? {
                    break;
                }
            }
        }
        self.names.close(names)?;
        self.leave(b"}")
    }

    /// Nothing may follow the value.
    pub(crate) fn finish(mut self) -> Result<Out, Fault> {
        match self.token()? {
            None => Ok(self.out),
            Some(_) => Err(self.syntax("something follows its end")),
        }
    }

    fn field_name(&mut self, names: usize) -> Result<(), Fault> {
        self.take(b'"', "a field's name is missing")?;
        self.string(Of::Name)?;
        if !self.name.is_whole() {
            return Err(Fault::Beyond("the name of a field is longer than 64 KiB"));
        }
        self.names.add(names, self.name.as_str().as_bytes())?;
        self.take(b':', "the colon after a field's name is missing")?;
        self.out.push(b":")
    }

    fn enter(&mut self, bracket: &[u8]) -> Result<(), Fault> {
        self.count_value()?;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Fault::Beyond("its lists and objects are nested more than 127 deep"));
        }
        self.window.pass(1);
        self.out.push(bracket)
    }

    fn leave(&mut self, bracket: &[u8]) -> Result<(), Fault> {
        self.depth -= 1;
        self.window.pass(1);
        self.out.push(bracket)
    }

    /// Whether another element follows the one that was read.
    fn goes_on(&mut self, end: u8) -> Result<bool, Fault> {
        match self.token()? {
            Some(b',') => {
                self.window.pass(1);
                Ok(true)
            }
            Some(byte) if byte == end => Ok(false),
            _ => Err(self.syntax("a comma or a bracket is missing")),
        }
    }

    fn count_value(&mut self) -> Result<(), Fault> {
        self.values += 1;
        if self.values > MOST_VALUES { Err(Fault::Beyond("it has more than 1048576 values")) } else { Ok(()) }
    }

    fn scalar(&mut self, first: u8) -> Result<Shape, Fault> {
        match first {
            b'"' => {
                self.window.pass(1);
                self.string(Of::Text)?;
                Ok(Shape::Text)
            }
            b't' => self.word(b"true").map(|()| Shape::Bool(true)),
            b'f' => self.word(b"false").map(|()| Shape::Bool(false)),
            b'n' => self.word(b"null").map(|()| Shape::Null),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.syntax("a value is missing")),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Fault> {
        for &letter in word {
            if self.window.peek(&mut self.out)? != Some(letter) {
                return Err(self.syntax("a value is missing"));
            }
            self.window.pass(1);
        }
        self.out.push(word)
    }

    /// Numbers are forwarded as they are written: no reading of ours could change what they say.
    fn number(&mut self) -> Result<Shape, Fault> {
        self.number.clear();
        while let Some(byte @ (b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) =
            self.window.peek(&mut self.out)?
        {
            if self.number.len() == LONGEST_NUMBER {
                return Err(Fault::Beyond("a number has more than 1024 digits"));
            }
            self.number.push(byte);
            self.window.pass(1);
        }
        let Some(is_whole) = grammar(&self.number) else { return Err(self.syntax("a number is malformed")) };
        let text = std::str::from_utf8(&self.number).unwrap_or_default();
        let count = if is_whole { text.parse().ok() } else { None };
        // What others would take for infinite, or refuse, is refused here.
        if count.is_none() && !text.parse().is_ok_and(f64::is_finite) {
            return Err(self.syntax("a number is too large"));
        }
        self.out.push(&self.number)?;
        Ok(count.map_or(Shape::Number, Shape::Count))
    }

    /// Reads the rest of a text whose first quote was read, and writes all of it.
    fn string(&mut self, of: Of) -> Result<(), Fault> {
        self.out.push(b"\"")?;
        match of {
            Of::Name => self.name.clear(),
            Of::Text => self.text.clear(),
        }
        loop {
            let seen = self.window.seen(&mut self.out)?;
            let run = plain(seen);
            let next = seen.get(run).copied();
            let is_over = seen.is_empty();
            self.out.push(&seen[..run])?;
            match of {
                Of::Name => self.name.add(&seen[..run]),
                Of::Text => self.text.add(&seen[..run]),
            }
            self.window.pass(run);
            match next {
                Some(b'"') => {
                    self.window.pass(1);
                    return self.out.push(b"\"");
                }
                Some(b'\\') => {
                    self.window.pass(1);
                    let letter = self.escape()?;
                    self.letter(letter, of)?;
                }
                Some(_) => return Err(self.syntax("a text has a control character")),
                None if is_over => return Err(self.syntax("it ends too early")),
                None => {}
            }
        }
    }

    /// Writes a letter that was escaped, in the one spelling that it has.
    fn letter(&mut self, letter: char, of: Of) -> Result<(), Fault> {
        let mut bytes = [0; 4];
        let bytes = letter.encode_utf8(&mut bytes).as_bytes();
        match of {
            Of::Name => self.name.add(bytes),
            Of::Text => self.text.add(bytes),
        }
        match letter {
            '"' => self.out.push(b"\\\""),
            '\\' => self.out.push(b"\\\\"),
            '\u{8}' => self.out.push(b"\\b"),
            '\t' => self.out.push(b"\\t"),
            '\n' => self.out.push(b"\\n"),
            '\u{c}' => self.out.push(b"\\f"),
            '\r' => self.out.push(b"\\r"),
            ..' ' => self.out.push(format!("\\u{:04x}", u32::from(letter)).as_bytes()),
            _ => self.out.push(bytes),
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let byte = self.window.peek(&mut self.out)?;
        self.window.pass(usize::from(byte.is_some()));
        Ok(match byte {
            Some(letter @ (b'"' | b'\\' | b'/')) => char::from(letter),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.code_point(),
            _ => return Err(self.syntax("a text has an unknown escape")),
        })
    }

    fn code_point(&mut self) -> Result<char, Fault> {
        let first = self.four_digits()?;
        let point = if (0xd800..0xdc00).contains(&first) {
            for expected in *b"\\u" {
                if self.window.peek(&mut self.out)? != Some(expected) {
                    return Err(self.syntax("half of a letter is missing"));
                }
                self.window.pass(1);
            }
            let second = self.four_digits()?;
            if !(0xdc00..0xe000).contains(&second) {
                return Err(self.syntax("half of a letter is missing"));
            }
            0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        } else {
            first
        };
        char::from_u32(point).ok_or_else(|| self.syntax("half of a letter is missing"))
    }

    fn four_digits(&mut self) -> Result<u32, Fault> {
        let mut number = 0;
        for _ in 0..4 {
            let byte = self.window.peek(&mut self.out)?;
            let digit = byte.and_then(|byte| char::from(byte).to_digit(16));
            number = number * 16 + digit.ok_or_else(|| self.syntax("an escape is malformed"))?;
            self.window.pass(1);
        }
        Ok(number)
    }

    /// The first byte of what comes next, which is not passed.
    fn token(&mut self) -> Result<Option<u8>, Fault> {
        loop {
            let seen = self.window.seen(&mut self.out)?;
            let blank = seen.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\t' | b'\r')).count();
            let (next, is_over) = (seen.get(blank).copied(), seen.is_empty());
            self.window.pass(blank);
            if next.is_some() || is_over {
                return Ok(next);
            }
        }
    }

    fn take(&mut self, expected: u8, otherwise: &'static str) -> Result<(), Fault> {
        if self.token()? != Some(expected) {
            return Err(self.syntax(otherwise));
        }
        self.window.pass(1);
        Ok(())
    }

    fn syntax(&self, what: &'static str) -> Fault {
        Fault::Syntax { what, at: self.position() }
    }
}

/// Which text is read.
#[derive(Clone, Copy)]
enum Of {
    Name,
    Text,
}
