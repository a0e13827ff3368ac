//! What the letters of a request are, without a state.

/// How many bytes at the beginning are letters that stand for themselves. Eight at a time: most of a request is text.
pub(super) fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let zero_byte = |word: u64| word.wrapping_sub(ONES) & !word;
    let mut at = 0;
    for chunk in bytes.chunks_exact(8) {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let quote = zero_byte(word ^ (ONES * u64::from(b'"')));
        let backslash = zero_byte(word ^ (ONES * u64::from(b'\\')));
        let special = (control | quote | backslash) & HIGH;
        if special != 0 {
            // What is borrowed from a byte goes to those behind it, so the first one is right.
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = bytes[at..].iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\');
    rest.map_or(bytes.len(), |rest| at + rest)
}

/// Whether this is a number as JSON writes them, and then whether it is whole and has no sign.
pub(super) fn grammar(number: &[u8]) -> Option<bool> {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let unsigned = number.strip_prefix(b"-").unwrap_or(number);
    let whole = digits(unsigned);
    if whole == 0 || (whole > 1 && unsigned[0] == b'0') {
        return None;
    }
    let mut rest = &unsigned[whole..];
    let is_whole = rest.is_empty() && unsigned.len() == number.len();
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = digits(fraction);
        if length == 0 {
            return None;
        }
        rest = &fraction[length..];
    }
    if let Some(exponent) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) {
        let exponent =
            exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let length = digits(exponent);
        if length == 0 {
            return None;
        }
        rest = &exponent[length..];
    }
    rest.is_empty().then_some(is_whole)
}
