//! Which schemas an answer may be held to. Whoever may ask a question writes the schema, the service evaluates it, and
//! references make a short schema do work without end: forty definitions that each name the next one twice are evaluated
//! 2^40 times. So every schema is walked here as a validator walks it, with each reference replaced by what it names.
//!
//! One that refers to itself is taken if each time it does so is about another value inside of the one that it was about
//! before, as with trees and lists: then no value is looked at by it twice, and the work grows with the answer alone.

use serde_json::Value;

use crate::egress::printable;
use crate::run_input::bounds::{MOST_OUTPUT_SCHEMA_DEPTH, MOST_OUTPUT_SCHEMA_PARTS};

/// What a pattern counts: it takes up to a thousand times the memory of another part.
const PARTS_OF_A_PATTERN: usize = 100;
/// How often one schema, with its references replaced, may refer to itself: each is compared with each.
const MOST_RETURNS: usize = 100;
/// What is evaluated beside these is evaluated again and again, to find out what it has looked at.
const EVALUATED_AGAIN: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
const REPEATS: usize = 3;
/// Others have keywords that are not known here.
const DRAFTS: [&str; 3] = [
    "json-schema.org/draft/2020-12/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft-07/schema",
];

/// Why an answer cannot be held to a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutputSchemaProblem {
    /// It does not end in time.
    #[error(
        "the schema has more than {MOST_OUTPUT_SCHEMA_PARTS} parts, each reference counted as what it refers to"
    )]
    TooLarge,
    /// It would use up the stack.
    #[error("the schema is more than {MOST_OUTPUT_SCHEMA_DEPTH} schemas deep, references followed")]
    TooDeep,
    /// What it does to a value may double with each level.
    #[error("the schema refers to itself more than once for the same value (`{0}`)")]
    Returns(String),
    /// What it refers to is not in it, or may be found elsewhere by the validator.
    #[error("the schema refers to `{0}`, which is not the path of a part of it")]
    Reference(String),
    /// A part of it is a document of its own.
    #[error("the schema has `{0}` below its first level")]
    Inner(&'static str),
    /// It is written in another language.
    #[error("the schema has a `$schema` that is not supported")]
    Draft,
    /// A pattern that only an engine without bounds could match.
    #[error("the pattern `{0}` looks ahead or behind")]
    Pattern(String),
}

impl OutputSchemaProblem {
    /// What to write instead.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::TooLarge => {
                "refer to fewer definitions, or to each from fewer places; a pattern counts as 100 parts"
            }
            Self::TooDeep => "nest fewer schemas in each other",
            Self::Returns(_) => {
                "let it refer to itself below `properties` or `items`, and once for each of them; put what several \
                 branches of `anyOf` have in common beside it"
            }
            Self::Reference(_) => {
                "use a path within the schema, such as `#/$defs/item`, without `%` and `~`, and neither `$dynamicRef` nor \
                 `$recursiveRef`"
            }
            Self::Inner(_) => "leave it out there: the schema is one document",
            Self::Draft => "use draft 2020-12, 2019-09 or 07, or leave `$schema` out",
            Self::Pattern(_) => "use a pattern without `(?=`, `(?!`, `(?<=` and `(?<!`",
        }
    }
}

/// Checks that an answer can be held to a schema with work that is bounded by the length of both: how many parts it has,
/// each reference counted as what it refers to.
///
/// # Errors
/// [`OutputSchemaProblem`] if it cannot.
pub fn check_output_schema(schema: &Value) -> Result<usize, OutputSchemaProblem> {
    let draft = schema.get("$schema").map(|draft| draft.as_str().unwrap_or_default());
    let is_known = |draft: &str| {
        let name = draft.trim_start_matches("https://").trim_start_matches("http://").trim_end_matches('#');
        DRAFTS.contains(&name)
    };
    if draft.is_some_and(|draft| !is_known(draft)) {
        return Err(OutputSchemaProblem::Draft);
    }
    children(schema).try_for_each(no_document)?;
    let mut parts = 0;
    let mut starts = vec![schema];
    let mut at = 0;
    while let Some(start) = starts.get(at).copied() {
        let mut walk =
            Walk { root: schema, parts, depth: 0, within: vec![(start, 0)], way: vec![], returns: vec![] };
        walk.schema(start)?;
        parts = walk.parts;
        for (target, _) in walk.returns {
            // The first is walked already, and is a target like any other.
            if !starts.iter().any(|known| std::ptr::eq(*known, target)) {
                starts.push(target);
            }
        }
        at += 1;
    }
    Ok(parts)
}

/// From a value to one that is in it.
#[derive(Debug, Clone)]
enum Step<'a> {
    Property(&'a str),
    AnyProperty,
    Element(usize),
    AnyElement,
}

impl Step<'_> {
    /// Whether both may lead to one value.
    fn may_meet(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Property(one), Self::Property(other)) => one == other,
            (Self::Element(one), Self::Element(other)) => one == other,
            (Self::Property(_) | Self::AnyProperty, Self::Property(_) | Self::AnyProperty)
            | (Self::Element(_) | Self::AnyElement, Self::Element(_) | Self::AnyElement) => true,
            (Self::Property(_) | Self::AnyProperty, Self::Element(_) | Self::AnyElement)
            | (Self::Element(_) | Self::AnyElement, Self::Property(_) | Self::AnyProperty) => false,
        }
    }
}

/// One schema with its references replaced, up to where it refers to what it is within.
struct Walk<'a> {
    root: &'a Value,
    parts: usize,
    depth: usize,
    /// What it is within, each with how long the way to it was.
    within: Vec<(&'a Value, usize)>,
    way: Vec<Step<'a>>,
    /// Where it refers to what it is within, and the ways there.
    returns: Vec<(&'a Value, Vec<Step<'a>>)>,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value) -> Result<(), OutputSchemaProblem> {
        self.count(1)?;
        let Some(keywords) = schema.as_object() else { return Ok(()) };
        self.depth += 1;
        if self.depth > MOST_OUTPUT_SCHEMA_DEPTH {
            return Err(OutputSchemaProblem::TooDeep);
        }
        let is_repeated = EVALUATED_AGAIN.iter().any(|keyword| keywords.contains_key(*keyword));
        for _ in 0..if is_repeated { REPEATS } else { 1 } {
            for (keyword, value) in keywords {
                self.keyword(keyword, value)?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn keyword(&mut self, keyword: &str, value: &'a Value) -> Result<(), OutputSchemaProblem> {
        match (keyword, value) {
            ("$ref", _) => self.reference(value),
            ("$dynamicRef" | "$recursiveRef", _) => Err(OutputSchemaProblem::Reference(printable(keyword))),
            // Evaluated where they are referred to.
            ("$defs" | "definitions", _) => Ok(()),
            ("properties", Value::Object(named)) => {
                named.iter().try_for_each(|(name, schema)| self.below(Step::Property(name), schema))
            }
            ("patternProperties", Value::Object(named)) => named.iter().try_for_each(|(pattern, schema)| {
                self.pattern(pattern)?;
                self.below(Step::AnyProperty, schema)
            }),
            ("additionalProperties" | "unevaluatedProperties" | "propertyNames", _) => {
                self.below(Step::AnyProperty, value)
            }
            ("prefixItems" | "items", Value::Array(schemas)) => {
                let mut schemas = schemas.iter().enumerate();
                schemas.try_for_each(|(at, schema)| self.below(Step::Element(at), schema))
            }
            ("items" | "additionalItems" | "unevaluatedItems" | "contains", _) => {
                self.below(Step::AnyElement, value)
            }
            ("allOf" | "anyOf" | "oneOf" | "dependentSchemas" | "dependencies", _) => {
                children(value).try_for_each(|schema| self.schema(schema))
            }
            ("not" | "if" | "then" | "else" | "contentSchema", _) => self.schema(value),
            ("pattern", Value::String(pattern)) => self.pattern(pattern),
            _ => self.data(value),
        }
    }

    fn below(&mut self, step: Step<'a>, schema: &'a Value) -> Result<(), OutputSchemaProblem> {
        self.way.push(step);
        self.schema(schema)?;
        self.way.pop();
        Ok(())
    }

    fn reference(&mut self, reference: &'a Value) -> Result<(), OutputSchemaProblem> {
        let text = reference.as_str().unwrap_or_default();
        let path = text.strip_prefix('#').filter(|path| !path.contains(['%', '~']));
        let target = path.and_then(|path| self.root.pointer(path));
        let target = target.ok_or_else(|| OutputSchemaProblem::Reference(printable(text)))?;
        let Some(&(_, begun)) = self.within.iter().find(|(schema, _)| std::ptr::eq(*schema, target)) else {
            self.within.push((target, self.way.len()));
            self.schema(target)?;
            self.within.pop();
            return Ok(());
        };
        self.count(1)?;
        let may_meet =
            |other: &[Step<'_>]| self.way.iter().zip(other).all(|(one, other)| one.may_meet(other));
        if self.way.len() == begun
            || self.returns.len() >= MOST_RETURNS
            || self.returns.iter().any(|(_, way)| may_meet(way))
        {
            return Err(OutputSchemaProblem::Returns(printable(text)));
        }
        self.returns.push((target, self.way.clone()));
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), OutputSchemaProblem> {
        if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| pattern.contains(look)) {
            return Err(OutputSchemaProblem::Pattern(printable(pattern)));
        }
        self.count(PARTS_OF_A_PATTERN)
    }

    /// What is compared and not evaluated: the values of an `enum`, numbers, titles.
    fn data(&mut self, value: &'a Value) -> Result<(), OutputSchemaProblem> {
        self.count(1)?;
        children(value).try_for_each(|value| self.data(value))
    }

    fn count(&mut self, parts: usize) -> Result<(), OutputSchemaProblem> {
        self.parts += parts;
        if self.parts > MOST_OUTPUT_SCHEMA_PARTS { Err(OutputSchemaProblem::TooLarge) } else { Ok(()) }
    }
}

/// A part with a name or a language of its own is where the validator would look for what is referred to in it.
fn no_document(value: &Value) -> Result<(), OutputSchemaProblem> {
    for name in ["$id", "$schema"] {
        if value.get(name).is_some_and(Value::is_string) {
            return Err(OutputSchemaProblem::Inner(name));
        }
    }
    children(value).try_for_each(no_document)
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(elements) => Box::new(elements.iter()),
        Value::Object(properties) => Box::new(properties.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Box::new(std::iter::empty()),
    }
}

#[cfg(test)]
#[path = "output_schema_tests.rs"]
mod tests;
