//! Credentials in addresses: `scheme://user:password@host`.

use std::ops::Range;

/// A longer user name and password are not waited for.
const LONGEST: usize = 1 << 10;

/// Whether an address may be in these bytes at all.
pub(super) fn is_likely_in(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&byte| byte == b':') {
        if rest[at..].starts_with(b"://") {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

/// What is secret of an address: its password; a user name that stands alone or before a password that is none,
/// as with a forge's token. A password that is the user name (`postgres:postgres`) is nobody's secret, and a word
/// of everybody's text.
pub(super) fn secret_of(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (credentials, _) = authority.rsplit_once('@')?;
    match credentials.split_once(':') {
        None => Some(credentials),
        Some((user, "" | "x-oauth-basic")) => Some(user),
        Some((user, password)) => (user != password).then_some(password),
    }
}

/// Reads bytes one by one, and finds credentials.
#[derive(Default)]
pub(super) struct Addresses {
    last: u64,
    open: Option<Authority>,
}

/// What stands between `://` and the path.
struct Authority {
    start: usize,
    is_web: bool,
    has_colon: bool,
    /// The last `@`, and whether a colon stood before it.
    at: Option<(usize, bool)>,
}

impl Addresses {
    /// Reads the byte at `position`. Returns the credentials that end before it.
    #[inline]
    pub(super) fn push(&mut self, byte: u8, position: usize) -> Option<Range<usize>> {
        self.last = self.last << 8 | u64::from(byte);
        if let Some(authority) = &mut self.open {
            match byte {
                b'@' => authority.at = Some((position, authority.has_colon)),
                b':' => authority.has_colon = true,
                _ if ends_authority(byte) || position - authority.start >= LONGEST => return self.finish(),
                _ => {}
            }
            return None;
        }
        if byte == b'/' && self.last & 0xff_ffff == 0x3a_2f2f {
            let start = position + 1;
            self.open = Some(Authority { start, is_web: self.is_web(), has_colon: false, at: None });
        }
        None
    }

    /// The end of the bytes ends an address, too.
    pub(super) fn finish(&mut self) -> Option<Range<usize>> {
        let authority = self.open.take()?;
        let (at, has_colon) = authority.at?;
        // `ssh://git@host` names an account; `https://token@host` is a key.
        ((has_colon || authority.is_web) && at > authority.start).then_some(authority.start..at)
    }

    /// Where credentials could begin that have not ended.
    pub(super) fn earliest(&self) -> Option<usize> {
        self.open.as_ref().map(|authority| authority.start)
    }

    /// Whether `http://` or `https://` was read last.
    fn is_web(&self) -> bool {
        let scheme = (self.last >> 24) | 0x20_2020_2020;
        scheme == u64::from_be_bytes(*b"\0\0\0https")
            || scheme & 0xffff_ffff == u64::from_be_bytes(*b"\0\0\0\0http")
    }
}

fn ends_authority(byte: u8) -> bool {
    byte <= b' ' || matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | 0x7f)
}
