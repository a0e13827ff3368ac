//! How a field is judged.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::reasons::{Path, Reasons};
use crate::spec::Phase;
use crate::spec::output::{hundredths, ids, quoted};

/// All of a criterion. Parts of it are whole numbers.
pub(super) const WHOLE: u32 = 10_000;

/// What a judgement looks at.
#[derive(Debug)]
pub(super) struct Judged<'a> {
    pub(super) output: &'a Value,
    pub(super) before: &'a BTreeMap<Phase, Value>,
    /// The ids of its tickets, which each task is compared with.
    pub(super) tickets: BTreeSet<&'a str>,
}

impl<'a> Judged<'a> {
    pub(super) fn of(output: &'a Value, before: &'a BTreeMap<Phase, Value>) -> Self {
        Self { output, before, tickets: ids(output, "tickets").collect() }
    }
}

/// A judgement that needs more than its own field. Answers with the part that is earned.
pub(super) type Special = fn(&Value, &Path<'_>, &Judged<'_>, &mut Reasons) -> u32;

/// How a field is judged.
#[derive(Debug, Clone, Copy)]
pub(super) enum Check {
    /// A text of at least so many characters. A shorter one counts half.
    Text(usize),
    /// A text, list or object that is not empty, or another value.
    Filled,
    /// `true`.
    True,
    /// A number of hours within this range, in hundredths.
    Hours(u64, u64),
    /// A list of at least so many items; a part of them is a part of it. Empty texts count for nothing.
    List(usize),
    /// An object of at least so many fields; a part of them is a part of it.
    Map(usize),
    /// An object, each of these fields of which counts the same.
    All(&'static [(&'static str, Check)]),
    /// A list, each item of which counts the same. An empty one earns nothing.
    Each(&'static Check),
    /// A list with at least so many items that are right; a part of them is a part of it.
    Some(usize, &'static Check),
    /// A list, the items of which have ids of this form: each id that no item before has counts as one of them.
    Ids(IdForm),
    /// An object, at least one of these fields of which is not empty.
    Any(&'static [&'static str]),
    /// Each of these looks at the same value, and counts the same.
    Both(&'static [Check]),
    /// As the other, but at least so much.
    AtLeast(u32, &'static Check),
    /// See there.
    Special(Special),
}

/// How an id is formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdForm {
    /// `US-001`
    Story,
    /// `REQ-FEATURE-CATEGORY-001`
    Requirement,
    /// `TKT-001`
    Ticket,
    /// `TSK-001`
    Task,
}

impl Check {
    /// The part that an output without the field has earned.
    pub(super) fn of_missing(&self) -> u32 {
        match self {
            Self::AtLeast(least, _) => *least,
            _ => 0,
        }
    }

    /// The part of the whole that a value has earned, with a reason for all that it has not.
    pub(super) fn share(
        &self,
        value: Option<&Value>,
        path: &Path<'_>,
        judged: &Judged<'_>,
        reasons: &mut Reasons,
    ) -> u32 {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            reasons.add(|| format!("`{path}` is missing: {}", self.asks()));
            return self.of_missing();
        };
        match self {
            Self::Text(least) => match value.as_str().map(|text| text.trim().chars().take(*least).count()) {
                Some(length) if length >= *least => WHOLE,
                Some(0) | None => wrong(reasons, path, self),
                Some(length) => {
                    reasons.add(|| format!("`{path}` has {length} characters; give at least {least}"));
                    WHOLE / 2
                }
            },
            Self::Filled if is_filled(value) => WHOLE,
            Self::True if value == &Value::Bool(true) => WHOLE,
            Self::True if value == &Value::Bool(false) => {
                reasons.add(|| {
                    format!("`{path}` is false: correct what makes it so, and say true only if it is")
                });
                0
            }
            Self::Hours(least, most) if hundredths(value).is_some_and(|h| (*least..=*most).contains(&h)) => {
                WHOLE
            }
            Self::Filled | Self::True | Self::Hours(..) => wrong(reasons, path, self),
            Self::List(least) => {
                let Some(items) = value.as_array() else { return wrong(reasons, path, self) };
                let filled = items.iter().filter(|item| is_filled(item)).count();
                enough(filled, *least, "item", path, reasons)
            }
            Self::Map(least) => {
                let Some(fields) = value.as_object() else { return wrong(reasons, path, self) };
                enough(fields.len(), *least, "field", path, reasons)
            }
            Self::All(fields) => {
                if !value.is_object() {
                    return wrong(reasons, path, self);
                }
                let shares = fields.iter().map(|(name, check)| {
                    check.share(value.get(name), &Path::Field(path, name), judged, reasons)
                });
                mean(shares, fields.len())
            }
            Self::Each(check) => {
                let Some(items) = value.as_array().filter(|items| !items.is_empty()) else {
                    return wrong(reasons, path, self);
                };
                let shares = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| check.share(Some(item), &Path::Item(path, index), judged, reasons));
                mean(shares, items.len())
            }
            Self::Some(least, check) => {
                let Some(items) = value.as_array() else { return wrong(reasons, path, self) };
                let mut why = Reasons::default();
                let right = items.iter().enumerate().filter(|&(index, item)| {
                    check.share(Some(item), &Path::Item(path, index), judged, &mut why) == WHOLE
                });
                let right = right.count();
                if right < *least {
                    why.finish().into_iter().for_each(|reason| reasons.add(|| reason));
                }
                enough(right, *least, "complete item", path, reasons)
            }
            Self::Ids(form) => {
                let Some(items) = value.as_array().filter(|items| !items.is_empty()) else {
                    return wrong(reasons, path, self);
                };
                let mut seen = BTreeSet::new();
                for (index, item) in items.iter().enumerate() {
                    match item.get("id").and_then(Value::as_str) {
                        Some(id) if form.is_of(id) && seen.insert(id) => {}
                        Some(id) if form.is_of(id) => reasons.add(|| {
                            format!(
                                "`{path}[{index}].id` is {}, as another one is; use each id once",
                                quoted(id)
                            )
                        }),
                        Some(id) => reasons.add(|| {
                            format!("`{path}[{index}].id` is {}; write it as {}", quoted(id), form.example())
                        }),
                        None => reasons.add(|| {
                            format!("`{path}[{index}]` has no id; give it one like {}", form.example())
                        }),
                    }
                }
                part(seen.len(), items.len())
            }
            Self::Any(fields) => {
                if fields.iter().any(|field| value.get(field).is_some_and(is_filled)) {
                    return WHOLE;
                }
                reasons.add(|| format!("`{path}` has none of `{}`; give at least one", fields.join("`, `")));
                0
            }
            Self::Both(checks) => {
                let shares = checks.iter().map(|check| check.share(Some(value), path, judged, reasons));
                mean(shares, checks.len())
            }
            Self::AtLeast(least, check) => check.share(Some(value), path, judged, reasons).max(*least),
            Self::Special(special) => special(value, path, judged, reasons),
        }
    }

    /// What to write.
    fn asks(&self) -> String {
        match self {
            Self::Text(0 | 1) => "give a text".to_owned(),
            Self::Text(least) => format!("give a text of at least {least} characters"),
            Self::Filled => "give a value that is not empty".to_owned(),
            Self::True => "say true if it is so".to_owned(),
            Self::Hours(least, most) => format!("give a number from {} to {}", least / 100, most / 100),
            Self::List(0) => "give a list, an empty one if there is nothing".to_owned(),
            Self::List(least) | Self::Some(least, _) => {
                format!("give a list with at least {}", count(*least, "item"))
            }
            Self::Map(least) => format!("give an object with at least {}", count(*least, "field")),
            Self::All(fields) => {
                let names: Vec<_> = fields.iter().map(|(name, _)| format!("`{name}`")).collect();
                format!("give an object with {}", names.join(", "))
            }
            Self::Each(_) | Self::Ids(_) | Self::Both(_) => "give a list with at least 1 item".to_owned(),
            Self::Any(fields) => format!("give an object with one of `{}`", fields.join("`, `")),
            Self::AtLeast(_, check) => check.asks(),
            Self::Special(_) => "give what the schema asks for".to_owned(),
        }
    }
}

impl IdForm {
    fn parts(self) -> (&'static str, usize) {
        match self {
            Self::Story => ("US", 0),
            Self::Requirement => ("REQ", 2),
            Self::Ticket => ("TKT", 0),
            Self::Task => ("TSK", 0),
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Story => "`US-001`",
            Self::Requirement => "`REQ-FEATURE-CATEGORY-001`",
            Self::Ticket => "`TKT-001`",
            Self::Task => "`TSK-001`",
        }
    }

    /// Whether an id is formed so: the prefix, at least so many words, and a number of three digits or more.
    fn is_of(self, id: &str) -> bool {
        let (prefix, words) = self.parts();
        let Some((first, rest)) = id.split_once('-').filter(|_| id.len() <= 100) else { return false };
        let mut parts: Vec<_> = rest.split('-').collect();
        let number = parts.pop().unwrap_or_default();
        let is_word = |part: &&str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        };
        let has_words = if words == 0 { parts.is_empty() } else { parts.len() >= words };
        first == prefix
            && has_words
            && parts.iter().all(is_word)
            && number.len() >= 3
            && number.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// Whether a value says anything.
pub(super) fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// So many of so many.
pub(super) fn part(of: usize, all: usize) -> u32 {
    if of >= all {
        return WHOLE;
    }
    let share = of as u128 * u128::from(WHOLE) / all as u128;
    u32::try_from(share).unwrap_or(WHOLE)
}

/// What parts are together, each counting the same.
pub(super) fn mean(shares: impl Iterator<Item = u32>, count: usize) -> u32 {
    let sum: u64 = shares.map(u64::from).sum();
    let count = u64::try_from(count.max(1)).unwrap_or(u64::MAX);
    u32::try_from(sum / count).unwrap_or(WHOLE)
}

fn enough(count_of: usize, least: usize, what: &str, path: &Path<'_>, reasons: &mut Reasons) -> u32 {
    if count_of < least {
        reasons.add(|| format!("`{path}` has {}; give at least {least}", count(count_of, what)));
    }
    part(count_of, least)
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

fn wrong(reasons: &mut Reasons, path: &Path<'_>, check: &Check) -> u32 {
    reasons.add(|| format!("`{path}` is not what is asked for: {}", check.asks()));
    0
}
