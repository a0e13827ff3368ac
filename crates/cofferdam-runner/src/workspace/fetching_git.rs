//! Git as it is started to fetch: with the configuration of the user of this machine, or for somebody else with nobody's.

use std::process::{Command, Stdio};

use cofferdam_broker::GitCredential;
use cofferdam_core::{HostPort, RepoUrl};

use crate::programs::Git;

/// Where git's helper finds what it answers with.
const USER: &str = "COFFERDAM_FETCH_USER";
const TOKEN: &str = "COFFERDAM_FETCH_TOKEN";

/// What of this process's own environment is passed on to a fetch for somebody else: which authorities are trusted, and
/// the agent that holds the keys for ssh, which only an address needs that the operator listed.
const PASSED_ON: [&str; 5] =
    ["SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSH_AUTH_SOCK"];

/// Git with the caller's configuration, because that is where their credentials and ssh settings are.
pub(super) fn fetching_git(git: &Git, url: &RepoUrl, credential: Option<&GitCredential>) -> Command {
    let mut command = git.command();
    // Variables that would make git work on another repository than the one it is told.
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_ALLOW_PROTOCOL",
    ] {
        command.env_remove(name);
    }
    restrict(&mut command, url, credential);
    command
}

/// Git for somebody else: without the user's configuration, where a helper could hand out the user's own credentials and a
/// rewritten address lead elsewhere, and without the user's environment, which can do the same.
pub(super) fn foreign_git(git: &Git, url: &RepoUrl, credential: Option<&GitCredential>) -> Command {
    let mut command = git.command_without_environment();
    command.envs(PASSED_ON.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    restrict(&mut command, url, credential);
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        // Where a `.netrc` is looked for, and what is a home without one.
        .env("HOME", "/dev/null")
        // What came small stays small: as the pack that it came in, and never as loose objects.
        .args(["-c", "fetch.unpackLimit=1"]);
    command
}

/// Without hooks, prompts, submodules and any protocol beyond the address's own: a server can redirect, and the caller's
/// `insteadOf` rewrite, to `ext::` and so to any program.
fn restrict(command: &mut Command, url: &RepoUrl, credential: Option<&GitCredential>) {
    let is_local = url.as_str().get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    for setting in [
        "protocol.allow=never",
        "protocol.https.allow=always",
        "protocol.ssh.allow=always",
        "protocol.git.allow=always",
        if is_local { "protocol.file.allow=always" } else { "protocol.file.allow=never" },
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "submodule.recurse=false",
        "fetch.recurseSubmodules=false",
        "gc.auto=0",
        "maintenance.auto=false",
    ] {
        command.args(["-c", setting]);
    }
    command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C").stdin(Stdio::null());
    if let (Some(host), Some(credential)) = (url.https_host(), credential) {
        answer_with(command, &host, credential);
    }
}

/// Makes git answer this host, if it asks, with the credential that the broker would use. It is in the
/// environment of git alone, and not in its arguments, which everybody on the machine can read. The caller's
/// own helpers are left out: git would hand them the credential to keep, and some keep it on the disk.
fn answer_with(command: &mut Command, host: &HostPort, credential: &GitCredential) {
    let helper = format!(
        "credential.https://{host}.helper=!f() {{ test \"$1\" != get || \
         printf 'username=%s\\npassword=%s\\n' \"${USER}\" \"${TOKEN}\"; }}; f"
    );
    command.args(["-c", "credential.helper=", "-c", &helper]);
    command.env(USER, &credential.user).env(TOKEN, &credential.token);
}

#[cfg(test)]
mod tests {
    use cofferdam_core::LocalUrls;

    use super::*;

    fn git_for(url: &str) -> Command {
        let url = RepoUrl::parse(url, LocalUrls::Allow).unwrap();
        let credential = GitCredential { user: "me".to_owned(), token: "a-secret-token".to_owned() };
        fetching_git(&Git::of_this_process(None).unwrap(), &url, Some(&credential))
    }

    #[test]
    fn a_token_is_in_no_argument_and_meant_for_its_host_alone() {
        let git = git_for("https://host.example:8443/a/b.git");
        let arguments: Vec<_> = git.get_args().map(|text| text.to_string_lossy().into_owned()).collect();
        assert!(arguments.iter().all(|text| !text.contains("a-secret-token")), "{arguments:?}");
        assert!(
            arguments.iter().any(|text| text.starts_with("credential.https://host.example:8443.helper=!")),
            "{arguments:?}"
        );
        assert!(git.get_envs().any(|(name, value)| name == TOKEN && value.is_some()));
    }

    #[test]
    fn a_token_is_not_for_addresses_that_are_not_https() {
        for url in ["ssh://git@host.example/a", "git@host.example:a", "git://host.example/a", "file:///a"] {
            assert!(git_for(url).get_envs().all(|(name, _)| name != TOKEN), "{url}");
        }
    }

    /// The attack: a variable of the operator's own changes what git does (`GIT_SSH_COMMAND`, `GIT_SSL_NO_VERIFY`,
    /// `GIT_EXEC_PATH`), or a key in it is there for whoever takes over the git that reads a stranger's objects.
    #[test]
    fn git_for_somebody_else_has_nothing_of_the_users_configuration_or_environment() {
        let url = RepoUrl::parse("ssh://git@host.example/a", LocalUrls::Refuse).unwrap();
        let mut git = foreign_git(&Git::of_this_process(None).unwrap(), &url, None);
        let set = |name: &str| git.get_envs().find(|(set, _)| *set == name).map(|(_, value)| value.is_some());
        assert_eq!((set("GIT_CONFIG_GLOBAL"), set("GIT_CONFIG_NOSYSTEM")), (Some(true), Some(true)));
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "there is something to leave out");
        let shown =
            git.current_dir("/").args(["-c", "alias.environment=!env", "environment"]).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        // What git itself sets for its programs, and what the shell does.
        let gits_own =
            ["GIT_PREFIX", "GIT_EXEC_PATH", "GIT_CONFIG_PARAMETERS", "PWD", "SHLVL", "OLDPWD", "_"];
        let ours =
            ["PATH", "HOME", "LC_ALL", "GIT_TERMINAL_PROMPT", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL"];
        let names = shown.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
        let others: Vec<_> = names
            .filter(|name| !gits_own.contains(name) && !ours.contains(name))
            .filter(|name| !PASSED_ON.contains(name) && *name != "GIT_ATTR_NOSYSTEM")
            .collect();
        assert!(shown.contains("LC_ALL=C") && others.is_empty(), "{others:?}");
    }
}
