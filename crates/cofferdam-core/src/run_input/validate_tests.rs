use super::super::test_machine::{Machine, may_name_path};
use super::super::{InputErrorKind, MountInput, RunOptions};
use super::*;
use crate::policy::{Mode, Network};
use crate::settings::{Origin, read_layer};

const SETTINGS: &str = r#"{
    "sandbox": {"mode": "apple", "policies": {"p": {"mode": "native", "timeout_seconds": 7}, "q": {"timeout_seconds": 8}}},
    "agents": {
        "a": {"provider": "openai", "model": "gpt-x", "sandbox_mode": "docker", "policy": "p", "system_prompt": "Be brief."},
        "b": {"provider": "anthropic", "policy": "p"},
        "bad": {"provider": "anthropic", "model": "-x"},
        "lost": {"provider": "codex", "policy": "none"}
    },
    "roles": {"tester": {"agent": "a", "append_system_prompt": "Test first."}}
}"#;

fn check(input: &RunInput, change: impl FnOnce(&mut Context<'_>)) -> Result<Validated, InputError> {
    check_placed(input, Placing::Attached, change)
}

fn check_placed(
    input: &RunInput,
    placing: Placing<'_>,
    change: impl FnOnce(&mut Context<'_>),
) -> Result<Validated, InputError> {
    let settings = Effective::default().under(&read_layer(SETTINGS, &Origin::Global("/g".into())).unwrap());
    let (id, machine) = (RunId::new(1, 2), Machine::new());
    let mut context = Context {
        id: &id,
        settings: &settings,
        syntax: InputSyntax::Flags,
        limits_rule: LimitsRule::BestEffort,
        local_urls: LocalUrls::Allow,
        max_execution_time_ms: None,
        placing,
        workspace: Workspace::FromInput,
        may_name_path: &may_name_path,
        surroundings: &machine,
    };
    change(&mut context);
    validate(input, &context)
}

fn task(options: RunOptions) -> RunInput {
    RunInput { task: Some("x".to_owned()), options, ..RunInput::default() }
}

fn own(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn chosen(input: &RunInput) -> Result<(&'static str, Mode, u64), String> {
    let validated = check(input, |_| {}).map_err(|error| error.shown(InputSyntax::Flags))?;
    let request = validated.request;
    Ok((request.work.provider(), request.policy.mode, request.policy.timeout_ms))
}

#[test]
fn an_agent_of_the_settings_brings_its_own_mode_and_policy() {
    let agent = |name: &str| task(RunOptions { agent: own(name), ..RunOptions::default() });
    assert_eq!(chosen(&task(RunOptions::default())), Ok(("claude_code", Mode::Apple, 600_000)));
    assert_eq!(chosen(&agent("a")), Ok(("codex", Mode::Docker, 7_000)));
    assert_eq!(chosen(&agent("b")), Ok(("claude_code", Mode::Native, 7_000)));
    assert_eq!(chosen(&agent("claude")), Ok(("claude_code", Mode::Apple, 600_000)));
    let with =
        |policy: &str| task(RunOptions { agent: own("a"), policy: own(policy), ..RunOptions::default() });
    assert_eq!(chosen(&with("q")), Ok(("codex", Mode::Docker, 8_000)), "a policy without a mode has no say");
    assert_eq!(chosen(&with("p")), Ok(("codex", Mode::Native, 7_000)), "the request goes before the agent");
    let role = |name: &str| RunInput { role: own(name), ..task(RunOptions::default()) };
    assert_eq!(chosen(&role("tester")), Ok(("codex", Mode::Docker, 7_000)));
    let said = |input: &RunInput| chosen(input).unwrap_err();
    assert_eq!(said(&agent("nobody")), "--agent: `nobody` is not an agent");
    assert_eq!(
        said(&agent("lost")),
        "--agent: the policy of the agent, `none`: the settings have no such policy"
    );
    assert_eq!(said(&role("docser")), "--role: the settings have no role `docser`");
    assert!(said(&role("boss")).contains("`boss` is not a role"));
    assert!(said(&agent("bad")).contains("`-x` is not the name of a model"));
}

#[test]
fn the_words_of_a_role_follow_those_of_its_agent() {
    let input = RunInput { role: own("tester"), ..task(RunOptions::default()) };
    let request = check(&input, |_| {}).unwrap().request;
    let Work::Agent { setup, .. } = request.work else { panic!("{:?}", request.work) };
    assert_eq!(setup.system_prompt.as_deref(), Some("Be brief.\n\nTest first."));
}

#[test]
fn in_a_queue_a_role_needs_no_settings_and_says_who_may_take_the_run() {
    let place = PlaceId::new(1, 2);
    let queued = |input: &RunInput| {
        let validated = check_placed(input, Placing::Queued { place: &place }, |_| {});
        validated.map(|validated| validated.request.placement)
    };
    let docs =
        RunInput { role: own("docser"), command: Some(vec!["true".to_owned()]), ..RunInput::default() };
    assert_eq!(queued(&docs).unwrap().role.as_str(), "docser");
    let here = RunInput { repo: own("/srv/a"), ..task(RunOptions::default()) };
    let placement = queued(&here).unwrap();
    assert_eq!(placement.place, Some(place.clone()), "only nodes of this machine see the path");
    assert_eq!(placement.agent.unwrap().as_str(), "claude_code");
    let attached = RunInput { priority: Some(3), ..docs };
    assert_eq!(check(&attached, |_| {}).unwrap_err().field, "role");
}

#[test]
fn what_the_operator_allows_is_the_most_and_the_default() {
    let timed = |asked: Option<u64>, most: Option<u64>| {
        let input = task(RunOptions { timeout_ms: asked, ..RunOptions::default() });
        check(&input, |context| context.max_execution_time_ms = most).unwrap().request.policy.timeout_ms
    };
    assert_eq!(timed(None, None), 600_000);
    assert_eq!(timed(None, Some(300_000)), 300_000);
    assert_eq!(timed(Some(900_000), Some(300_000)), 300_000);
    assert_eq!(timed(Some(5_000), Some(300_000)), 5_000);
    assert_eq!(timed(None, Some(u64::from(u32::MAX))), super::super::bounds::MOST_TIMEOUT_MS);
}

#[test]
fn paths_that_a_caller_may_not_mount_are_refused_before_they_are_looked_at() {
    for path in ["/srv", "/does/not/exist"] {
        let mounts = vec![MountInput { path: path.to_owned(), writable: false }];
        let error = check(&task(RunOptions { mounts, ..RunOptions::default() }), |_| {}).unwrap_err();
        assert_eq!((error.field, error.kind), ("options.mounts", InputErrorKind::NotAllowed), "{path}");
    }
}

#[test]
fn an_error_names_the_field_as_its_caller_wrote_it() {
    let input = task(RunOptions { max_tokens: Some(0), ..RunOptions::default() });
    let error = check(&input, |_| {}).unwrap_err();
    assert_eq!(error.shown(InputSyntax::Flags), "--max-tokens: out of range (1 to 4294967295)");
    assert_eq!(error.shown(InputSyntax::Fields), "options.max_tokens: out of range (1 to 4294967295)");
    let input = task(RunOptions { agent: own("codex"), max_turns: Some(1), ..RunOptions::default() });
    let error = check(&input, |context| context.syntax = InputSyntax::Fields).unwrap_err();
    assert_eq!((error.field, error.kind), ("options.max_turns", InputErrorKind::Conflict));
    assert!(error.hint.contains("options.max_model_calls") && !error.hint.contains("--"), "{error:?}");
}

#[test]
fn a_folder_that_the_caller_has_chosen_is_the_workspace() {
    let folder = Path::new("/srv/plain");
    let validated =
        check(&task(RunOptions::default()), |context| context.workspace = Workspace::Folder(folder));
    let validated = validated.unwrap();
    assert_eq!(validated.request.source, Source::Local { path: folder.to_owned() });
    assert_eq!(
        (validated.request.policy.network, validated.mode_by.as_str()),
        (Network::Sealed, "sandbox.mode in /g")
    );
}
