use std::ffi::OsStr;
use std::path::Path;

use cofferdam_core::{Limits, Mask, Network, Origin, Source, Work, read_layer};

use super::super::input::input_from;
use super::*;

struct Place {
    folder: tempfile::TempDir,
    settings: Option<String>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("repo/.git")).unwrap();
        std::fs::create_dir_all(folder.path().join("home")).unwrap();
        Self { folder, settings: None }
    }

    fn repo(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("repo")
    }

    fn ask(&self, change: impl FnOnce(&mut RunArgs)) -> Result<Accepted, UsageError> {
        self.ask_with(&[], change)
    }

    fn ask_with(
        &self,
        variables: &[(&str, &str)],
        change: impl FnOnce(&mut RunArgs),
    ) -> Result<Accepted, UsageError> {
        let env =
            [("HOME".into(), self.folder.path().join("home").into()), ("LANG".into(), "C.UTF-8".into())];
        let more = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let env = env.into_iter().chain(more).collect();
        let caller = Caller { env, current_folder: self.repo() };
        let mut args = RunArgs { command: vec!["true".into()], ..RunArgs::default() };
        change(&mut args);
        let settings = match &self.settings {
            Some(text) => {
                Effective::default().under(&read_layer(text, &Origin::Global("/g".into())).unwrap())
            }
            None => Effective::default(),
        };
        let repository = repository_from(&args, &caller)?;
        let apply_to = apply_to(&args, &repository)?;
        let input = input_from(&args, &caller, repository.repo)?;
        let (id, secrets) = (RunId::new(1, 2), CallerSecrets::default());
        let accepted = request_from(&input, &id, &caller, Workspace::FromInput, &settings, &secrets)?;
        Ok(Accepted { apply_to, ..accepted })
    }

    fn policy(&self, change: impl FnOnce(&mut RunArgs)) -> Policy {
        self.ask(change).unwrap().request.policy
    }

    fn error(&self, change: impl FnOnce(&mut RunArgs)) -> String {
        self.ask(change).unwrap_err().to_string()
    }
}

#[test]
fn without_flags_the_run_is_sealed_and_on_the_repository_around() {
    let place = Place::new();
    let accepted = place.ask(|_| {}).unwrap();
    let request = accepted.request;
    assert_eq!(request.source, Source::Local { path: place.repo() });
    assert_eq!(request.work, Work::Program { argv: vec!["true".to_owned()] });
    assert_eq!((request.policy.mode, request.policy.network), (Mode::Native, Network::None));
    assert_eq!(request.policy.limits, Limits::default());
    assert_eq!(request.policy.limits_rule, LimitsRule::BestEffort);
    assert_eq!(request.retry.max_attempts, 1);
    assert_eq!(accepted.apply_to, None);
}

#[test]
fn flags_become_the_policy() {
    let place = Place::new();
    let policy = place.policy(|args| {
        args.network = Some("open".into());
        args.timeout = Some("1h30m".into());
        args.memory = Some("512m".into());
        args.cpus = Some("0.5".into());
        args.pids = Some("64".into());
        args.disk = Some("1g".into());
        args.env = vec!["LANG".into()];
        args.unmask = vec![".env.test".into()];
    });
    assert_eq!(policy.network, Network::Open);
    assert_eq!(policy.timeout_ms, 5_400_000);
    assert_eq!((policy.limits.memory_bytes, policy.limits.cpus_milli), (512 << 20, 500));
    assert_eq!((policy.limits.pids, policy.limits.workspace_bytes), (64, 1 << 30));
    assert_eq!(policy.env, ["LANG"]);
    assert!(policy.mask.show.contains(&".env.test".to_owned()) && policy.mask.hide == Mask::default().hide);
}

#[test]
fn host_opens_the_network_and_refuses_to_pretend_otherwise() {
    let place = Place::new();
    assert_eq!(place.policy(|args| args.mode = Some("host".into())).network, Network::Open);
    let error = place.error(|args| {
        args.mode = Some("host".into());
        args.network = Some("none".into());
    });
    assert_eq!(error, "--mode host cannot close the network");
    assert!(place.error(|args| args.mode = Some("dcoker".into())).contains("unknown mode `dcoker`"));
}

#[test]
fn a_variable_is_passed_by_name_and_its_value_is_never_repeated() {
    let place = Place::new();
    let error = place.error(|args| args.env = vec!["TOKEN=hunter2".into()]);
    assert!(error.contains("TOKEN=…") && !error.contains("hunter2"), "{error}");
    assert!(
        place.error(|args| args.env = vec!["NOT_SET".into()]).contains("no variable NOT_SET is set here")
    );
    assert!(place.error(|args| args.env = vec!["1X".into()]).contains("not the name of a variable"));
}

#[test]
fn apply_needs_a_repository_on_this_machine() {
    let place = Place::new();
    assert_eq!(place.ask(|args| args.apply = true).unwrap().apply_to, Some(place.repo()));
    for change in [
        |args: &mut RunArgs| args.no_repo = true,
        |args: &mut RunArgs| args.repo = Some("https://h/a".into()),
    ] {
        let error = place.error(|args| {
            args.apply = true;
            change(args);
        });
        assert!(error.starts_with("--apply needs a repository"), "{error}");
    }
}

#[test]
fn no_repo_starts_empty_anywhere() {
    let place = Place::new();
    assert_eq!(place.ask(|args| args.no_repo = true).unwrap().request.source, Source::Empty);
}

#[test]
fn a_command_must_be_text_and_name_a_program() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let bad = OsStr::from_bytes(b"\xff").to_owned();
    assert!(place.error(|args| args.command = vec!["sh".into(), bad]).contains("UTF-8"));
    assert!(place.error(|args| args.command = vec!["".into()]).contains("name must not be empty"));
}

#[test]
fn a_mount_is_refused_where_it_would_open_the_sandbox() {
    let place = Place::new();
    assert!(place.error(|args| args.mount = vec!["/".into()]).contains("whole machine"));
    assert!(place.error(|args| args.mount = vec!["../home:rw".into()]).contains("your home"));
    let mounted = place.policy(|args| args.mount = vec![".:rw".into()]).mounts;
    assert!(mounted[0].path == place.repo() && Path::new(&mounted[0].path).is_absolute());
}

#[test]
fn a_bad_pattern_is_refused() {
    let place = Place::new();
    assert!(place.error(|args| args.unmask = vec!["[".into()]).contains("is not a pattern"));
}

/// A place with settings.
fn with_settings(text: &str) -> Place {
    Place { settings: Some(text.to_owned()), ..Place::new() }
}

#[test]
fn the_settings_become_the_policy_and_flags_go_before_them() {
    let place = with_settings(
        r#"{"sandbox": {
            "mode": "docker", "timeout_seconds": 60, "max_attempts": 3, "network": "sealed", "env_allowlist": ["LANG", "UNSET"],
            "limits": {"memory": "1g", "pids": 64, "open_files": 128, "output": "1m", "disk": "5g"},
            "mask": {"hide": ["*.p12"], "show": ["a.pem"]},
            "docker": {"memory": "3g", "image": "mine/own:1"}
        }}"#,
    );
    let request = place.ask(|_| {}).unwrap().request;
    let policy = request.policy;
    assert_eq!((policy.mode, policy.network, policy.timeout_ms), (Mode::Docker, Network::Sealed, 60_000));
    assert_eq!(
        policy.limits.memory_bytes,
        3 << 30,
        "what is set for the mode goes before what is set for all"
    );
    assert_eq!((policy.limits.pids, policy.limits.open_files), (64, 128));
    assert_eq!((policy.limits.output_bytes, policy.limits.workspace_bytes), (1 << 20, 5 << 30));
    assert_eq!((request.retry.max_attempts, policy.env), (3, vec!["LANG".to_owned()]));
    assert!(policy.mask.hide.contains(&"*.p12".to_owned()) && policy.mask.hide.contains(&"*.pem".to_owned()));
    assert!(policy.mask.show.contains(&"a.pem".to_owned()));
    assert_eq!(policy.container.image.as_str(), "mine/own:1");
    let request = place
        .ask(|args| {
            args.mode = Some("native".into());
            args.timeout = Some("5s".into());
            args.memory = Some("64m".into());
            args.max_attempts = Some("2".into());
            args.network = Some("none".into());
        })
        .unwrap()
        .request;
    let policy = request.policy;
    assert_eq!((policy.mode, policy.network, policy.timeout_ms), (Mode::Native, Network::None, 5_000));
    assert_eq!((policy.limits.memory_bytes, policy.limits.pids), (64 << 20, 64));
    assert_eq!(request.retry.max_attempts, 2);
}

#[test]
fn a_policy_goes_before_the_settings_and_flags_before_it() {
    let place = with_settings(
        r#"{
            "sandbox": {
                "mode": "docker", "env_allowlist": ["LANG"], "docker": {"memory": "3g"},
                "policies": {"strict": {
                    "mode": "native", "allow": ["npm", "a.example:443"], "limits": {"memory": "1g"},
                    "timeout_seconds": 30, "max_attempts": 2, "env_allowlist": [], "mask": {"hide": ["x"]}
                }}
            },
            "egress": {"sets": {"npm": ["npm.corp.example:443"]}}
        }"#,
    );
    let strict = |args: &mut RunArgs| args.policy = Some("strict".into());
    let request = place.ask(strict).unwrap().request;
    let policy = request.policy;
    assert_eq!((policy.mode, policy.network, policy.timeout_ms), (Mode::Native, Network::Sealed, 30_000));
    let allowed: Vec<String> = policy.egress.allow.iter().map(ToString::to_string).collect();
    assert_eq!(allowed, ["npm.corp.example:443", "a.example:443"]);
    assert_eq!((policy.limits.memory_bytes, request.retry.max_attempts), (1 << 30, 2));
    assert!(policy.env.is_empty() && policy.mask.hide.contains(&"x".to_owned()));
    let policy = place.policy(|args| {
        strict(args);
        args.mode = Some("docker".into());
        args.memory = Some("2g".into());
    });
    assert_eq!((policy.mode, policy.limits.memory_bytes), (Mode::Docker, 2 << 30));
    let error = place.error(|args| args.policy = Some("lax".into()));
    assert_eq!(error, "--policy: `lax`: the settings have no such policy");
}

#[test]
fn keys_of_models_are_passed_on_with_an_open_network_alone() {
    let place = with_settings(r#"{"sandbox": {"env_allowlist": ["ANTHROPIC_API_KEY", "LANG"]}}"#);
    let ask = |network: &str| {
        place
            .ask_with(&[("ANTHROPIC_API_KEY", "sk-ant-x")], |args| args.network = Some(network.to_owned()))
            .unwrap()
    };
    for closed in ["sealed", "none"] {
        let accepted = ask(closed);
        assert_eq!(accepted.request.policy.env, ["LANG"]);
        let said = accepted.notices.concat();
        assert!(said.contains("ANTHROPIC_API_KEY") && !said.contains("sk-ant-x"), "{said}");
    }
    let accepted = ask("open");
    assert_eq!((accepted.request.policy.env.len(), accepted.notices.len()), (2, 0));
}

#[test]
fn a_network_that_was_set_long_ago_is_named_where_it_is_in_the_way() {
    let place = with_settings(r#"{"sandbox": {"network": "sealed"}}"#);
    let error = place.error(|args| args.mode = Some("host".into()));
    assert!(error.contains("sandbox.network in /g"), "{error}");
}
