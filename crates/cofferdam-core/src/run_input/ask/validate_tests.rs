use serde_json::json;

use super::super::AskOptions;
use super::*;
use crate::direct::DirectTool;
use crate::egress::VendorTool;
use crate::ids::PlaceId;
use crate::policy::LimitsRule;
use crate::project::Project;
use crate::repo_url::LocalUrls;
use crate::run_input::test_machine::{Machine, may_name_path};
use crate::settings::{Effective, Origin, read_layer};

fn asked(options: AskOptions) -> AskInput {
    AskInput { prompt: "What is 2 + 2?".to_owned(), options, ..AskInput::default() }
}

fn check(input: &AskInput, resumed: Option<&RunRequest>) -> Result<RunRequest, InputError> {
    check_with(input, resumed, |_| {})
}

fn check_with(
    input: &AskInput,
    resumed: Option<&RunRequest>,
    change: impl FnOnce(&mut Context<'_>),
) -> Result<RunRequest, InputError> {
    let settings = r#"{"sandbox": {"mode": "docker", "network": "open", "max_attempts": 2}}"#;
    check_under(settings, input, resumed, change)
}

fn check_under(
    settings: &str,
    input: &AskInput,
    resumed: Option<&RunRequest>,
    change: impl FnOnce(&mut Context<'_>),
) -> Result<RunRequest, InputError> {
    let settings = Effective::default().under(&read_layer(settings, &Origin::Global("/g".into())).unwrap());
    let (id, machine, place) = (RunId::new(1, 2), Machine::new(), PlaceId::new(1, 2));
    let mut context = Context {
        id: &id,
        settings: &settings,
        syntax: InputSyntax::Fields,
        limits_rule: LimitsRule::Required,
        local_urls: LocalUrls::Refuse,
        max_execution_time_ms: Some(300_000),
        placing: Placing::Queued { place: &place },
        workspace: Workspace::FromInput,
        may_name_path: &may_name_path,
        surroundings: &machine,
    };
    change(&mut context);
    validate_ask(input, resumed, &context)
}

fn setup(request: &RunRequest) -> &DirectSetup {
    request.work.direct().expect("a question is direct work")
}

fn names(text: &[&str]) -> Vec<String> {
    text.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn a_question_alone_is_enough() {
    let request = check(&asked(AskOptions::default()), None).unwrap();
    let setup = setup(&request);
    assert_eq!((setup.model.as_str(), setup.max_turns), ("claude-sonnet-5", 10));
    assert_eq!(setup.tools, [DirectTool::WebFetch, DirectTool::WebSearch, DirectTool::TodoWrite]);
    assert!(!setup.has_project && setup.resume.is_none() && setup.output_schema.is_none());
    let policy = &request.policy;
    // What the settings say of sandboxes is about processes, and there is none.
    assert_eq!((policy.mode, policy.network), (Mode::Native, Network::Sealed));
    assert_eq!(policy.timeout_ms, 300_000);
    assert!(policy.egress.model && policy.egress.allow.is_empty() && policy.env.is_empty());
    assert_eq!(policy.egress.vendor_tools, [VendorTool::WebSearch]);
    assert_eq!((request.retry.max_attempts, request.source.clone()), (2, Source::Empty));
    assert_eq!(request.placement, Placement::default());
    let written = serde_json::to_string(&request).unwrap();
    assert!(written.contains(r#""agent":{"provider":"direct","prompt":"What is 2 + 2?""#), "{written}");
    assert_eq!(serde_json::from_str::<RunRequest>(&written).unwrap(), request);
}

#[test]
fn what_is_wrong_is_named_with_what_was_meant() {
    let problem = |options: AskOptions| {
        let error = check(&asked(options), None).unwrap_err();
        format!("{error}; {}", error.hint)
    };
    let own = |text: &str| Some(text.to_owned());
    let base = AskOptions::default;
    for (options, said) in [
        (
            AskOptions { model: own("sonet"), ..base() },
            "options.model: `sonet` is not a short name of a model; did you mean `sonnet`?",
        ),
        (AskOptions { allowed_tools: Some(names(&["WebFech"])), ..base() }, "did you mean `WebFetch`?"),
        (
            AskOptions { disallowed_tools: names(&["Bash"]), ..base() },
            "options.disallowed_tools: `Bash` is not a tool of direct runs; use one or more of `WebFetch`",
        ),
        (
            AskOptions { allowed_tools: Some(names(&["Read"])), ..base() },
            "`Read` reads a project's files, and there is no project; name one with project_id",
        ),
        (AskOptions { max_turns: Some(0), ..base() }, "options.max_turns: out of range (1 to 10000)"),
        (
            AskOptions { max_output_tokens: Some(128_001), ..base() },
            "options.max_output_tokens: out of range (1 to 128000)",
        ),
        (AskOptions { timeout_ms: Some(999), ..base() }, "options.timeout_ms: out of range"),
        (AskOptions { max_cost_usd: Some(0.0), ..base() }, "options.max_cost_usd: out of range"),
        (AskOptions { effort: own("hard"), ..base() }, "options.effort: `hard` is not an effort"),
        (AskOptions { resume: own("x"), ..base() }, "options.resume: `x` is not the id of a run"),
        (
            AskOptions { output_format: Some(json!({ "type": "text" })), ..base() },
            "options.output_format: is not an output format",
        ),
        (
            AskOptions { output_format: Some(json!({ "type": "json_schema", "schema": [] })), ..base() },
            "the schema is not an object",
        ),
        (
            AskOptions {
                output_format: Some(json!({ "type": "json_schema", "schema": { "not": { "$ref": "#" } } })),
                ..base()
            },
            "options.output_format: the schema refers to itself more than once for the same value (`#`); let it",
        ),
        (
            AskOptions { thinking: Some(json!({ "type": "deep" })), ..base() },
            "options.thinking: is not a way to think",
        ),
        (
            AskOptions { thinking: Some(json!({ "type": "enabled", "budget_tokens": 16_000 })), ..base() },
            "budget_tokens: must be at least 1024, and less than 16000",
        ),
        (
            AskOptions { system_prompt: own("a\0b"), ..base() },
            "options.system_prompt: must not contain a NUL character",
        ),
    ] {
        let text = problem(options.clone());
        assert!(text.contains(said), "{options:?}: {text}");
    }
    let error = check(&AskInput { prompt: " \n".to_owned(), ..AskInput::default() }, None).unwrap_err();
    assert_eq!(error.to_string(), "prompt: must not be empty");
}

#[test]
fn what_is_asked_for_is_what_is_done() {
    let options = AskOptions {
        max_turns: Some(1),
        model: Some("claude-haiku-4-5".to_owned()),
        system_prompt: Some("Be brief.".to_owned()),
        append_system_prompt: Some("  ".to_owned()),
        allowed_tools: Some(names(&["TodoWrite", "WebFetch", "WebFetch"])),
        disallowed_tools: names(&["WebFetch"]),
        max_output_tokens: Some(5_000),
        timeout_ms: Some(900_000),
        max_cost_usd: Some(0.5),
        output_format: Some(json!({ "type": "json_schema", "schema": { "type": "object" } })),
        thinking: Some(json!({ "type": "enabled", "budget_tokens": 2_000 })),
        effort: Some("xhigh".to_owned()),
        ..AskOptions::default()
    };
    let request = check(&asked(options), None).unwrap();
    let setup = setup(&request);
    assert_eq!(setup.tools, [DirectTool::TodoWrite]);
    assert_eq!(
        (setup.system_prompt.as_deref(), setup.append_system_prompt.as_deref()),
        (Some("Be brief."), None)
    );
    assert_eq!(setup.thinking, Some(Thinking::Enabled { budget_tokens: 2_000 }));
    assert_eq!((setup.effort, setup.max_output_tokens), (Some(Effort::Xhigh), 5_000));
    assert_eq!(setup.output_schema, Some(json!({ "type": "object" })));
    assert_eq!(request.policy.budget.max_cost_micro_usd, Some(500_000));
    assert_eq!(request.policy.timeout_ms, 300_000, "the operator allows no more");
    assert_eq!(request.policy.egress.vendor_tools, []);
}

/// The attack: the text of a project is still in the conversation that a later run goes on with.
#[test]
fn a_conversation_that_had_a_project_keeps_that_mark() {
    let project = Project {
        id: "prj_06ey5dtb0nxyva9ph4e4wpvgx8".parse().unwrap(),
        name: "shop".parse().unwrap(),
        source: Source::Local { path: "/srv/a".into() },
        max_concurrency: None,
    };
    let on_project =
        |context: &mut Context<'_>| context.workspace = Workspace::Project(Box::leak(Box::new(project)));
    let mut input = asked(AskOptions::default());
    input.project_id = Some("shop".to_owned());
    let first = check_with(&input, None, on_project).unwrap();
    assert_eq!(
        setup(&first).tools,
        [DirectTool::TodoWrite, DirectTool::Read, DirectTool::Grep, DirectTool::Glob]
    );
    assert!(
        setup(&first).has_project && first.placement.project.is_some() && first.placement.place.is_some()
    );
    let again = AskOptions { resume: Some(first.id.to_string()), ..AskOptions::default() };
    let second = check(&asked(again), Some(&first)).unwrap();
    assert!(setup(&second).has_project && second.source == Source::Empty);
    assert_eq!(
        setup(&second).tools,
        [DirectTool::WebSearch, DirectTool::TodoWrite],
        "no page may be fetched"
    );
    assert_eq!(setup(&second).resume.as_ref(), Some(&first.id));
}

#[test]
fn what_the_settings_close_is_left_out_or_refused_where_it_is_named() {
    let tools = |settings: &str, options: AskOptions, resumed| {
        let request = check_under(settings, &asked(options), resumed, |_| {});
        request.map(|request| (setup(&request).tools.clone(), request.policy.egress.vendor_tools))
    };
    let own = |tool: &str| AskOptions { allowed_tools: Some(names(&[tool])), ..AskOptions::default() };
    let off = r#"{"tools": {"web_search": "off"}}"#;
    let default = tools(off, AskOptions::default(), None).unwrap();
    assert_eq!(default, (vec![DirectTool::WebFetch, DirectTool::TodoWrite], Vec::new()));
    assert!(tools(off, own("WebSearch"), None).unwrap_err().hint.contains("tools.web_search"));
    let searx = r#"{"tools": {"web_search": "https://searx.example/search"}}"#;
    assert_eq!(tools(searx, own("WebSearch"), None).unwrap(), (vec![DirectTool::WebSearch], Vec::new()));

    let mut earlier = check(&asked(AskOptions::default()), None).unwrap();
    let Work::Direct(of_earlier) = &mut earlier.work else { panic!("{:?}", earlier.work) };
    of_earlier.has_project = true;
    let error = tools("{}", own("WebFetch"), Some(&earlier)).unwrap_err();
    assert!(error.hint.contains("tools.web_fetch.allow"), "{error}");
    let listed = r#"{"tools": {"web_fetch": {"allow": ["docs.rs:443"]}}}"#;
    assert_eq!(tools(listed, own("WebFetch"), Some(&earlier)).unwrap().0, [DirectTool::WebFetch]);
}
