//! The logins of OpenCode: `auth.json`, one entry for each provider.

use std::collections::BTreeMap;

use cofferdam_core::Vendor;
use serde::Deserialize;
use serde_json::Value;

use crate::login::{FoundLogin, LoginContent, LoginProblem, VendorLogin, secret_part};

/// A subscription is served by a plugin of the CLI, which speaks to the vendor in its own way.
const SUBSCRIPTION: LoginProblem = LoginProblem::Unsupported(
    "it is a subscription, and OpenCode's plugins for those do not run in a sandbox; a key works",
);

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

/// Reads it. Keys count, subscriptions do not.
pub(super) fn parse(bytes: &[u8]) -> Result<LoginContent, LoginProblem> {
    let entries: BTreeMap<String, Value> =
        serde_json::from_slice(bytes).map_err(|_| LoginProblem::Malformed)?;
    let mut content = LoginContent::default();
    for (provider, entry) in entries {
        let entry: Result<Entry, _> = serde_json::from_value(entry);
        let (secrets, found) = match entry {
            Ok(Entry::Api { key }) => (vec![key.clone()], FoundLogin::of_key(key)),
            Ok(Entry::Other { access, refresh, key, token }) => {
                ([access, refresh, key, token].into_iter().flatten().collect(), Err(SUBSCRIPTION))
            }
            Err(_) => (Vec::new(), Err(LoginProblem::Malformed)),
        };
        content.secrets.extend(secrets.iter().map(|text| secret_part(text)));
        let vendor = match provider.as_str() {
            "anthropic" => Vendor::Anthropic,
            "openai" => Vendor::Openai,
            _ => continue,
        };
        content.vendors.push(VendorLogin { vendor, found });
    }
    Ok(content)
}
