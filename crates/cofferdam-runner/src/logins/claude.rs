//! The login of Claude Code: `.credentials.json`.

use cofferdam_broker::Credential;
use cofferdam_core::{Login, Vendor};
use serde::Deserialize;

use super::error::Problem;
use super::{Content, Door, Opener, secret_part, token};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Credentials {
    claude_ai_oauth: Option<Oauth>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Oauth {
    access_token: Option<String>,
    refresh_token: Option<String>,
    expires_at: Option<u64>,
    subscription_type: Option<String>,
    rate_limit_tier: Option<String>,
}

/// Reads it. A file without a login is one that only holds the tokens of MCP servers, or that of somebody who has logged
/// out.
pub(super) fn parse(bytes: &[u8]) -> Result<Content, Problem> {
    let credentials: Credentials = serde_json::from_slice(bytes).map_err(|_| Problem::Malformed)?;
    let Some(oauth) = credentials.claude_ai_oauth else { return Ok(Content::default()) };
    let secrets = [&oauth.access_token, &oauth.refresh_token];
    let secrets = secrets.into_iter().flatten().map(|text| secret_part(text).to_owned()).collect();
    let Some(access) = oauth.access_token.filter(|text| !text.is_empty()) else {
        return Ok(Content { doors: Vec::new(), secrets });
    };
    let opener = token(Some(access)).ok_or(Problem::Malformed).map(|access| Opener {
        credential: Credential::Bearer(access),
        login: Login::ClaudeAi {
            subscription: oauth.subscription_type,
            rate_limit_tier: oauth.rate_limit_tier,
        },
        expires_at_ms: oauth.expires_at,
    });
    Ok(Content { doors: vec![Door { vendor: Vendor::Anthropic, opener }], secrets })
}
