use super::*;

fn updates(pairs: &[(&str, Option<&str>)]) -> ConfigUpdates {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect()
}

fn config(pairs: &[(&str, &str)]) -> SystemConfig {
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| (*key, Some(*value))).collect();
    SystemConfig::default().changed(&updates(&pairs)).unwrap()
}

fn file(text: &str) -> Effective {
    Effective::default().under(&read_layer(text, &Origin::Global("/g".into())).unwrap())
}

#[test]
fn every_key_has_a_name_of_its_own_and_a_sentence_and_is_in_the_reference() {
    let page = reference();
    let names: std::collections::BTreeSet<_> = CONFIG_KEYS.iter().map(|key| key.name).collect();
    assert_eq!(names.len(), CONFIG_KEYS.len());
    for key in CONFIG_KEYS {
        assert!(key.summary.ends_with('.'), "{}", key.name);
        assert!(page.contains(&format!("\n| `{}` | ", key.name)), "{}", key.name);
    }
    assert!(!page.contains("{{"));
}

#[test]
fn with_nothing_set_it_is_a_sandbox_by_default_and_that_is_native() {
    let report = SystemConfig::default().report(&Effective::default());
    let environment = report.values.iter().find(|value| value.key == "EXECUTION_ENVIRONMENT").unwrap();
    assert_eq!((environment.value.as_str(), environment.origin.kind()), ("sandbox", "default"));
    assert_eq!((report.mode, report.launch_mode.as_str()), (Mode::Native, "docker"));
    assert_eq!(report.warnings, Vec::<String>::new());
}

#[test]
fn the_environment_is_the_mode_of_a_sandbox_that_was_set_and_docker_where_none_was() {
    let mode = |config: &SystemConfig, below: &Effective| config.over(below).settings.sandbox.mode;
    let sandbox = config(&[("EXECUTION_ENVIRONMENT", "Sandbox")]);
    assert_eq!(mode(&sandbox, &Effective::default()), Mode::Docker);
    assert_eq!(mode(&sandbox, &file(r#"{"sandbox": {"mode": "native"}}"#)), Mode::Native);
    assert_eq!(mode(&sandbox, &file(r#"{"sandbox": {"mode": "host"}}"#)), Mode::Docker);
    let both = config(&[("EXECUTION_ENVIRONMENT", "sandbox"), ("sandbox.mode", "apple")]);
    assert_eq!(mode(&both, &Effective::default()), Mode::Apple);
    let host = config(&[("EXECUTION_ENVIRONMENT", "host"), ("sandbox.mode", "apple")]);
    let effective = host.over(&Effective::default());
    assert_eq!(effective.settings.sandbox.mode, Mode::Host);
    assert_eq!(effective.origin_of(MODE), &Origin::SystemConfig("EXECUTION_ENVIRONMENT"));
    assert_eq!(host.report(&Effective::default()).launch_mode.as_str(), "process");
}

#[test]
fn host_and_a_network_come_with_what_to_know_of_them() {
    let warnings = |config: &SystemConfig, below: &Effective| config.report(below).warnings.join("\n");
    let host = config(&[("EXECUTION_ENVIRONMENT", "host")]);
    assert!(warnings(&host, &Effective::default()).contains("until `service.allowed_modes` has `host:open`"));
    let allowed = file(r#"{"service": {"allowed_modes": ["host:open"]}}"#);
    assert!(!warnings(&host, &allowed).contains("allowed_modes"));
    let network = config(&[("SANDBOX_DOCKER_NETWORK", "bridge")]);
    assert!(warnings(&network, &Effective::default()).contains("network `open` alone"));
    let agent = file(r#"{"agents": {"coder": {"provider": "codex", "sandbox_mode": "apple"}}}"#);
    assert!(warnings(&SystemConfig::default(), &agent).contains("`coder` runs in `apple`"));
}

#[test]
fn an_executor_is_chosen_for_all_and_for_a_role_and_a_role_can_inherit_it() {
    let below = file(r#"{"roles": {"tester": {"agent": "opencode"}}}"#);
    let set = config(&[
        ("LLM_EXECUTOR", "codex-cli"),
        ("WORKER_LLM_EXECUTOR", "claude-code"),
        ("TESTER_LLM_EXECUTOR", "inherit"),
    ]);
    let settings = set.over(&below).settings;
    assert_eq!(settings.service.default_agent, Agent::Codex);
    let of = |role: &Option<crate::settings::RoleSettings>| {
        role.as_ref().and_then(|role| role.agent.as_ref()).map(ToString::to_string)
    };
    assert_eq!(of(&settings.roles.worker).as_deref(), Some("claude_code"));
    assert_eq!(of(&settings.roles.tester).as_deref(), Some("codex"));
    assert_eq!(of(&settings.roles.docser), None);
}

#[test]
fn a_change_is_all_or_nothing_and_names_what_is_wrong_and_the_nearest() {
    let kept = config(&[("MAX_CONCURRENT_WORKERS", "3")]);
    for (key, value, words) in [
        ("EXECUTON_ENVIRONMENT", "host", "did you mean `EXECUTION_ENVIRONMENT`?"),
        ("max_concurrent_worker", "1", "did you mean `MAX_CONCURRENT_WORKERS`?"),
        ("service.allowed_modes", "host", "`service.allowed_modes` is not a key"),
        (
            "EXECUTION_ENVIRONMENT",
            "foo",
            "EXECUTION_ENVIRONMENT: `foo` is not an environment; type `host` or `sandbox`",
        ),
        ("MAX_CONCURRENT_WORKERS", "-1", "MAX_CONCURRENT_WORKERS: `-1` is not a whole number"),
        ("SANDBOX_DOCKER_IMAGE", "openTiger/worker", "type `opentiger/worker`"),
        ("SANDBOX_DOCKER_NETWORK", "host", "this machine's own network"),
        ("LLM_EXECUTOR", "gemini", "type `claude_code`, `codex` or `opencode`"),
        ("sandbox.mode", "host", "EXECUTION_ENVIRONMENT=host"),
        ("sandbox.mode", "vm", "type one of"),
        ("CLAUDE_AUTH_DIR", "claude", "not an absolute path"),
        ("CODEX_AUTH_DIR", "/a\nb", "not one line"),
    ] {
        let asked = updates(&[("sandbox.max_attempts", Some("2")), (key, Some(value))]);
        let error = kept.changed(&asked).unwrap_err();
        assert_eq!(error.field, "updates");
        assert!(error.problem.contains(words), "{key}={value}: {}", error.problem);
    }
    assert_eq!(kept.iter().collect::<Vec<_>>(), [("MAX_CONCURRENT_WORKERS", "3")]);
}

#[test]
fn null_and_an_empty_text_unset_a_key() {
    let kept = config(&[
        ("MAX_CONCURRENT_WORKERS", "0"),
        ("LLM_EXECUTOR", "codex"),
        ("CODEX_AUTH_DIR", "/srv/codex"),
    ]);
    assert_eq!(kept.folder("CODEX_AUTH_DIR"), Some("/srv/codex".into()));
    assert_eq!(kept.folder("MAX_CONCURRENT_WORKERS"), None);
    let fewer =
        kept.changed(&updates(&[("LLM_EXECUTOR", None), ("MAX_CONCURRENT_WORKERS", Some(" "))])).unwrap();
    assert_eq!(fewer.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["CODEX_AUTH_DIR"]);
}

#[test]
fn what_a_newer_version_wrote_is_left_out() {
    let entries = [("LLM_EXECUTOR", "codex"), ("NEW_KEY", "x"), ("sandbox.max_attempts", "many")];
    let read = SystemConfig::of_record(entries.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!(read.iter().collect::<Vec<_>>(), [("LLM_EXECUTOR", "codex")]);
}
