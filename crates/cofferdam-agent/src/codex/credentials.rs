//! The login of Codex: `auth.json`, with a key or with the tokens of ChatGPT.

use cofferdam_core::{Credential, Login, Vendor};
use serde::Deserialize;

use crate::login::{FoundLogin, LoginContent, LoginProblem, VendorLogin, claims, secret_part, token};

/// Where OpenAI's tokens say what they are for.
const CLAIMS: &str = "https://api.openai.com/auth";

#[derive(Deserialize)]
struct Auth {
    #[serde(rename = "OPENAI_API_KEY")]
    key: Option<String>,
    auth_mode: Option<String>,
    tokens: Option<Tokens>,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: Option<String>,
    access_token: Option<String>,
    refresh_token: Option<String>,
    account_id: Option<String>,
}

/// Reads it. Of a file with both, the key counts unless it says otherwise, as for Codex itself.
pub(super) fn parse(bytes: &[u8]) -> Result<LoginContent, LoginProblem> {
    let Auth { key, auth_mode, tokens } =
        serde_json::from_slice(bytes).map_err(|_| LoginProblem::Malformed)?;
    let all = tokens.iter().flat_map(|it| [&it.id_token, &it.access_token, &it.refresh_token]);
    let secrets = all.chain([&key]).flatten().map(|text| secret_part(text)).collect();
    let is_chatgpt = match auth_mode.as_deref() {
        Some("chatgpt") => true,
        Some(_) => false,
        None => key.is_none(),
    };
    let found = if is_chatgpt {
        tokens.map(|tokens| chatgpt(tokens).ok_or(LoginProblem::Malformed))
    } else {
        key.map(FoundLogin::of_key)
    };
    let vendors = found.map(|found| VendorLogin { vendor: Vendor::Openai, found }).into_iter().collect();
    Ok(LoginContent { vendors, secrets })
}

fn chatgpt(tokens: Tokens) -> Option<FoundLogin> {
    let access = token(tokens.access_token)?;
    let id_claims = tokens.id_token.as_deref().and_then(claims).unwrap_or_default();
    let claim = |name: &str| id_claims[CLAIMS][name].as_str().map(str::to_owned);
    let account = token(tokens.account_id).or_else(|| token(claim("chatgpt_account_id")));
    let expires_at = claims(&access).and_then(|claims| claims["exp"].as_u64());
    Some(FoundLogin {
        credential: Credential::ChatGpt { token: access, account },
        login: Login::ChatGpt { plan: claim("chatgpt_plan_type") },
        expires_at_ms: expires_at.map(|seconds| seconds.saturating_mul(1000)),
    })
}
