use std::path::Path;

use cofferdam_core::{Network, Source};

use super::*;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("repo/.git")).unwrap();
        std::fs::create_dir_all(folder.path().join("home")).unwrap();
        Self { folder }
    }

    fn repo(&self) -> std::path::PathBuf {
        self.folder.path().canonicalize().unwrap().join("repo")
    }

    fn ask(&self, change: impl FnOnce(&mut RunArgs)) -> Result<Accepted, UsageError> {
        let env =
            [("HOME".into(), self.folder.path().join("home").into()), ("LANG".into(), "C.UTF-8".into())];
        let caller = Caller { env: env.into_iter().collect(), current_folder: self.repo() };
        let mut args = RunArgs { command: vec!["true".into()], ..RunArgs::default() };
        change(&mut args);
        request_from(&args, RunId::new(1, 2), &caller, &Settings::default(), &CallerSecrets::default())
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
    assert_eq!(request.agent, AgentSetup::Command { argv: vec!["true".to_owned()] });
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
    assert!(place.error(|args| args.env = vec!["NOT_SET".into()]).contains("no such variable"));
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
    assert!(place.error(|args| args.command = vec!["".into()]).contains("neither a prompt nor a program"));
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
