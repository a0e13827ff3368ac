//! A JSON text as a tree that knows where everything stands, for messages and for changes that leave the rest of the
//! text as it is.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Deeper than any setting. `serde_json` has no bound of its own for a value that it only skips.
const DEEPEST: usize = 32;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Located {
    /// Its bytes in the text.
    pub(super) span: Range<usize>,
    /// What it is.
    pub(super) shape: Shape,
}

/// What a value is made of.
#[derive(Debug)]
pub(super) enum Shape {
    Object(Vec<Member>),
    Array(Vec<Located>),
    Null,
    Other,
}

/// A key with its value.
#[derive(Debug)]
pub(super) struct Member {
    /// The key.
    pub(super) key: String,
    /// Where its quotation mark is.
    pub(super) at: usize,
    /// What it is set to.
    pub(super) value: Located,
}

/// Why a text has no tree.
#[derive(Debug)]
pub(super) enum Unlocated {
    /// It is not JSON.
    Syntax(serde_json::Error),
    /// Something in it is nested too deep, beginning here.
    TooDeep(usize),
}

impl Located {
    /// The tree of a text.
    pub(super) fn of(text: &str) -> Result<Self, Unlocated> {
        let whole: &RawValue = serde_json::from_str(text).map_err(Unlocated::Syntax)?;
        locate(text, whole, DEEPEST)
    }

    /// The member of an object.
    pub(super) fn member(&self, key: &str) -> Option<&Member> {
        match &self.shape {
            Shape::Object(members) => members.iter().find(|member| member.key == key),
            Shape::Array(_) | Shape::Null | Shape::Other => None,
        }
    }
}

fn locate(text: &str, raw: &RawValue, deeper: usize) -> Result<Located, Unlocated> {
    // A borrowed raw value is a part of the text itself, so that its address tells its place.
    let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
    let span = start..start + raw.get().len();
    if deeper == 0 {
        return Err(Unlocated::TooDeep(start));
    }
    let read = |error| Unlocated::Syntax(error);
    let shape = match raw.get().as_bytes().first() {
        Some(b'{') => {
            let Members(raws) = serde_json::from_str(raw.get()).map_err(read)?;
            let mut members = Vec::new();
            let mut after = start + 1;
            for (key, raw) in raws {
                // Between the end of the last value and this key stand blanks and one comma.
                let gap = text[after..].find('"').expect("a key begins with a quotation mark");
                let value = locate(text, raw, deeper - 1)?;
                let at = after + gap;
                after = value.span.end;
                members.push(Member { key, at, value });
            }
            Shape::Object(members)
        }
        Some(b'[') => {
            let raws: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(read)?;
            let elements = raws.into_iter().map(|raw| locate(text, raw, deeper - 1));
            Shape::Array(elements.collect::<Result<_, _>>()?)
        }
        Some(b'n') => Shape::Null,
        _ => Shape::Other,
    };
    Ok(Located { span, shape })
}

/// The members of an object in their order, those of the same name included.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_and_value_is_where_the_tree_says() {
        let text =
            "{ \"a\" : 1 ,\n  \"b\\\"\\u0041\": { \"c\": [true, {\"d\": \"x,\\\"y\"}] }, \"a\": null }";
        let tree = Located::of(text).unwrap();
        let Shape::Object(members) = &tree.shape else { panic!("{tree:?}") };
        let keys: Vec<&str> = members.iter().map(|member| member.key.as_str()).collect();
        assert_eq!(keys, ["a", "b\"A", "a"]);
        for member in members {
            assert!(text[member.at..].starts_with('"'), "{member:?}");
        }
        assert_eq!(&text[members[0].value.span.clone()], "1");
        assert!(matches!(members[2].value.shape, Shape::Null));
        let c = tree.member("b\"A").unwrap().value.member("c").unwrap();
        assert_eq!(&text[c.at..c.at + 3], "\"c\"");
        let Shape::Array(elements) = &c.value.shape else { panic!("{c:?}") };
        assert_eq!(&text[elements[1].member("d").unwrap().value.span.clone()], "\"x,\\\"y\"");
    }

    #[test]
    fn what_is_nested_without_end_is_refused_and_not_followed() {
        let text = format!("{{\"a\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(Located::of(&text), Err(Unlocated::TooDeep(_))));
    }
}
