//! What the JSON of a phase must look like before its gate looks at what it says.

mod tables;

use std::fmt;
use std::io;

use serde_json::{Map, Value, json};

use super::Phase;
use super::output::quoted;

/// The most bytes of a phase's output.
pub const MOST_PHASE_BYTES: usize = 1 << 20;
/// How deep an output may be nested.
const MOST_DEPTH: usize = 32;
/// The most errors that are told at once.
const MOST_ERRORS: usize = 20;

/// What a value must be.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// A text.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Flag,
    /// Whatever it is.
    Any,
    /// A list, each item of which is this.
    List(&'static Self),
    /// An object with fields of any name, each of which is this.
    Map(&'static Self),
    /// An object with these fields, among others.
    Object(&'static [Field]),
    /// One of these.
    Either(&'static [Self]),
}

/// A list of texts.
const TEXTS: Shape = Shape::List(&Shape::Text);

/// A known field of an object.
#[derive(Debug, Clone, Copy)]
struct Field {
    name: &'static str,
    need: Need,
    shape: Shape,
    /// What it is for, in the schema that the agent reads.
    says: &'static str,
}

/// Whether an output without a field is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// What follows cannot be done without it.
    Required,
    /// Its gate asks for it.
    Optional,
}

/// Checks that a phase's output can be read by what follows: its size, its required fields and the types of the known ones.
///
/// # Errors
/// If it cannot be: each place with what is expected there, 20 at most.
pub fn check_shape(phase: Phase, output: &Value) -> Result<(), Vec<String>> {
    // First, since all that follows walks down the value.
    if is_deeper(output, MOST_DEPTH) {
        return Err(vec![format!("the output is nested too deeply; use at most {MOST_DEPTH} levels")]);
    }
    if is_longer(output, MOST_PHASE_BYTES) {
        return Err(vec![format!("the output is too long; write at most {MOST_PHASE_BYTES} bytes")]);
    }
    let Some(fields) = tables::of(phase) else {
        return Err(vec![format!("the phase `{phase}` has no JSON output")]);
    };
    let mut errors = Vec::new();
    check(&Shape::Object(fields), output, &Path::Output, &mut errors);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The JSON schema of a phase's output. That of `implement`, which has none, allows nothing.
#[must_use]
pub fn schema(phase: Phase) -> Value {
    tables::of(phase).map_or(Value::Bool(false), |fields| schema_of(&Shape::Object(fields)))
}

/// Where in an output something is, for people.
#[derive(Clone, Copy)]
enum Path<'a> {
    Output,
    Field(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output => Ok(()),
            Self::Field(Self::Output, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

fn check(shape: &Shape, value: &Value, path: &Path<'_>, errors: &mut Vec<String>) {
    if errors.len() >= MOST_ERRORS {
        return;
    }
    match (shape, value) {
        (Shape::Any, _)
        | (Shape::Text, Value::String(_))
        | (Shape::Number, Value::Number(_))
        | (Shape::Flag, Value::Bool(_)) => {}
        (Shape::List(shape), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                check(shape, item, &Path::Item(path, index), errors);
            }
        }
        (Shape::Map(shape), Value::Object(object)) => {
            object.iter().for_each(|(name, value)| check(shape, value, &Path::Field(path, name), errors));
        }
        (Shape::Object(fields), Value::Object(object)) => {
            fields.iter().for_each(|field| check_field(field, object, path, errors));
        }
        (Shape::Either(shapes), _) => {
            let fits = |shape: &&Shape| shape.is_type_of(value);
            match shapes.iter().find(fits) {
                Some(shape) => check(shape, value, path, errors),
                None => errors.push(wrong(shape, value, path)),
            }
        }
        _ => errors.push(wrong(shape, value, path)),
    }
}

fn check_field(field: &Field, object: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<String>) {
    let at = Path::Field(path, field.name);
    match object.get(field.name) {
        // Agents write it for what they leave out.
        None | Some(Value::Null) if field.need == Need::Optional => {}
        Some(value) => check(&field.shape, value, &at, errors),
        None if errors.len() < MOST_ERRORS => {
            errors.push(format!("{} is missing; it must be {}", quoted(&at.to_string()), field.shape.name()));
        }
        None => {}
    }
}

fn wrong(shape: &Shape, value: &Value, path: &Path<'_>) -> String {
    let at = match path {
        Path::Output => "the output".to_owned(),
        _ => quoted(&path.to_string()),
    };
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("{at} is {found}; it must be {}", shape.name())
}

impl Shape {
    /// What to write, in words.
    fn name(&self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Any => "a value".to_owned(),
            Self::List(Self::Text) => "a list of texts".to_owned(),
            Self::List(Self::Object(_)) => "a list of objects".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) | Self::Object(_) => "an object".to_owned(),
            Self::Either(shapes) => shapes.iter().map(Self::name).collect::<Vec<_>>().join(" or "),
        }
    }

    /// Whether the value is of this type, whatever is in it.
    fn is_type_of(&self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Flag => value.is_boolean(),
            Self::Any => true,
            Self::List(_) => value.is_array(),
            Self::Map(_) | Self::Object(_) => value.is_object(),
            Self::Either(shapes) => shapes.iter().any(|shape| shape.is_type_of(value)),
        }
    }
}

fn schema_of(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Number => json!({"type": "number"}),
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Any => json!({}),
        Shape::List(shape) => json!({"type": "array", "items": schema_of(shape)}),
        Shape::Map(shape) => json!({"type": "object", "additionalProperties": schema_of(shape)}),
        Shape::Either(shapes) => json!({"anyOf": shapes.iter().map(schema_of).collect::<Vec<_>>()}),
        Shape::Object(fields) => {
            let described = |field: &Field| {
                let mut schema = schema_of(&field.shape);
                if !field.says.is_empty() {
                    schema["description"] = field.says.into();
                }
                (field.name.to_owned(), schema)
            };
            let properties: Map<_, _> = fields.iter().map(described).collect();
            let required: Vec<_> =
                fields.iter().filter(|field| field.need == Need::Required).map(|field| field.name).collect();
            let mut schema = json!({"type": "object", "properties": properties});
            if !required.is_empty() {
                schema["required"] = json!(required);
            }
            schema
        }
    }
}

/// Whether something in the value is more than so many levels down. Looks no further than that.
fn is_deeper(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(items) => most == 0 || items.iter().any(|item| is_deeper(item, most - 1)),
        Value::Object(fields) => most == 0 || fields.values().any(|value| is_deeper(value, most - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether the value takes more than so many bytes when it is written. Writes nothing.
fn is_longer(value: &Value, most: usize) -> bool {
    struct Room(usize);

    impl io::Write for Room {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    serde_json::to_writer(Room(most), value).is_err()
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
