//! Short names of models: the key `models`.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::is_name;
use super::nearest;
use crate::run_input::bounds::LONGEST_MODEL;
use crate::text::checked_text;
use crate::value::ValueError;

/// What short names stand for that the settings say nothing about.
const BUILT_IN: [(&str, &str); 3] =
    [("haiku", "claude-haiku-4-5"), ("opus", "claude-opus-5-5"), ("sonnet", "claude-sonnet-5")];

checked_text! {
    /// A short name of a model: `sonnet`.
    ModelAlias: model_alias => ValueError;
    /// The full name of a model: `claude-sonnet-5`.
    ModelName: model_name => ValueError;
}

/// Short names of models, for `cofferdam ask --model NAME` and `POST /execute/sdk`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// Which model a short name stands for, over the built-in `haiku`, `opus` and `sonnet`.
    pub aliases: BTreeMap<ModelAlias, ModelName>,
}

impl ModelSettings {
    /// The full name of a model that was asked for by a short name or by its full one.
    ///
    /// # Errors
    /// If it is the name of no model, or a short name that was misspelt.
    pub fn full_name(&self, asked: &str) -> Result<ModelName, ValueError> {
        if let Some(name) = self.aliases.get(asked) {
            return Ok(name.clone());
        }
        if let Some((_, name)) = BUILT_IN.iter().find(|(alias, _)| *alias == asked) {
            return name.parse();
        }
        let known = BUILT_IN.iter().map(|(alias, _)| *alias);
        let known = known.chain(self.aliases.keys().map(ModelAlias::as_str));
        match nearest(asked, known) {
            Some(meant) => {
                let hint = format!("did you mean `{meant}`? Another model is named in full");
                Err(ValueError::new(asked, "is not a short name of a model", &hint))
            }
            None => asked.parse(),
        }
    }
}

fn model_alias(text: &str) -> Result<String, ValueError> {
    let hint = "type letters, digits, `.`, `_` and `-`, at most 64, such as `sonnet`";
    ValueError::unless(is_name(text), text, "is not a short name of a model", hint)
}

fn model_name(text: &str) -> Result<String, ValueError> {
    let is_name = !text.is_empty()
        && !text.starts_with('-')
        && !text.chars().any(char::is_control)
        && text.chars().count() <= LONGEST_MODEL;
    let hint = format!("type at most {LONGEST_MODEL} characters, such as `claude-sonnet-5`");
    ValueError::unless(is_name, text, "is not the name of a model", &hint)
}

impl Borrow<str> for ModelAlias {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_stands_for_what_the_settings_say_or_else_for_what_is_built_in() {
        let mut models = ModelSettings::default();
        let full = |models: &ModelSettings, text: &str| models.full_name(text).map(String::from);
        assert_eq!(full(&models, "sonnet").unwrap(), "claude-sonnet-5");
        assert_eq!(full(&models, "claude-opus-4-1").unwrap(), "claude-opus-4-1");
        models.aliases.insert("sonnet".parse().unwrap(), "claude-sonnet-6".parse().unwrap());
        models.aliases.insert("cheap".parse().unwrap(), "claude-haiku-4-5".parse().unwrap());
        assert_eq!(full(&models, "sonnet").unwrap(), "claude-sonnet-6");
        assert_eq!(full(&models, "cheap").unwrap(), "claude-haiku-4-5");
        assert!(full(&models, "sonet").unwrap_err().hint.contains("did you mean `sonnet`?"));
        for text in ["", "-m", "a\nb"] {
            assert!(
                full(&models, text).unwrap_err().problem.contains("is not the name of a model"),
                "{text}"
            );
        }
    }
}
