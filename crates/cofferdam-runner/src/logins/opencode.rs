//! The logins of OpenCode: `auth.json`, one entry for each provider.

use std::collections::BTreeMap;

use cofferdam_broker::Credential;
use cofferdam_core::{Login, Vendor};
use serde::Deserialize;
use serde_json::Value;

use super::error::Problem;
use super::{Content, Door, Opener, secret_part, token};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Entry {
    Api {
        key: String,
    },
    #[serde(untagged)]
    Other {
        access: Option<String>,
        refresh: Option<String>,
        key: Option<String>,
        token: Option<String>,
    },
}

/// Reads it. Keys count; a subscription is served by a plugin of the CLI, which speaks to the vendor in its own way.
pub(super) fn parse(bytes: &[u8]) -> Result<Content, Problem> {
    let entries: BTreeMap<String, Value> = serde_json::from_slice(bytes).map_err(|_| Problem::Malformed)?;
    let mut content = Content::default();
    for (provider, entry) in entries {
        let entry: Result<Entry, _> = serde_json::from_value(entry);
        let (secrets, opener) = match entry {
            Ok(Entry::Api { key }) => (vec![key.clone()], opened_by(key)),
            Ok(Entry::Other { access, refresh, key, token }) => {
                let secrets = [access, refresh, key, token].into_iter().flatten().collect();
                (secrets, Err(Problem::Subscription))
            }
            Err(_) => (Vec::new(), Err(Problem::Malformed)),
        };
        content.secrets.extend(secrets.iter().map(|text| secret_part(text).to_owned()));
        let vendor = match provider.as_str() {
            "anthropic" => Vendor::Anthropic,
            "openai" => Vendor::Openai,
            _ => continue,
        };
        content.doors.push(Door { vendor, opener });
    }
    Ok(content)
}

fn opened_by(key: String) -> Result<Opener, Problem> {
    let key = token(Some(key)).ok_or(Problem::Malformed)?;
    Ok(Opener { credential: Credential::ApiKey(key), login: Login::Key, expires_at_ms: None })
}
