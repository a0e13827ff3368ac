//! Named sets of rules for the package registries and git hosts that most repositories need.

/// Every preset: its name and its rules.
pub const PRESETS: &[(&str, &[&str])] = &[("npm", &["registry.npmjs.org:443"])];

/// The rules of a preset, if there is one of this name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static [&'static str]> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|(_, rules)| *rules)
}
