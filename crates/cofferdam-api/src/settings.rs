//! Settings, and where each was set.

use cofferdam_core::{Effective, Origin};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Every setting that holds. Passwords are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SettingsResponse {
    /// The settings, as they are written in `settings.json`.
    #[schema(value_type = Object)]
    pub settings: Value,
    /// Each value by itself, in the order of the keys.
    pub values: Vec<SettingResponse>,
}

/// One value that holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SettingResponse {
    /// Its key, such as `sandbox.mode`.
    pub key: String,
    /// The value.
    pub value: Value,
    /// Where it was set.
    pub origin: OriginResponse,
}

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OriginResponse {
    /// `default`, `global`, `local`, `untrusted`, `environment` or `system_config`.
    pub kind: String,
    /// The file, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The variable, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// The key of `GET /config`, if it was set there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The same for people.
    pub shown: String,
}

impl From<&Effective> for SettingsResponse {
    fn from(effective: &Effective) -> Self {
        let values = effective.values().into_iter().map(|(path, value, origin)| SettingResponse {
            key: path.to_string(),
            value,
            origin: OriginResponse::from(&origin),
        });
        let settings = serde_json::to_value(&effective.settings).expect("settings are plain values");
        Self { settings, values: values.collect() }
    }
}

impl From<&Origin> for OriginResponse {
    fn from(origin: &Origin) -> Self {
        let (path, variable, key) = match origin {
            Origin::Default => (None, None, None),
            Origin::Global(path) | Origin::Local(path) | Origin::Untrusted(path) => (Some(path), None, None),
            Origin::Environment(variable) => (None, Some((*variable).to_owned()), None),
            Origin::SystemConfig(key) => (None, None, Some(key.to_string())),
        };
        let path = path.map(|path| path.to_string_lossy().into_owned());
        Self { kind: origin.kind().to_owned(), path, variable, key, shown: origin.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::read_layer;

    #[test]
    fn a_password_in_a_setting_is_shown_nowhere() {
        let text = r#"{"store": {"url": "postgres://me:hunter2@db.example/c?password=hunter2"}}"#;
        let layer = read_layer(text, &Origin::Global("/g/settings.json".into())).unwrap();
        let shown = SettingsResponse::from(&Effective::default().under(&layer));
        let text = serde_json::to_string(&shown).unwrap();
        assert!(text.contains("db.example") && !text.contains("hunter2"), "{text}");
        let url = shown.values.iter().find(|value| value.key == "store.url").unwrap();
        let (kind, path) = (url.origin.kind.as_str(), url.origin.path.as_deref());
        assert_eq!((kind, path), ("global", Some("/g/settings.json")));
    }
}
