use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::access::OwnerName;
use crate::ids::{PlaceId, ProjectId, RunId, SpecId};
use crate::policy::LimitsRule;
use crate::repo_url::LocalUrls;
use crate::run::Source;
use crate::run_input::test_machine::{Machine, may_name_path};
use crate::run_input::{Context, InputSyntax, Placing, Workspace, validate};
use crate::settings::{Agent, Effective, Origin, read_layer};
use crate::spec::{PHASES_VERSION, PhaseRecord};

fn project() -> Project {
    Project {
        id: ProjectId::new(1, 1),
        name: "acme/shop".parse().unwrap(),
        source: Source::Empty,
        max_concurrency: None,
    }
}

fn spec() -> Spec {
    Spec {
        id: SpecId::new(1, 1),
        owner: OwnerName::system(),
        project: Some(project().id),
        title: "Accept coupons".to_owned(),
        description: "At the till.".to_owned(),
        phases_version: PHASES_VERSION,
        plan: SpecPlan::default(),
        phases: BTreeMap::new(),
        last_run: None,
        version: 1,
        revision: 1,
        is_archived: false,
        created_at_ms: 1,
        updated_at_ms: 1,
    }
}

fn with_passed(phases: &[Phase]) -> Spec {
    let record = || PhaseRecord { state: PhaseState::Passed, tries: 2, ..PhaseRecord::default() };
    Spec { phases: phases.iter().map(|phase| (*phase, record())).collect(), ..spec() }
}

fn check(input: serde_json::Value, spec: &Spec) -> Result<Execution, InputError> {
    check_execution(&serde_json::from_value(input).unwrap(), spec, &project())
}

fn refused(input: serde_json::Value) -> (InputErrorKind, String) {
    let error = check(input, &spec()).unwrap_err();
    (error.kind, format!("{error}; {}", error.hint))
}

#[test]
fn a_text_has_to_say_something_and_has_an_end() {
    let with = |title: &str, description: &str| {
        let (title, description) = (title.to_owned(), description.to_owned());
        check_spec(&SpecInput { title, description, project_id: None })
    };
    assert!(with(&"x".repeat(500), &"ä".repeat(100_000)).is_ok());
    for (title, description, field) in [
        ("  ", "x", "title"),
        (&*"x".repeat(501), "x", "title"),
        ("x\0", "x", "title"),
        ("x", "\n", "description"),
        ("x", &*"x".repeat(100_001), "description"),
    ] {
        assert_eq!(with(title, description).unwrap_err().field, field);
    }
    assert!(check_spec_update(&UpdateSpecInput::default()).is_ok(), "it changes nothing");
    assert!(check_spec_update(&UpdateSpecInput { archived: Some(true), ..Default::default() }).is_ok());
    assert_eq!(check_rejection(Some(" use the tax table ")), Ok("use the tax table"));
    assert!(check_rejection(Some(" ")).is_err() && check_rejection(None).is_err());
    assert!(check_approval(None).is_ok() && check_approval(Some("\0")).is_err());
}

#[test]
fn what_is_not_there_is_refused_with_the_reason() {
    let (kind, said) = refused(json!({ "working_directory": "/srv" }));
    assert_eq!(kind, InputErrorKind::Invalid);
    assert!(said.contains("working_directory: is gone") && said.contains("leave it out"), "{said}");
    let (kind, said) = refused(json!({ "phases": ["explore", "implement"] }));
    assert_eq!(kind, InputErrorKind::Invalid);
    assert!(said.contains("cannot be done yet") && said.contains("start a run"), "{said}");
    let (_, said) = refused(json!({ "phases": ["desing"] }));
    assert!(said.contains("did you mean `design`?"), "{said}");
    assert_eq!(refused(json!({ "phases": [] })).0, InputErrorKind::Invalid);
}

#[test]
fn what_contradicts_itself_is_a_conflict() {
    for (input, part) in [
        (json!({ "project_id": "other" }), "not the project of this spec"),
        (json!({ "phases": ["explore"], "approvals": ["tasks"] }), "approvals: `tasks`"),
        (json!({ "phases": ["explore"], "resume_from_phase": "design" }), "not among the phases"),
        (json!({ "resume_from_phase": "design" }), "`explore` comes before `design`"),
    ] {
        let (kind, said) = refused(input);
        assert_eq!(kind, InputErrorKind::Conflict, "{said}");
        assert!(said.contains(part), "{said}");
    }
    for own in [project().id.to_string(), "acme/shop".to_owned()] {
        assert!(check(json!({ "project_id": own }), &spec()).is_ok());
    }
}

#[test]
fn what_is_left_out_is_as_the_time_before() {
    let plan = SpecPlan::new([Phase::Explore, Phase::Design], [Phase::Design]).unwrap();
    let before = Spec { plan: plan.clone(), ..spec() };
    assert_eq!(check(json!({}), &before).unwrap().plan, plan);
    let fewer = check(json!({ "phases": ["explore"] }), &before).unwrap().plan;
    assert_eq!(fewer, SpecPlan::new([Phase::Explore], []).unwrap());
    let checked = check(json!({ "enable_embeddings": false, "max_cost_usd": 2.0 }), &spec()).unwrap();
    assert_eq!(checked.run.options.max_cost_usd, Some(2.0));
    assert!(checked.warnings[0].contains("nothing here uses embeddings"));
}

#[test]
fn a_restart_takes_back_the_phase_and_what_follows() {
    let before = with_passed(&[Phase::Explore, Phase::Requirements, Phase::Design]);
    let checked = check(json!({ "resume_from_phase": "requirements" }), &before).unwrap();
    let planned = before.planned(checked.plan, checked.restart_from);
    assert!(planned.has_passed(Phase::Explore) && !planned.has_passed(Phase::Design));
    assert_eq!(planned.stretch(), [Phase::Requirements, Phase::Design, Phase::Tasks, Phase::Sync]);
}

/// The request of a spec's run under these settings.
fn request(settings: &str, input: serde_json::Value, phases: &[Phase]) -> Result<RunRequest, InputError> {
    let settings = Effective::default().under(&read_layer(settings, &Origin::Global("/g".into())).unwrap());
    let checked = check(input, &spec()).unwrap();
    let (id, machine, place, project) = (RunId::new(1, 2), Machine::new(), PlaceId::new(1, 2), project());
    let context = Context {
        id: &id,
        settings: &settings,
        syntax: InputSyntax::Fields,
        limits_rule: LimitsRule::Required,
        local_urls: LocalUrls::Refuse,
        max_execution_time_ms: Some(300_000),
        placing: Placing::Queued { place: &place },
        workspace: Workspace::Project(&project),
        may_name_path: &may_name_path,
        surroundings: &machine,
    };
    let request = validate(&checked.run, &context).map_err(of_execution)?.request;
    spec_request(request, &spec(), phases, &settings.settings)
}

#[test]
fn a_run_of_a_spec_takes_as_long_as_its_phases() {
    let settings = r#"{"sandbox": {"max_attempts": 1}, "specs": {"phases": {"design": {"seconds": 900}}}}"#;
    let input = json!({ "agent": "codex", "model": "gpt-x" });
    let made = request(settings, input.clone(), &[Phase::Explore, Phase::Design]).unwrap();
    assert_eq!((made.policy.timeout_ms, made.retry.max_attempts), (1_080_000, 3));
    let work = made.work.spec().unwrap();
    assert_eq!((work.agent, work.model.as_deref()), (Agent::Codex, Some("gpt-x")));
    assert_eq!(work.phases.iter().map(|plan| plan.seconds).collect::<Vec<_>>(), [180, 900]);
    assert_eq!((&work.project, &made.placement.project), (&project().id, &Some(project().id)));
    let bounded = r#"{"specs": {"max_seconds": 60}}"#;
    assert_eq!(request(bounded, input, Phase::DEFAULT).unwrap().policy.timeout_ms, 60_000);
    let settings = Effective::default();
    let next = next_spec_request(made.clone(), &spec(), &[Phase::Sync], &settings.settings).unwrap();
    assert_eq!((next.policy.timeout_ms, next.policy.mode), (120_000, made.policy.mode));
    assert_eq!(next.work.spec().unwrap().model.as_deref(), Some("gpt-x"));
}

#[test]
fn a_spec_runs_sealed_or_not_at_all() {
    let host = |settings: &str, input| request(settings, input, Phase::DEFAULT).unwrap_err();
    let error = host("{}", json!({ "mode": "host" }));
    assert_eq!((error.kind, error.field), (InputErrorKind::Conflict, "mode"));
    let error = host(r#"{"sandbox": {"mode": "host"}}"#, json!({}));
    assert!(error.problem.contains("`host` is none"), "{error}");
    let error = host("{}", json!({ "agent": "gemini" }));
    assert_eq!((error.kind, error.field), (InputErrorKind::AgentNotFound, "agent"));
}
