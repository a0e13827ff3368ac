//! What opens models and git hosts, from the caller's environment. It goes to the broker, and nowhere else.

use cofferdam_broker::{Credential, GitCredential, Secrets, Upstream};
use cofferdam_core::{Host, HostPort, Vendor};

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;

/// The caller's keys.
#[derive(Clone, Default)]
pub(crate) struct CallerSecrets {
    anthropic: Option<Upstream>,
    openai: Option<Upstream>,
    github: Option<String>,
    gitlab: Option<String>,
    any_git_host: Option<String>,
}

impl CallerSecrets {
    /// Reads the caller's keys and the addresses that they are meant for.
    pub(crate) fn of(caller: &Caller) -> Result<Self, Failure> {
        let var = |name: &str| caller.var(name).and_then(|value| value.to_str()).map(str::to_owned);
        let anthropic = var("ANTHROPIC_API_KEY")
            .map(Credential::ApiKey)
            .or_else(|| var("ANTHROPIC_AUTH_TOKEN").map(Credential::Bearer));
        let openai = var("OPENAI_API_KEY").map(Credential::ApiKey);
        let upstream = |credential, variable: &str, public: &str| -> Result<Option<Upstream>, Failure> {
            let Some(credential) = credential else { return Ok(None) };
            let base_url = match var(variable) {
                Some(address) => base_url(variable, &address)?,
                None => public.to_owned(),
            };
            Ok(Some(Upstream { base_url, credential }))
        };
        Ok(Self {
            anthropic: upstream(anthropic, "ANTHROPIC_BASE_URL", "https://api.anthropic.com")?,
            openai: upstream(openai, "OPENAI_BASE_URL", "https://api.openai.com")?,
            github: var("GH_TOKEN").or_else(|| var("GITHUB_TOKEN")),
            gitlab: var("GITLAB_TOKEN"),
            any_git_host: var("COFFERDAM_GIT_TOKEN"),
        })
    }

    /// The vendors for which there is a key.
    pub(crate) fn vendors(&self) -> Vec<Vendor> {
        Vendor::ALL.into_iter().filter(|vendor| self.upstream(*vendor).is_some()).collect()
    }
}

/// Without `/v1`, which OpenAI's clients want in the address and Anthropic's do not.
fn base_url(variable: &str, address: &str) -> Result<String, Failure> {
    let refuse = |why: &str| {
        Failure::new(ExitCode::Refused, format!("{variable} is not an address of a model: {why}"))
            .hint(format!("export {variable}=https://host.example, or unset it"))
    };
    let rest = address
        .strip_prefix("https://")
        .or_else(|| address.strip_prefix("http://"))
        .ok_or_else(|| refuse("it starts with neither https:// nor http://"))?;
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.is_empty() || authority.contains('@') {
        return Err(refuse("it has no host, or a user name"));
    }
    if address.contains(['?', '#']) || address.chars().any(|c| c.is_control() || c == ' ') {
        return Err(refuse("it has characters that an address cannot have"));
    }
    let address = address.trim_end_matches('/');
    Ok(address.strip_suffix("/v1").unwrap_or(address).to_owned())
}

impl Secrets for CallerSecrets {
    fn upstream(&self, vendor: Vendor) -> Option<Upstream> {
        match vendor {
            Vendor::Anthropic => self.anthropic.clone(),
            Vendor::Openai => self.openai.clone(),
        }
    }

    fn git(&self, host: &HostPort) -> Option<GitCredential> {
        let credential = |user: &str, token: &Option<String>| {
            token.clone().map(|token| GitCredential { user: user.to_owned(), token })
        };
        let of_host = match &host.host {
            Host::Name(name) if name == "github.com" => credential("x-access-token", &self.github),
            Host::Name(name) if name == "gitlab.com" => credential("oauth2", &self.gitlab),
            Host::Name(_) | Host::Address(_) => None,
        };
        of_host.or_else(|| credential("x-access-token", &self.any_git_host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(env: &[(&str, &str)]) -> Result<CallerSecrets, Failure> {
        let env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        CallerSecrets::of(&Caller { env, current_folder: "/".into() })
    }

    #[test]
    fn a_vendor_without_a_key_has_no_upstream() {
        let found =
            secrets(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")]).unwrap();
        assert_eq!(found.vendors(), [Vendor::Openai]);
    }

    #[test]
    fn the_version_in_an_address_is_ours_to_add() {
        for address in ["http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1/", "http://127.0.0.1:9"] {
            let found = secrets(&[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", address)]).unwrap();
            assert_eq!(found.upstream(Vendor::Openai).unwrap().base_url, "http://127.0.0.1:9");
        }
    }

    #[test]
    fn an_address_that_is_none_is_refused_before_anything_runs() {
        for address in ["api.example", "ftp://x", "https://", "https://me:pw@host", "https://host/a?b"] {
            assert!(
                secrets(&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", address)]).is_err(),
                "{address}"
            );
        }
    }

    #[test]
    fn a_token_goes_to_its_own_host_alone() {
        let found = secrets(&[("GITHUB_TOKEN", "t")]).unwrap();
        assert!(found.git(&"github.com:443".parse().unwrap()).is_some());
        assert!(found.git(&"github.com.evil.example:443".parse().unwrap()).is_none());
    }
}
