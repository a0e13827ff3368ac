//! What a request's head must look like. hyper is lenient where the standard lets it be: it drops a
//! Content-Length beside a Transfer-Encoding, merges equal Content-Lengths and takes a bare line feed for a
//! line's end. A client that means well sends none of that; one that does not is smuggling.

/// What follows a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// This many bytes, and then the next head.
    Length(u64),
    /// Chunks, or a tunnel: no further head is read on this connection.
    Rest,
}

/// Why a head is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeadFault {
    /// Two readings of the request are possible, or it is no request at all.
    #[error("malformed request: {0}")]
    Malformed(&'static str),
    /// More bytes than a head may have.
    #[error("the request's head is too large")]
    TooLarge,
    /// It did not arrive in time.
    #[error("the request's head did not arrive in time")]
    TooSlow,
}

/// Where the head ends, if all of it is there.
pub(super) fn end(bytes: &[u8]) -> Result<Option<usize>, HeadFault> {
    if bytes.starts_with(b"\r\n") || bytes.starts_with(b"\n") {
        return Err(HeadFault::Malformed("it starts with an empty line"));
    }
    let mut line_start = 0;
    while let Some(length) = bytes[line_start..].iter().position(|&b| b == b'\n') {
        let line = &bytes[line_start..line_start + length];
        match line.split_last() {
            Some((b'\r', [])) => return Ok(Some(line_start + length + 1)),
            Some((b'\r', _)) => line_start += length + 1,
            _ => return Err(HeadFault::Malformed("a line ends without a carriage return")),
        }
    }
    Ok(None)
}

/// Checks a whole head, its empty line included.
pub(super) fn check(head: &[u8]) -> Result<Framing, HeadFault> {
    let text = head.strip_suffix(b"\r\n\r\n").ok_or(HeadFault::Malformed("it has no end"))?;
    let mut lines = split_lines(text);
    let request_line = lines.next().unwrap_or_default();
    let is_connect = check_request_line(request_line)?;
    let (mut length, mut chunked, mut hosts) = (None, false, 0);
    for line in lines {
        let (name, value) = check_header(line)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            if length.replace(parse_length(value)?).is_some() {
                return Err(HeadFault::Malformed("several Content-Length headers"));
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(HeadFault::Malformed("a Transfer-Encoding other than chunked"));
            }
            chunked = true;
        } else if name.eq_ignore_ascii_case(b"host") {
            hosts += 1;
        }
    }
    let is_old = request_line.ends_with(b" HTTP/1.0");
    if hosts > 1 || (hosts == 0 && !is_old) {
        return Err(HeadFault::Malformed("there has to be one Host header"));
    }
    match (length, chunked) {
        (Some(_), true) => Err(HeadFault::Malformed("both Content-Length and Transfer-Encoding")),
        (None, true) if is_old => Err(HeadFault::Malformed("Transfer-Encoding in HTTP/1.0")),
        (Some(length), false) if length > 0 && is_connect => Err(HeadFault::Malformed("CONNECT with a body")),
        (None, true) => Ok(Framing::Rest),
        _ if is_connect => Ok(Framing::Rest),
        (length, false) => Ok(Framing::Length(length.unwrap_or(0))),
    }
}

fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Whether it is a CONNECT.
fn check_request_line(line: &[u8]) -> Result<bool, HeadFault> {
    let mut parts = line.split(|&b| b == b' ');
    let (method, target, version) = (parts.next(), parts.next(), parts.next());
    let known_version = matches!(version, Some(b"HTTP/1.1" | b"HTTP/1.0"));
    let method = method.unwrap_or_default();
    let visible = |target: &[u8]| !target.is_empty() && target.iter().all(u8::is_ascii_graphic);
    if !known_version || parts.next().is_some() || !is_token(method) || !target.is_some_and(visible) {
        return Err(HeadFault::Malformed("the request line"));
    }
    Ok(method == b"CONNECT")
}

fn check_header(line: &[u8]) -> Result<(&[u8], &[u8]), HeadFault> {
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        return Err(HeadFault::Malformed("a folded header"));
    }
    let colon =
        line.iter().position(|&b| b == b':').ok_or(HeadFault::Malformed("a header without a colon"))?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if !is_token(name) {
        return Err(HeadFault::Malformed("the name of a header"));
    }
    if value.iter().any(|&b| b.is_ascii_control() && b != b'\t') {
        return Err(HeadFault::Malformed("a control character in a header"));
    }
    Ok((name, value.trim_ascii()))
}

fn is_token(bytes: &[u8]) -> bool {
    let token = |&b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !bytes.is_empty() && bytes.iter().all(token)
}

fn parse_length(value: &[u8]) -> Result<u64, HeadFault> {
    let digits = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    digits.and_then(|text| text.parse().ok()).ok_or(HeadFault::Malformed("the Content-Length"))
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
