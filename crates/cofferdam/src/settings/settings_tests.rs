use std::os::unix::fs::symlink;

use cofferdam_core::Mode;

use super::*;

/// A home and a repository.
struct Place {
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("repo/.git")).unwrap();
        std::fs::create_dir_all(folder.path().join("repo/.cofferdam")).unwrap();
        std::fs::create_dir_all(folder.path().join("repo/deep")).unwrap();
        std::fs::create_dir_all(folder.path().join("home/.cofferdam")).unwrap();
        Self { folder, variables: Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn global(&self, text: &str) {
        std::fs::write(self.path("home/.cofferdam/settings.json"), text).unwrap();
    }

    fn local(&self, text: &str) {
        std::fs::write(self.path("repo/.cofferdam/settings.json"), text).unwrap();
    }

    fn caller(&self) -> Caller {
        let mut env: std::collections::BTreeMap<_, _> =
            self.variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        env.insert("HOME".into(), self.path("home").into());
        Caller { env, current_folder: self.path("repo/deep") }
    }

    fn load(&self) -> Result<Loaded, Failure> {
        load(&self.caller(), &local_folder(&self.caller()))
    }

    fn trust(&self) {
        let caller = self.caller();
        let file = local_file(&local_folder(&caller), caller.state_folder().as_deref()).unwrap().unwrap();
        TrustRecord::trust(&caller.open_state().unwrap(), &file, 1).unwrap();
    }

    fn mode(&self) -> Mode {
        self.load().unwrap().effective.settings.sandbox.mode
    }
}

const HOST: &str = r#"{"sandbox": {"mode": "host", "timeout_seconds": 60}}"#;

#[test]
fn an_untrusted_file_may_only_tighten_until_it_is_trusted_and_again_after_an_edit() {
    let place = Place::new();
    place.local(HOST);
    let loaded = place.load().unwrap();
    assert_eq!(loaded.effective.settings.sandbox.mode, Mode::Native);
    assert_eq!(loaded.effective.settings.sandbox.timeout_seconds.count(), 60);
    let warning = loaded.local.unwrap().warning().unwrap();
    assert!(
        warning.contains("left out: sandbox.mode\n") && warning.contains("`cofferdam trust`"),
        "{warning}"
    );
    place.trust();
    assert_eq!(place.mode(), Mode::Host);
    assert!(place.load().unwrap().local.unwrap().warning().is_none());
    place.local(&HOST.replace("60", "61"));
    assert_eq!(place.mode(), Mode::Native);
    place.local(HOST);
    assert_eq!(place.mode(), Mode::Host, "it is trusted by its content");
}

#[test]
fn what_changes_while_trust_is_set_aside_is_not_trusted_afterwards() {
    let place = Place::new();
    let home = place.caller().open_state().unwrap();
    let file = place.path("repo/.cofferdam/settings.json");
    let set_aside = || TrustRecord::set_aside(&home, &place.path("repo")).unwrap();
    place.local(HOST);
    place.trust();
    let aside = set_aside();
    assert_eq!(place.mode(), Mode::Native, "whoever dies now leaves it untrusted");
    assert_eq!(aside.settle(), Vec::<PathBuf>::new());
    assert_eq!(place.mode(), Mode::Host, "it is as it was");
    // What was trusted is brought back.
    place.local("{}");
    let aside = set_aside();
    place.local(HOST);
    assert_eq!(aside.settle(), std::slice::from_ref(&file));
    assert_eq!(place.mode(), Mode::Native);
    place.trust();
    // It is removed, and brought back by the next.
    let aside = set_aside();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(aside.settle(), [file]);
    place.local(HOST);
    assert_eq!(place.mode(), Mode::Native);
    // That of another repository stays trusted.
    place.trust();
    let other = TrustRecord::set_aside(&home, &place.path("other")).unwrap();
    assert_eq!(place.mode(), Mode::Host);
    assert_eq!(other.settle(), Vec::<PathBuf>::new());
}

#[test]
fn a_copy_at_another_place_is_not_trusted() {
    let place = Place::new();
    place.local(HOST);
    place.trust();
    std::fs::rename(place.path("repo"), place.path("moved")).unwrap();
    std::fs::create_dir_all(place.path("repo/deep")).unwrap();
    let loaded = load(&place.caller(), &place.path("moved")).unwrap();
    assert_eq!(loaded.effective.settings.sandbox.mode, Mode::Native);
}

#[test]
fn the_record_is_closed_to_others_and_can_be_revoked() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.local(HOST);
    place.trust();
    let record = place.path("home/.cofferdam/trust.json");
    assert_eq!(record.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let home = place.caller().open_state().unwrap();
    let path = place.path("repo/.cofferdam/settings.json");
    assert!(TrustRecord::revoke(&home, &path).unwrap());
    assert!(!TrustRecord::revoke(&home, &path).unwrap());
    assert_eq!(place.mode(), Mode::Native);
    std::fs::write(record, "{").unwrap();
    assert!(place.load().unwrap_err().message().contains("trust.json cannot be used"));
}

#[test]
fn the_state_folder_is_nobodys_local_file() {
    let place = Place::new();
    place.global(HOST);
    let caller = Caller { current_folder: place.path("home"), ..place.caller() };
    let loaded = load(&caller, &local_folder(&caller)).unwrap();
    assert!(loaded.local.is_none());
    assert_eq!(loaded.effective.settings.sandbox.mode, Mode::Host);
}

#[test]
fn what_is_not_a_plain_file_is_refused_and_not_waited_for() {
    let place = Place::new();
    let file = place.path("repo/.cofferdam/settings.json");
    let refused = |said: &str| {
        let message = place.load().unwrap_err().message().to_owned();
        assert!(message.contains(said), "{message}");
        if file.is_dir() { std::fs::remove_dir(&file).unwrap() } else { std::fs::remove_file(&file).unwrap() }
    };
    std::fs::write(place.path("elsewhere.json"), HOST).unwrap();
    symlink(place.path("elsewhere.json"), &file).unwrap();
    refused("it is a symlink");
    rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    refused("it is not a plain file");
    std::fs::create_dir(&file).unwrap();
    refused("it is not a plain file");
    place.local(&format!("{{{}}}", " ".repeat(300 << 10)));
    refused("it is larger than 256 KiB");
    std::fs::write(&file, b"\xff").unwrap();
    refused("it is not valid UTF-8");
    place.local("{\"sandbox\": {\"mode\": \"docker\",}}");
    refused("repo/.cofferdam/settings.json cannot be used: line 1, column 31: this is not JSON");
    std::fs::remove_dir(place.path("repo/.cofferdam")).unwrap();
    std::fs::create_dir(place.path("other")).unwrap();
    std::fs::write(place.path("other/settings.json"), HOST).unwrap();
    symlink(place.path("other"), place.path("repo/.cofferdam")).unwrap();
    assert!(place.load().unwrap_err().message().contains("it is a symlink"));
}

#[test]
fn a_file_of_somebody_else_is_like_any_other() {
    let place = Place::new();
    place.local(HOST);
    let file = place.path("repo/.cofferdam/settings.json");
    // Only root can give a file away.
    if std::os::unix::fs::chown(&file, Some(4321), Some(4321)).is_ok() {
        assert_eq!(place.mode(), Mode::Native);
        place.trust();
        assert_eq!(place.mode(), Mode::Host);
    }
}

#[test]
fn variables_decide_the_mode_over_the_files() {
    for (file, variables, mode) in [
        ("{}", &[][..], Ok(Mode::Native)),
        (r#"{"sandbox": {"mode": "apple"}}"#, &[], Ok(Mode::Apple)),
        (r#"{"sandbox": {"mode": "docker"}}"#, &[("EXECUTION_ENVIRONMENT", "host")], Ok(Mode::Host)),
        (r#"{"sandbox": {"mode": "docker"}}"#, &[("LAUNCH_MODE", " Process ")], Ok(Mode::Host)),
        (r#"{"sandbox": {"mode": "apple"}}"#, &[("EXECUTION_ENVIRONMENT", "sandbox")], Ok(Mode::Apple)),
        (r#"{"sandbox": {"mode": "native"}}"#, &[("LAUNCH_MODE", "docker")], Ok(Mode::Native)),
        (r#"{"sandbox": {"mode": "host"}}"#, &[("EXECUTION_ENVIRONMENT", " SANDBOX\n")], Ok(Mode::Docker)),
        ("{}", &[("LAUNCH_MODE", "docker")], Ok(Mode::Docker)),
        ("{}", &[("LAUNCH_MODE", "docker"), ("EXECUTION_ENVIRONMENT", "sandbox")], Ok(Mode::Docker)),
        ("{}", &[("LAUNCH_MODE", ""), ("EXECUTION_ENVIRONMENT", " ")], Ok(Mode::Native)),
        ("{}", &[("EXECUTION_ENVIRONMENT", "docker")], Err("`docker` is neither `host` nor `sandbox`")),
        ("{}", &[("LAUNCH_MODE", "sandbox")], Err("`sandbox` is neither `process` nor `docker`")),
        (
            "{}",
            &[("LAUNCH_MODE", "process"), ("EXECUTION_ENVIRONMENT", "sandbox")],
            Err("EXECUTION_ENVIRONMENT and LAUNCH_MODE contradict each other"),
        ),
    ] {
        let mut place = Place::new();
        place.global(file);
        place.variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        match (place.load(), mode) {
            (Ok(loaded), Ok(mode)) => {
                assert_eq!(loaded.effective.settings.sandbox.mode, mode, "{file} {variables:?}");
            }
            (Err(failure), Err(said)) => assert!(failure.message().contains(said), "{}", failure.message()),
            (loaded, mode) => panic!("{file} {variables:?}: {loaded:?} and not {mode:?}"),
        }
    }
}

#[test]
fn variables_go_before_the_files_and_empty_ones_do_not() {
    let mut place = Place::new();
    place.global(r#"{"sandbox": {"docker": {"image": "file:1", "network": "file", "cpus": 2}}}"#);
    let shown = |place: &Place| {
        let docker = place.load().unwrap().effective.settings.sandbox.docker;
        assert_eq!(docker.cpus.unwrap().milli(), 2000);
        (docker.image.to_string(), docker.network.to_string(), docker.host.map(|host| host.to_string()))
    };
    let names = ["SANDBOX_DOCKER_IMAGE", "SANDBOX_DOCKER_NETWORK", "DOCKER_HOST"];
    assert_eq!(shown(&place), ("file:1".to_owned(), "file".to_owned(), None));
    place.variables = names.map(|name| (name, String::new())).to_vec();
    assert_eq!(shown(&place), ("file:1".to_owned(), "file".to_owned(), None));
    let values = ["env:1", "default", "unix:///run/x.sock"].map(str::to_owned);
    place.variables = names.into_iter().zip(values).collect();
    assert_eq!(
        shown(&place),
        ("env:1".to_owned(), "default".to_owned(), Some("unix:///run/x.sock".to_owned()))
    );
    let effective = place.load().unwrap().effective;
    assert_eq!(
        effective.origin_of(&["sandbox", "docker", "image"]),
        &Origin::Environment("SANDBOX_DOCKER_IMAGE")
    );
}

#[test]
fn the_longest_time_of_a_task_can_be_a_variable() {
    let mut place = Place::new();
    place.global(r#"{"service": {"max_execution_time_ms": 1000}}"#);
    let most = |place: &Place| place.load().unwrap().effective.settings.service.max_execution_time_ms.count();
    assert_eq!(most(&place), 1000);
    place.variables = vec![("MAX_EXECUTION_TIME", "60000".to_owned())];
    assert_eq!(most(&place), 60_000);
}

#[test]
fn where_the_service_listens_can_be_a_variable() {
    let mut place = Place::new();
    place.global(r#"{"service": {"listen": "127.0.0.1:1000"}}"#);
    let listen = |place: &Place| place.load().unwrap().effective.settings.service.listen.to_string();
    assert_eq!(listen(&place), "127.0.0.1:1000");
    place.variables = vec![("COFFERDAM_LISTEN", "127.0.0.1:2000".to_owned())];
    assert_eq!(listen(&place), "127.0.0.1:2000");
}

#[test]
fn a_variable_of_containers_that_is_wrong_is_told_to_whoever_wants_one() {
    for (name, value, said) in [
        ("SANDBOX_DOCKER_IMAGE", "openTiger/worker:latest", "type `opentiger/worker:latest`"),
        ("SANDBOX_DOCKER_NETWORK", "host", "type `bridge`"),
        ("DOCKER_HOST", "ssh://far", "another machine"),
    ] {
        let mut place = Place::new();
        place.variables = vec![(name, value.to_owned())];
        let settings = place.load().unwrap().effective.settings;
        assert_eq!(settings, Settings::default(), "whoever wants none is not bothered");
        let failure = docker(&place.caller(), &settings).unwrap_err();
        assert_eq!(failure.code(), ExitCode::Refused);
        assert!(failure.message().starts_with(&format!("the variable {name} cannot be used: ")));
        assert!(
            failure.message().contains(said) && failure.message().contains(value),
            "{}",
            failure.message()
        );
    }
}

#[test]
fn many_writers_at_once_lose_nothing() {
    let place = Place::new();
    let home = place.caller().open_state().unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (home, place) = (&home, &place);
            scope.spawn(move || {
                let file = LocalFile {
                    path: place.path(&format!("{number}")),
                    text: String::new(),
                    sha256: "x".to_owned(),
                };
                TrustRecord::trust(home, &file, 1).unwrap();
                set_mode(home, Mode::Docker).unwrap();
            });
        }
    });
    assert_eq!(TrustRecord::read(Some(home.root())).unwrap().files().count(), 8);
    assert_eq!(place.mode(), Mode::Docker);
}

#[test]
fn a_link_to_the_settings_stays_a_link() {
    let place = Place::new();
    std::fs::write(place.path("dotfiles.json"), "{\n  \"prices\": {}\n}\n").unwrap();
    symlink(place.path("dotfiles.json"), place.path("home/.cofferdam/settings.json")).unwrap();
    set_mode(&place.caller().open_state().unwrap(), Mode::Apple).unwrap();
    assert!(place.path("home/.cofferdam/settings.json").is_symlink());
    let text = std::fs::read_to_string(place.path("dotfiles.json")).unwrap();
    assert_eq!(text, "{\n  \"sandbox\": { \"mode\": \"apple\" },\n  \"prices\": {}\n}\n");
}
