//! Names of container images.

use std::net::Ipv6Addr;

use crate::egress::printable;
use crate::text::checked_text;

/// The longest name, without tag and digest. Docker counts without the registry, which is of no use to
/// anybody who has to remember the rule.
const MAX_NAME: usize = 255;
const MAX_TAG: usize = 128;
/// The digests that the engine knows, and how many hexadecimal digits each has.
const DIGESTS: [(&str, usize); 3] = [("sha256", 64), ("sha384", 96), ("sha512", 128)];

checked_text! {
    /// The name of an image that is safe to hand to an engine: `[HOST[:PORT]/]PATH[:TAG][@DIGEST]`, by the grammar
    /// of Docker's references. It never starts with `-`, which a command line would read as an option, and is
    /// never read as an image id.
    ///
    /// It is stricter than Docker in one thing: Docker takes the first part of `openTiger/worker` for a registry
    /// of that name because of its upper case, and would ask the network for it. Here a registry has a dot, a
    /// port, or is `localhost`.
    ImageReference: reference => ImageReferenceError;
}

/// Why a text names no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageReferenceError {
    /// Names of images are in lower case.
    #[error("image `{text}` has upper case in its name; type `{written}`")]
    UpperCase {
        /// What was given.
        text: String,
        /// The same in lower case, which is a name.
        written: String,
    },
    /// An engine would look for an image of this id and never for one of this name.
    #[error(
        "image `{text}` would be taken for an image id; type a name and a tag such as `{}`",
        ImageReference::DEFAULT
    )]
    Id {
        /// What was given.
        text: String,
    },
    /// It does not follow the grammar.
    #[error("image `{text}` is not a reference: {reason}; type a name such as `{}`", ImageReference::DEFAULT)]
    Malformed {
        /// What was given, made printable.
        text: String,
        /// What is wrong.
        reason: &'static str,
    },
}

impl ImageReference {
    /// The image that `cofferdam sandbox build-image` makes.
    pub const DEFAULT: &str = "cofferdam/worker:latest";

    /// The reference with the tag that Docker adds by itself. An engine that finds no image of the name `cafe`
    /// goes on to look for an id that begins so; with a tag it cannot.
    #[must_use]
    pub fn with_tag(&self) -> String {
        match split(&self.0) {
            Parts { tag: None, digest: None, name } => format!("{name}:latest"),
            Parts { .. } => self.0.clone(),
        }
    }
}

impl Default for ImageReference {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

fn reference(text: &str) -> Result<String, ImageReferenceError> {
    let Err(reason) = check(text) else {
        return match is_id(text) {
            true => Err(ImageReferenceError::Id { text: text.to_owned() }),
            false => Ok(text.to_owned()),
        };
    };
    let written = in_lower_case(text);
    if written != text && check(&written).is_ok() && !is_id(&written) {
        return Err(ImageReferenceError::UpperCase { text: text.to_owned(), written });
    }
    Err(ImageReferenceError::Malformed { text: printable(text), reason })
}

/// A reference taken apart, not yet checked.
struct Parts<'a> {
    name: &'a str,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

fn split(text: &str) -> Parts<'_> {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    // A colon before the last slash stands before a registry's port.
    match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => Parts { name, tag: Some(tag), digest },
        _ => Parts { name: rest, tag: None, digest },
    }
}

fn check(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    if text.contains("://") {
        return Err("leave out what stands before `://`, and that too");
    }
    let Parts { name, tag, digest } = split(text);
    check_name(name)?;
    tag.map_or(Ok(()), check_tag)?;
    digest.map_or(Ok(()), check_digest)
}

fn check_name(name: &str) -> Result<(), &'static str> {
    if name.len() > MAX_NAME {
        return Err("its name has more than 255 characters");
    }
    let path = match name.split_once('/') {
        Some((domain, path)) if is_domain(domain) => {
            check_domain(domain)?;
            path
        }
        _ => name,
    };
    match path.split('/').all(is_component) {
        true => Ok(()),
        false => {
            Err("each part of a name is made of lower-case letters and digits, with single `.` or `_`, \
                      `__` or any number of `-` between them")
        }
    }
}

/// Whether the text before the first slash is a registry and no part of the path.
fn is_domain(text: &str) -> bool {
    text == "localhost" || text.contains(['.', ':'])
}

fn check_domain(domain: &str) -> Result<(), &'static str> {
    let (host, port) = match domain.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (domain, None),
    };
    if port.is_some_and(|port| port.parse::<u16>().is_err() || !port.bytes().all(|b| b.is_ascii_digit())) {
        return Err("the registry's port is a number from 0 to 65535");
    }
    let is_label = |label: &str| {
        let plain = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        plain && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    let address = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    match address {
        Some(address) if address.parse::<Ipv6Addr>().is_ok() => Ok(()),
        None if host.split('.').all(is_label) => Ok(()),
        _ => Err("the registry before the first `/` is not a host"),
    }
}

/// One part of the path: runs of letters and digits with separators between them.
fn is_component(text: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_separator = |run: &str| matches!(run, "" | "." | "_" | "__") || run.bytes().all(|b| b == b'-');
    // Between two neighbours of this list there was one letter or digit, so that all of it but the ends are
    // separators or empty.
    text.starts_with(is_alphanumeric)
        && text.ends_with(is_alphanumeric)
        && text.split(is_alphanumeric).all(is_separator)
}

fn check_tag(tag: &str) -> Result<(), &'static str> {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    match tag.as_bytes() {
        [] => Err("its tag is empty"),
        long if long.len() > MAX_TAG => Err("its tag has more than 128 characters"),
        [first, rest @ ..] if is_word(*first) && rest.iter().all(|b| is_word(*b) || b".-".contains(b)) => {
            Ok(())
        }
        _ => Err("a tag is made of letters, digits, `_`, `.` and `-`, and starts with none of the last two"),
    }
}

fn check_digest(digest: &str) -> Result<(), &'static str> {
    let known = digest
        .split_once(':')
        .is_some_and(|(algorithm, hex)| DIGESTS.contains(&(algorithm, hex.len())) && hex.bytes().all(is_hex));
    match known {
        true => Ok(()),
        false => Err("after `@` stands a digest: `sha256:` and 64 hexadecimal digits in lower case"),
    }
}

/// Whether an engine takes the text for an image id before it looks for a name. `sha256:…` is a name with a tag
/// by the grammar, and an id to every engine.
fn is_id(text: &str) -> bool {
    let is_digest = |(algorithm, length): (&str, usize)| {
        let hex = text.strip_prefix(algorithm).and_then(|rest| rest.strip_prefix(':'));
        hex.is_some_and(|hex| hex.len() == length && hex.bytes().all(is_hex))
    };
    (text.len() == 64 && text.bytes().all(is_hex)) || DIGESTS.into_iter().any(is_digest)
}

fn is_hex(b: u8) -> bool {
    b.is_ascii_digit() || (b'a'..=b'f').contains(&b)
}

/// The name in lower case. A tag may have upper case, and is another tag without it.
fn in_lower_case(text: &str) -> String {
    let name = split(text).name;
    format!("{}{}", name.to_ascii_lowercase(), &text[name.len()..])
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
