//! What opens models and git hosts: keys from the caller's environment, and the logins of the agent CLIs. It goes to the
//! broker, and nowhere else.

use std::collections::BTreeMap;
use std::path::Path;

use cofferdam_agent::{KeyOrder, OwnKey, profile};
use cofferdam_broker::{GitCredential, GitRepository, Locked, NoGitCredential, Secrets, Upstream};
use cofferdam_core::{Agent, Credential, GitSettings, Login, SystemConfig, Vendor, Work};
use cofferdam_runner::logins::{LoginError, LoginPlaces, Logins};
use cofferdam_runner::{ModelChoice, NoModel};

use crate::caller::{Caller, now_ms};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::followed_config::FollowedConfig;
use crate::followed_logins::FollowedLogins;
use crate::git_tokens::GitTokens;

/// Where the login of Codex at ChatGPT is served.
const CHATGPT: &str = "https://chatgpt.com/backend-api/codex";

/// The caller's keys and logins.
#[derive(Clone, Default)]
pub(crate) struct CallerSecrets {
    anthropic: Option<Credential>,
    openai: Option<Credential>,
    /// Keys that are for one agent alone.
    own: BTreeMap<Agent, Credential>,
    logins: FollowedLogins,
    anthropic_url: String,
    openai_url: String,
    chatgpt_url: String,
    git: GitTokens,
}

/// The logins of the caller's CLIs.
pub(crate) fn logins(caller: &Caller) -> Logins {
    Logins::new(login_places(caller))
}

/// Where they are, as the caller's variables say.
pub(crate) fn login_places(caller: &Caller) -> LoginPlaces {
    login_places_with(caller, &SystemConfig::default())
}

/// The same with what an operator has set before the variables.
pub(crate) fn login_places_with(caller: &Caller, config: &SystemConfig) -> LoginPlaces {
    let of_variable = |name: &str| caller.var(name).map(|path| caller.resolve(path.as_ref()));
    LoginPlaces::of(caller.home().as_deref(), |name| config.folder(name).or_else(|| of_variable(name)))
}

impl CallerSecrets {
    /// Reads the caller's keys of models and the addresses that they are meant for. Tokens for git hosts are bound by settings:
    /// [`Self::with_git`].
    pub(crate) fn of(caller: &Caller) -> Result<Self, Failure> {
        let var = |name: &str| caller.var(name).and_then(|value| value.to_str()).map(str::to_owned);
        let address = |variable: &str| var(variable).map(|text| base_url(variable, &text)).transpose();
        let (anthropic_url, openai_url) = (address("ANTHROPIC_BASE_URL")?, address("OPENAI_BASE_URL")?);
        let without_version = |url: &String| url.strip_suffix("/v1").unwrap_or(url).to_owned();
        let or = |url: Option<String>, public: &str| url.unwrap_or_else(|| public.to_owned());
        let own = |agent| {
            let key = profile(agent).own_key.as_ref()?;
            (key.read)(var(key.variable)?)
        };
        Ok(Self {
            anthropic: var("ANTHROPIC_API_KEY")
                .map(Credential::ApiKey)
                .or_else(|| var("ANTHROPIC_AUTH_TOKEN").map(Credential::Bearer)),
            openai: var("OPENAI_API_KEY").map(Credential::ApiKey),
            own: Agent::ALL.into_iter().filter_map(|agent| Some((agent, own(agent)?))).collect(),
            logins: FollowedLogins::fixed(logins(caller)),
            anthropic_url: or(anthropic_url.as_ref().map(without_version), "https://api.anthropic.com"),
            openai_url: or(openai_url.as_ref().map(without_version), "https://api.openai.com"),
            chatgpt_url: or(openai_url, CHATGPT),
            git: GitTokens::default(),
        })
    }

    /// The same with logins in the folders that an operator has set, while they are.
    pub(crate) fn following(self, caller: &Caller, config: FollowedConfig) -> Self {
        Self { logins: FollowedLogins::following(caller, config), ..self }
    }

    /// Where logins are looked for now.
    pub(crate) fn places(&self) -> LoginPlaces {
        self.logins.places()
    }

    /// The same with the caller's tokens for git hosts, bound by these settings. `state` is the folder with the record of what is
    /// trusted.
    pub(crate) fn with_git(
        self,
        caller: &Caller,
        settings: &GitSettings,
        state: Option<&Path>,
    ) -> Result<Self, Failure> {
        Ok(Self { git: GitTokens::of(caller, settings, state)?, ..self })
    }

    /// Whose model a coding agent can use: the first that there is a key for, or else a login of its own CLI.
    pub(crate) fn choose(&self, agent: Agent, vendors: &[Vendor]) -> Result<ModelChoice, LoginError> {
        let with_key = vendors.iter().find_map(|&vendor| Some((vendor, self.key(vendor, Some(agent))?)));
        if let Some((vendor, key)) = with_key {
            return Ok(ModelChoice { vendor, login: key.own.map_or(Login::Key, |own| own.login.clone()) });
        }
        let mut problem = LoginError::Missing { agent };
        for &vendor in vendors {
            match self.logins.now().current(agent, vendor, now_ms()) {
                Ok(open) => return Ok(ModelChoice { vendor, login: open.login }),
                Err(LoginError::Missing { .. }) => {}
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }

    /// The same for what a run does; `None` for a program.
    pub(crate) fn choose_for(&self, work: &Work) -> Result<Option<ModelChoice>, LoginError> {
        match work {
            Work::Program { .. } | Work::Direct(_) => Ok(None),
            Work::Agent { agent, setup } => self.choose_for_agent(*agent, setup.model.as_deref()).map(Some),
            Work::Spec(setup) => self.choose_for_agent(setup.agent, setup.model.as_deref()).map(Some),
        }
    }

    fn choose_for_agent(&self, agent: Agent, model: Option<&str>) -> Result<ModelChoice, LoginError> {
        self.choose(agent, (profile(agent).vendors)(model))
    }

    /// What opens the model of some work. A login is for the CLI that it comes with, and a direct run has none.
    pub(crate) fn model_of(&self, work: &Work) -> Result<Option<ModelChoice>, NoModel> {
        match work {
            Work::Direct(_) if self.key(Vendor::Anthropic, None).is_some() => {
                Ok(Some(ModelChoice { vendor: Vendor::Anthropic, login: Login::Key }))
            }
            Work::Direct(_) => Err(NoModel {
                message: "there is no key for Anthropic's models".to_owned(),
                hint: "export ANTHROPIC_API_KEY=… (or ANTHROPIC_AUTH_TOKEN) where the service is started; a login of \
                       Claude Code is for its CLI alone"
                    .to_owned(),
            }),
            Work::Program { .. } | Work::Spec(_) | Work::Agent { .. } => self.choose_for(work).map_err(|error| no_model(&error)),
        }
    }

    /// What an agent reaches its model with, in words that hold no secret.
    pub(crate) fn describe(&self, work: &Work) -> Result<String, LoginError> {
        let (Some(agent), Some(ModelChoice { vendor, login })) = (work.agent(), self.choose_for(work)?)
        else {
            return Ok("a program needs none".to_owned());
        };
        let what = match login {
            Login::Key => "the key",
            Login::ClaudeAi { .. } | Login::ChatGpt { .. } => "the login",
        };
        let place = match self.key(vendor, Some(agent)) {
            Some(Key { own: Some(own), .. }) => own.variable.to_owned(),
            Some(Key { credential: Credential::Bearer(_), .. }) => "ANTHROPIC_AUTH_TOKEN".to_owned(),
            Some(_) => vendor.key_variable().to_owned(),
            None => self.logins.now().current(agent, vendor, now_ms())?.path.display().to_string(),
        };
        Ok(format!("{what} in {place}"))
    }

    /// The key that counts for a vendor: that for every agent, or the one that is for this agent alone.
    fn key(&self, vendor: Vendor, agent: Option<Agent>) -> Option<Key<'_>> {
        let for_all = match vendor {
            Vendor::Anthropic => self.anthropic.as_ref(),
            Vendor::Openai => self.openai.as_ref(),
        };
        let for_all = for_all.map(|credential| Key { credential, own: None });
        let own = agent.and_then(|agent| {
            let own = profile(agent).own_key.as_ref().filter(|key| key.vendor == vendor)?;
            Some((own.order, Key { credential: self.own.get(&agent)?, own: Some(own) }))
        });
        match own {
            Some((KeyOrder::BeforeVendorKey, own)) => Some(own),
            Some((KeyOrder::AfterVendorKey, own)) => for_all.or(Some(own)),
            None => for_all,
        }
    }

    fn address(&self, vendor: Vendor, credential: &Credential) -> String {
        match (vendor, credential) {
            (Vendor::Anthropic, _) => self.anthropic_url.clone(),
            (Vendor::Openai, Credential::ChatGpt { .. }) => self.chatgpt_url.clone(),
            (Vendor::Openai, Credential::ApiKey(_) | Credential::Bearer(_)) => self.openai_url.clone(),
        }
    }
}

/// A key from the environment.
#[derive(Clone, Copy)]
struct Key<'a> {
    credential: &'a Credential,
    /// What it is, if it is for one agent alone.
    own: Option<&'static OwnKey>,
}

/// What is said of an agent without a model.
pub(crate) fn no_model(error: &LoginError) -> NoModel {
    let message = match error {
        LoginError::Missing { agent } => {
            format!("there is neither a key nor a login for {}", profile(*agent).title)
        }
        LoginError::Expired { .. } | LoginError::Unusable { .. } => error.to_string(),
    };
    NoModel { message, hint: error.hint() }
}

/// An address that a key is sent to.
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
    Ok(address.trim_end_matches('/').to_owned())
}

impl Secrets for CallerSecrets {
    fn upstream(&self, vendor: Vendor, agent: Option<Agent>) -> Result<Upstream, Locked> {
        let credential = match (self.key(vendor, agent), agent) {
            (Some(key), _) => key.credential.clone(),
            (None, None) => return Err(Locked::NoKey),
            (None, Some(agent)) => match self.logins.now().current(agent, vendor, now_ms()) {
                Ok(open) => open.credential,
                Err(error) => return Err(Locked::Login(no_model(&error).message)),
            },
        };
        Ok(Upstream { base_url: self.address(vendor, &credential), credential })
    }

    fn git(&self, repository: &GitRepository<'_>) -> Result<GitCredential, NoGitCredential> {
        self.git.find(repository)
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_core::PromptSetup;

    use super::*;

    fn secrets(env: &[(&str, &str)]) -> Result<CallerSecrets, Failure> {
        let env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        CallerSecrets::of(&Caller { env, current_folder: "/".into() })
    }

    fn url(found: &CallerSecrets, vendor: Vendor, agent: Option<Agent>) -> Option<String> {
        found.upstream(vendor, agent).ok().map(|upstream| upstream.base_url)
    }

    #[test]
    fn a_vendor_without_a_key_has_no_upstream() {
        let found =
            secrets(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")]).unwrap();
        assert_eq!(url(&found, Vendor::Openai, None).as_deref(), Some("https://api.openai.com"));
        assert!(found.upstream(Vendor::Anthropic, None).err() == Some(Locked::NoKey));
        let choice = found.choose(Agent::OpenCode, &Vendor::ALL).unwrap();
        assert_eq!((choice.vendor, choice.login), (Vendor::Openai, Login::Key));
    }

    #[test]
    fn the_version_in_an_address_is_ours_to_add() {
        for address in ["http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1/", "http://127.0.0.1:9"] {
            let found = secrets(&[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", address)]).unwrap();
            assert_eq!(url(&found, Vendor::Openai, None).as_deref(), Some("http://127.0.0.1:9"));
        }
    }

    /// A home with logins of all three CLIs, that never expire.
    fn logged_in(env: &[(&str, &str)]) -> (tempfile::TempDir, CallerSecrets) {
        let home = tempfile::tempdir().unwrap();
        let files = [
            (".claude/.credentials.json", r#"{"claudeAiOauth": {"accessToken": "of-claude"}}"#),
            (".codex/auth.json", r#"{"tokens": {"access_token": "of-chatgpt", "account_id": "a"}}"#),
            (".local/share/opencode/auth.json", r#"{"openai": {"type": "api", "key": "of-opencode"}}"#),
        ];
        for (name, content) in files {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
        let own = home.path().to_str().unwrap().to_owned();
        let found = secrets(&[env, &[("HOME", &own)]].concat()).unwrap();
        (home, found)
    }

    fn opener(found: &CallerSecrets, vendor: Vendor, agent: Option<Agent>) -> Option<String> {
        found.upstream(vendor, agent).ok().map(|upstream| match upstream.credential {
            Credential::ApiKey(secret) | Credential::Bearer(secret) => secret,
            Credential::ChatGpt { token, .. } => token,
        })
    }

    #[test]
    fn a_login_opens_the_model_for_its_own_cli_alone() {
        use Agent::{ClaudeCode, Codex, OpenCode};
        let (_home, found) = logged_in(&[]);
        let anthropic = |agent| opener(&found, Vendor::Anthropic, agent);
        let openai = |agent| opener(&found, Vendor::Openai, agent);
        assert_eq!(anthropic(Some(ClaudeCode)).as_deref(), Some("of-claude"));
        assert_eq!((anthropic(Some(OpenCode)), anthropic(Some(Codex)), anthropic(None)), (None, None, None));
        assert_eq!(openai(Some(Codex)).as_deref(), Some("of-chatgpt"));
        assert_eq!(openai(Some(OpenCode)).as_deref(), Some("of-opencode"));
        assert_eq!(openai(None), None, "a plain program has keys alone");
    }

    #[test]
    fn a_key_in_the_environment_counts_more_than_a_login() {
        let token = ("CLAUDE_CODE_OAUTH_TOKEN", "long-lived");
        let choose = |found: &CallerSecrets| found.choose(Agent::ClaudeCode, &[Vendor::Anthropic]);
        let own = |found: &CallerSecrets| opener(found, Vendor::Anthropic, Some(Agent::ClaudeCode));
        let (_home, found) = logged_in(&[token]);
        assert_eq!(own(&found).as_deref(), Some("long-lived"));
        assert_eq!(
            choose(&found).unwrap().login,
            Login::ClaudeAi { subscription: None, rate_limit_tier: None }
        );
        assert_eq!(opener(&found, Vendor::Anthropic, None), None, "it is Claude Code's");
        let (_home, found) = logged_in(&[token, ("ANTHROPIC_API_KEY", "key")]);
        assert_eq!(own(&found).as_deref(), Some("key"));
        assert_eq!(choose(&found).unwrap().login, Login::Key);
    }

    #[test]
    fn the_key_of_codex_goes_before_every_other_and_is_for_codex_alone() {
        use Agent::{Codex, OpenCode};
        let own = ("CODEX_API_KEY", " of-codex\n");
        let openai = |found: &CallerSecrets, agent| opener(found, Vendor::Openai, agent);
        let codex = Work::Agent { agent: Codex, setup: PromptSetup::default() };

        let (_home, found) = logged_in(&[own]);
        assert_eq!(openai(&found, Some(Codex)).as_deref(), Some("of-codex"), "before its login");
        assert_eq!(found.choose(Codex, &[Vendor::Openai]).unwrap().login, Login::Key);
        assert_eq!(found.describe(&codex).unwrap(), "the key in CODEX_API_KEY");
        assert_eq!(openai(&found, Some(OpenCode)).as_deref(), Some("of-opencode"));
        assert_eq!(openai(&found, None), None);

        let (_home, found) = logged_in(&[own, ("OPENAI_API_KEY", "of-openai")]);
        assert_eq!(openai(&found, Some(Codex)).as_deref(), Some("of-codex"));
        assert_eq!(openai(&found, Some(OpenCode)).as_deref(), Some("of-openai"));
        assert_eq!(openai(&found, None).as_deref(), Some("of-openai"));

        let (_home, found) = logged_in(&[("CODEX_API_KEY", "  ")]);
        assert_eq!(openai(&found, Some(Codex)).as_deref(), Some("of-chatgpt"), "nothing but spaces is none");
    }

    #[test]
    fn a_login_at_chatgpt_is_sent_to_chatgpt_or_where_the_caller_says_in_so_many_words() {
        let codex = |found: &CallerSecrets| url(found, Vendor::Openai, Some(Agent::Codex)).unwrap();
        assert_eq!(codex(&logged_in(&[]).1), CHATGPT);
        assert_eq!(
            codex(&logged_in(&[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1/")]).1),
            "http://127.0.0.1:9/v1"
        );
        let opencode = url(&logged_in(&[]).1, Vendor::Openai, Some(Agent::OpenCode));
        assert_eq!(opencode.as_deref(), Some("https://api.openai.com"));
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
}
