//! What the agent's environment says of the gateway. The probe gets the same, since it is started the same way.

use std::collections::BTreeMap;

use cofferdam_core::{Gateway, Job, gateway};

/// What never goes through the proxy: the gateway itself, and whatever the agent starts beside itself.
const NO_PROXY: &str = "127.0.0.1,localhost,::1";

/// The variables of a job whose gateway answers at this address.
pub(crate) fn of_gateway(job: &Job, setup: &Gateway, gateway_url: &str) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    if setup.proxy {
        // Programs differ in which case they read.
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            env.insert(name.to_owned(), gateway_url.to_owned());
        }
        for name in ["NO_PROXY", "no_proxy"] {
            env.insert(name.to_owned(), NO_PROXY.to_owned());
        }
        // Without it Node's own `fetch` knows no proxy.
        env.insert("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned());
    }
    if let Some(address) = setup.repository.as_deref().and_then(https_address) {
        rewrite_repository(job, address, gateway_url, &mut env);
    }
    env
}

/// Makes git ask the gateway for the run's repository. The rule is on a prefix, so it holds with and without a
/// `.git` at the end; what else begins alike reaches the broker too, which serves the one repository.
fn rewrite_repository(job: &Job, address: &str, gateway_url: &str, env: &mut BTreeMap<String, String>) {
    // The job may bring settings of its own in the same way.
    let count = job.env.get("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0_u32);
    let inside = format!("url.{gateway_url}{}/{address}.insteadOf", gateway::GIT);
    env.insert(format!("GIT_CONFIG_KEY_{count}"), inside);
    env.insert(format!("GIT_CONFIG_VALUE_{count}"), format!("https://{address}"));
    env.insert("GIT_CONFIG_COUNT".to_owned(), (count + 1).to_string());
}

/// Host and path of an https address, without credentials and `.git`.
fn https_address(address: &str) -> Option<&str> {
    let rest = address.strip_prefix("https://")?;
    let authority = rest.find('/').map_or(rest, |end| &rest[..end]);
    let rest = authority.rfind('@').map_or(rest, |at| &rest[at + 1..]);
    let rest = rest.trim_end_matches('/');
    let rest = rest.strip_suffix(".git").unwrap_or(rest);
    rest.contains('/').then_some(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn env(repository: Option<&str>, proxy: bool, job_env: &serde_json::Value) -> BTreeMap<String, String> {
        let setup = json!({
            "folder": "/run/cofferdam/egress", "port": 3128, "forwards": [], "placeholder": "p",
            "proxy": proxy, "vendor": null, "repository": repository,
        });
        let setup: Gateway = serde_json::from_value(setup).unwrap();
        let job = json!({
            "attempt": { "run": "run_00000000000000000000000000", "number": 1 },
            "agent": { "provider": "command", "argv": ["true"] },
            "working_directory": "/tmp", "env": job_env, "walls": cofferdam_core::WallPlan::none(),
            "probe_paths": [], "output_bytes": 1, "grace_ms": 1,
        });
        of_gateway(&serde_json::from_value(job).unwrap(), &setup, "http://127.0.0.1:3128")
    }

    #[test]
    fn git_asks_the_gateway_for_the_runs_repository_however_it_is_written() {
        for address in [
            "https://example.com/a/b",
            "https://example.com/a/b.git",
            "https://example.com/a/b.git/",
            "https://user:token@example.com/a/b.git",
        ] {
            let env = env(Some(address), false, &json!({}));
            assert_eq!(env["GIT_CONFIG_COUNT"], "1");
            let key = "url.http://127.0.0.1:3128/git/example.com/a/b.insteadOf";
            assert_eq!(env["GIT_CONFIG_KEY_0"], key, "{address}");
            assert_eq!(env["GIT_CONFIG_VALUE_0"], "https://example.com/a/b");
            assert_eq!(env.len(), 3);
        }
    }

    #[test]
    fn settings_that_the_job_brings_for_git_stay() {
        let env = env(Some("https://example.com/a/b"), false, &json!({ "GIT_CONFIG_COUNT": "2" }));
        assert_eq!(env["GIT_CONFIG_COUNT"], "3");
        assert!(env.contains_key("GIT_CONFIG_KEY_2") && !env.contains_key("GIT_CONFIG_KEY_0"));
    }

    #[test]
    fn a_repository_that_is_not_on_https_is_not_rewritten() {
        for address in ["git@example.com:a/b", "ssh://git@example.com/a/b", "https://example.com", "https://"]
        {
            assert!(env(Some(address), false, &json!({})).is_empty(), "{address}");
        }
    }

    #[test]
    fn a_proxy_is_named_in_both_cases_and_never_for_the_loopback() {
        let env = env(None, true, &json!({}));
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            assert_eq!(env[name], "http://127.0.0.1:3128");
        }
        assert_eq!(env["NO_PROXY"], env["no_proxy"]);
        assert!(env["no_proxy"].contains("127.0.0.1"));
    }
}
