//! The login of Claude Code: `.credentials.json`.

use cofferdam_core::{Credential, Login, Vendor};
use serde::Deserialize;

use crate::login::{FoundLogin, LoginContent, LoginProblem, VendorLogin, secret_part, token};

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
pub(super) fn parse(bytes: &[u8]) -> Result<LoginContent, LoginProblem> {
    let credentials: Credentials = serde_json::from_slice(bytes).map_err(|_| LoginProblem::Malformed)?;
    let Some(oauth) = credentials.claude_ai_oauth else { return Ok(LoginContent::default()) };
    let secrets = [&oauth.access_token, &oauth.refresh_token];
    let secrets = secrets.into_iter().flatten().map(|text| secret_part(text)).collect();
    let Some(access) = oauth.access_token.filter(|text| !text.is_empty()) else {
        return Ok(LoginContent { vendors: Vec::new(), secrets });
    };
    let found = token(Some(access)).ok_or(LoginProblem::Malformed).map(|access| FoundLogin {
        credential: Credential::Bearer(access),
        login: Login::ClaudeAi {
            subscription: oauth.subscription_type,
            rate_limit_tier: oauth.rate_limit_tier,
        },
        expires_at_ms: oauth.expires_at,
    });
    Ok(LoginContent { vendors: vec![VendorLogin { vendor: Vendor::Anthropic, found }], secrets })
}
