//! Reads fields as JSON means them, where serde's own reading differs: an object is no list, a whole number may be written
//! as `35.0`, and a field that must be there is not there as `null`.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Number;

use crate::egress::printable;
use crate::settings::nearest;

/// The largest number that every reader of JSON takes exactly.
const MOST: f64 = 9_007_199_254_740_991.0;

/// Reads a field that is there. Where one of two is needed, `null` would be neither.
///
/// # Errors
/// If it is `null`, or no such value.
pub fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(reader: D) -> Result<Option<T>, D::Error> {
    T::deserialize(reader).map(Some)
}

/// Reads a whole number, however it is written.
///
/// # Errors
/// If it is not whole, or out of the type's range.
pub fn whole<'de, T: TryFrom<i128>, D: Deserializer<'de>>(reader: D) -> Result<Option<T>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(reader)? else { return Ok(None) };
    let exact = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let whole = exact.or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= MOST)?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole and within what a float holds exactly"
        )]
        Some(float as i128)
    });
    let whole = whole.and_then(|whole| T::try_from(whole).ok());
    whole
        .map(Some)
        .ok_or_else(|| D::Error::custom(format!("`{number}` is not a whole number, or out of range")))
}

/// Reads an object. A list of its values in their order is none.
///
/// # Errors
/// If it is anything else.
pub fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(reader: D) -> Result<T, D::Error> {
    reader.deserialize_map(OnlyObject(PhantomData))
}

/// Reads an object of these fields and no other. One that is misspelt is told which was meant.
///
/// # Errors
/// If it is anything else.
pub fn object_of<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    reader: D,
    fields: &'static [&'static str],
) -> Result<T, D::Error> {
    reader.deserialize_map(KnownFields { fields, value: PhantomData })
}

/// Reads a type that derives with `#[serde(remote = "Self")]`: the derived reading, behind a look at the names of the fields. A
/// misspelt one is told which was meant.
macro_rules! reads_known_fields {
    ($($value:ident: $fields:ident),+) => { $(
        impl<'de> serde::Deserialize<'de> for $value {
            fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                struct Derived($value);

                impl<'de> serde::Deserialize<'de> for Derived {
                    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                        $value::deserialize(reader).map(Self)
                    }
                }

                $crate::strict_json::object_of::<Derived, D>(reader, &$fields).map(|Derived(value)| value)
            }
        }

        impl serde::Serialize for $value {
            fn serialize<S: serde::Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
                $value::serialize(self, writer)
            }
        }
    )+ };
}

pub(crate) use reads_known_fields;

struct KnownFields<T> {
    fields: &'static [&'static str],
    value: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for KnownFields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(KnownKeys { fields: self.fields, map }))
    }
}

struct KnownKeys<A> {
    fields: &'static [&'static str],
    map: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for KnownKeys<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some(key) = self.map.next_key::<String>()? else { return Ok(None) };
        if !self.fields.contains(&key.as_str()) {
            let known =
                || self.fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ");
            let help = match nearest(&key, self.fields.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("there are {}", known()),
            };
            return Err(A::Error::custom(format!("unknown field `{}`: {help}", printable(&key))));
        }
        seed.deserialize(key.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Reads a list of objects.
///
/// # Errors
/// If it is anything else.
pub fn objects<'de, T: Deserialize<'de>, D: Deserializer<'de>>(reader: D) -> Result<Vec<T>, D::Error> {
    struct One<T>(T);

    impl<'de, T: Deserialize<'de>> Deserialize<'de> for One<T> {
        fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
            object(reader).map(Self)
        }
    }

    let read: Vec<One<T>> = Vec::deserialize(reader)?;
    Ok(read.into_iter().map(|One(value)| value).collect())
}

struct OnlyObject<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyObject<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use crate::RunInput;

    fn read(text: &str) -> Result<RunInput, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_list_is_no_object() {
        for text in [
            r#"{"task": "x", "options": [null]}"#,
            r#"{"task": "x", "options": {"mounts": [["/srv", true]]}}"#,
            r#"{"task": "x", "options": null}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read(r#"{"task": "x", "options": {"mounts": [{"path": "/srv"}]}}"#).is_ok());
    }

    #[test]
    fn a_whole_number_is_one_however_it_is_written() {
        assert_eq!(read(r#"{"priority": 35.0}"#).unwrap().priority, Some(35));
        assert_eq!(read(r#"{"options": {"max_turns": 2e1}}"#).unwrap().options.max_turns, Some(20));
        assert_eq!(read(r#"{"priority": null}"#).unwrap().priority, None);
        for text in [r#"{"priority": 0.5}"#, r#"{"priority": "7"}"#, r#"{"options": {"pids": -1}}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_must_be_there_is_not_there_as_null() {
        assert!(read(r#"{"task": null}"#).is_err() && read(r#"{"repo": null}"#).is_err());
        assert!(read(r#"{"lane": null, "options": {"model": null}}"#).is_ok());
    }
}
