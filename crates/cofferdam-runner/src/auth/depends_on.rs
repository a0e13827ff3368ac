//! Everything that the answer of a check depends on. If any of it changes, the answer of a minute ago is no answer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cofferdam_agent::profile;
use cofferdam_core::Agent;

use super::AuthCheck;
use crate::logins::LoginPlaces;

/// Variables that name programs, engines and folders, and beginnings of those that hold keys and addresses.
const NAMES: [&str; 6] =
    ["PATH", "HOME", "DOCKER_HOST", "CONTAINER_HOST", "XDG_DATA_HOME", "XDG_CONFIG_HOME"];
/// How variables of the vendors begin. Those of an agent begin with its program's name.
const OF_VENDORS: [&str; 2] = ["ANTHROPIC_", "OPENAI_"];

/// As bytes, in an order that does not change. Keys are among them: they are hashed, and nothing else.
#[must_use]
pub fn depends_on(
    check: &AuthCheck,
    env: &BTreeMap<OsString, OsString>,
    places: &LoginPlaces,
) -> Vec<Vec<u8>> {
    let policy = &check.policy;
    let mut parts: Vec<Vec<u8>> = [
        check.name.clone(),
        check.agent.as_str().to_owned(),
        format!("{:?}", check.model),
        policy.mode.to_string(),
        format!("{:?}", policy.network),
        format!("{:?}", policy.container),
        format!("{:?}", check.exclude),
        format!("{:?}", check.timeout),
    ]
    .map(String::into_bytes)
    .into();
    let of_agents = Agent::ALL.map(|agent| format!("{}_", profile(agent).program.to_uppercase()));
    let beginnings: Vec<&str> = OF_VENDORS.into_iter().chain(of_agents.iter().map(String::as_str)).collect();
    for (name, value) in env {
        let text = name.to_string_lossy();
        if NAMES.contains(&&*text) || beginnings.iter().any(|beginning| text.starts_with(beginning)) {
            parts.push([name.as_bytes(), b"=", value.as_bytes()].concat());
        }
    }
    let files = Agent::ALL.into_iter().flat_map(|agent| places.files(agent));
    parts.extend(files.map(|path| file_state(path).into_bytes()));
    parts
}

/// Which file it is and when it was changed. What is in it is not read.
fn file_state(path: &Path) -> String {
    let found = path.metadata().ok();
    found.map_or_else(String::new, |found| {
        format!("{} {} {} {} {}", found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec())
    })
}

#[cfg(test)]
mod tests {
    use cofferdam_core::Policy;

    use super::*;

    #[test]
    fn a_key_a_login_and_an_image_make_another_question() {
        let folder = tempfile::tempdir().unwrap();
        let ask = |variables: &[(&str, &str)], policy: Policy| {
            let env = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
            let (name, agent) = ("coder".to_owned(), Agent::ClaudeCode);
            let check = AuthCheck { name, agent, model: None, policy, exclude: None, timeout: None };
            depends_on(&check, &env, &LoginPlaces::of(Some(folder.path()), |_| None))
        };
        let plain = ask(&[], Policy::default());
        assert_eq!(ask(&[("EDITOR", "vi")], Policy::default()), plain);
        assert_ne!(ask(&[("ANTHROPIC_API_KEY", "k")], Policy::default()), plain);
        let mut other = Policy::default();
        other.container.image = "other:1".parse().unwrap();
        assert_ne!(ask(&[], other), plain);
        std::fs::create_dir(folder.path().join(".claude")).unwrap();
        std::fs::write(folder.path().join(".claude/.credentials.json"), "{}").unwrap();
        assert_ne!(ask(&[], Policy::default()), plain);
    }
}
