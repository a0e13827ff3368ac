//! One request written in three ways: as flags, as JSON, and as the JSON that flags are posted as. Each gives the same
//! `RunRequest`, or an error on the same field.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::Parser;
use cofferdam_agent::profile;
use cofferdam_core::{
    Agent, Context, Effective, InputError, InputSyntax, LimitsRule, LocalUrls, Mode, Origin, PlaceId,
    Placing, PromptSetup, RunId, RunRequest, Support, Surroundings, ValueError, Variable, Workspace,
    read_layer, validate,
};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::super::request::repository_from;
use super::*;
use crate::cli::{Cli, Command};

/// A field, written in both ways.
#[derive(Debug, Clone)]
struct Written {
    field: &'static str,
    words: Vec<String>,
    json: Value,
}

fn written(field: &'static str, texts: &[&str], json: Value) -> Written {
    let flag = InputSyntax::Flags.name(field);
    Written { field, words: texts.iter().map(|text| format!("{flag}={text}")).collect(), json }
}

/// What a text of JSON is as a flag.
fn text(field: &'static str, value: &str) -> Written {
    written(field, &[value], json!(value))
}

fn list(field: &'static str, values: &[&str]) -> Written {
    written(field, values, json!(values))
}

fn number(field: &'static str, value: u64) -> Written {
    written(field, &[&value.to_string()], json!(value))
}

fn timeout(ms: u64) -> Written {
    written("options.timeout_ms", &[&format!("{ms}ms")], json!(ms))
}

fn cost(micro: u64) -> Written {
    let text = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    let json = serde_json::from_str(&text).unwrap();
    written("options.max_cost_usd", &[&text], json)
}

fn mount(path: &str, writable: bool) -> Written {
    let ending = if writable { ":rw" } else { "" };
    written("options.mounts", &[&format!("{path}{ending}")], json!([{ "path": path, "writable": writable }]))
}

fn switch(field: &'static str) -> Written {
    Written { field, words: vec![InputSyntax::Flags.name(field).to_owned()], json: json!(true) }
}

const LONG: usize = 250;

/// Every value of a field that is tried, good and bad ones.
fn values() -> Vec<Vec<Written>> {
    let texts = |field: &'static str, values: &[&str]| -> Vec<Written> {
        values.iter().map(|value| text(field, value)).collect()
    };
    let numbers = |field: &'static str, values: &[u64]| -> Vec<Written> {
        values.iter().map(|value| number(field, *value)).collect()
    };
    let long = "x".repeat(LONG);
    let many: Vec<String> = (1..=101).map(|number| format!("V{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let repository = place().repository.to_str().unwrap();
    let gone = format!("{repository}/no");
    vec![
        texts(
            "repo",
            &["https://host.example/a", "git@host.example:a/b", repository, "http://h/a", "ext::sh"],
        ),
        texts("ref", &["main", "v1.2", "-x", "a..b", ""]),
        texts("branch", &["fix-login", "-b", "refs/heads/x", ""]),
        texts("commit_message", &["Fix the login", "", " ", "a\0b"]),
        texts("role", &["tester", "worker", "boss"]),
        texts("options.permission_mode", &["full", "plan", "acceptEdits", "danger-full-access", "yolo"]),
        texts("options.system_prompt", &["Be brief.", "", "a\0b", &"x".repeat(100_001)]),
        texts("options.append_system_prompt", &["Be brief.", "", "a\0b", &"ü".repeat(90_000)]),
        texts("options.model", &["sonnet", "anthropic/x", "", "-m", "a\nb", &long]),
        texts("options.agent", &["claude_code", "codex", "opencode", "coder", "lost", "nobody", ""]),
        texts("options.mode", &["native", "docker", "apple", "host", "vm", ""]),
        texts("options.policy", &["strict", "lax", ""]),
        texts("options.network", &["sealed", "none", "open", "closed"]),
        vec![
            list("options.allow", &["npm"]),
            list("options.allow", &["npm", "a.example:443"]),
            list("options.allow", &["no_such_set"]),
            list("options.allow", &["a b"]),
            list("options.allow", &["-x"]),
            list("options.allow", &many),
        ],
        vec![
            list("options.forward", &["5432=db.example:5432"]),
            list("options.forward", &["5432=a.example:1", "5432=b.example:1"]),
            list("options.forward", &["80=a.example:1"]),
        ],
        texts("options.push", &["work", "+work", ""]),
        vec![switch("options.model_access")],
        vec![
            list("options.vendor_tools", &["web_search"]),
            list("options.vendor_tools", &["web_fetch", "web_search", "web_fetch"]),
            written("options.vendor_tools", &["web_search,web_fetch"], json!(["web_search", "web_fetch"])),
            list("options.vendor_tools", &[""]),
            list("options.vendor_tools", &["mcp"]),
            list("options.vendor_tools", &["-x"]),
        ],
        texts("options.image", &["cofferdam/worker:latest", "-x", "UPPER"]),
        [0, 1, 999, 1_000, 604_800_000, 604_800_001, 31_622_400_001].map(timeout).to_vec(),
        numbers("options.max_turns", &[0, 1, 10_000, 10_001, 1 << 40]),
        texts("options.working_dir", &["a/b", "../x", "/etc", ""]),
        vec![switch("options.read_only")],
        vec![
            list("options.allowed_tools", &["Read", "Bash(git log *)"]),
            list("options.allowed_tools", &["a b"]),
            list("options.allowed_tools", &["Bash("]),
        ],
        vec![list("options.disallowed_tools", &["Edit"]), list("options.disallowed_tools", &["-x"])],
        numbers("options.max_attempts", &[0, 1, 100, 101]),
        [0, 1, 2_500_000, 123_456_789, 1_000_000_000_000, 1_000_000_000_001].map(cost).to_vec(),
        numbers("options.max_tokens", &[0, 1, 4_294_967_295, 4_294_967_296, u64::MAX]),
        numbers("options.max_model_calls", &[0, 7, 4_294_967_296]),
        texts("options.memory", &["512m", "2GiB", "1m", "much"]),
        texts("options.cpus", &["0.5", "2", "0", "many"]),
        numbers("options.pids", &[0, 64, 4_194_304, 4_194_305]),
        texts("options.disk", &["1g", "1k", "-1g"]),
        vec![
            list("options.env", &["LANG"]),
            list("options.env", &["LANG", "LANG"]),
            list("options.env", &["NOT_SET"]),
            list("options.env", &["TOKEN=hunter2"]),
            list("options.env", &["1X"]),
            list("options.env", &many),
        ],
        vec![mount(repository, true), mount(repository, false), mount("/", false), mount(&gone, false)],
        vec![
            list("options.unmask", &[".env*", "src/**"]),
            list("options.unmask", &["[a-z]"]),
            list("options.unmask", &["ü.pem"]),
            list("options.unmask", &[""]),
            list("options.unmask", &[&long]),
        ],
        vec![switch("dry_run")],
    ]
}

/// A repository, and settings.
struct Place {
    _folder: tempfile::TempDir,
    repository: PathBuf,
    settings: Effective,
}

fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let folder = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
        let repository = folder.path().canonicalize().unwrap().join("r");
        std::fs::create_dir_all(repository.join(".git")).unwrap();
        let text = r#"{
            "sandbox": {"env_allowlist": ["LANG", "UNSET"], "policies": {"strict": {"network": "sealed", "allow": ["npm"], "max_attempts": 2}}},
            "agents": {"coder": {"provider": "codex", "model": "gpt-x", "policy": "strict"}, "lost": {"provider": "codex", "policy": "none"}},
            "roles": {"tester": {"agent": "coder", "append_system_prompt": "Test first."}}
        }"#;
        let settings = Effective::default().under(&read_layer(text, &Origin::Global("/g".into())).unwrap());
        Place { _folder: folder, repository, settings }
    })
}

impl Surroundings for Place {
    fn canonical(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    fn repository_root(&self, path: &Path) -> Option<PathBuf> {
        crate::repository::root_around(path)
    }

    fn state_folder(&self) -> Option<PathBuf> {
        None
    }

    fn home(&self) -> Option<PathBuf> {
        None
    }

    fn variable(&self, name: &str) -> Variable {
        if name == "LANG" { Variable::Set } else { Variable::Unset }
    }

    fn support_of(&self, agent: Agent) -> Support {
        profile(agent).support
    }

    fn default_agent(
        &self,
        _mode: Mode,
        _setup: &PromptSetup,
        _of_settings: Agent,
    ) -> Result<Agent, ValueError> {
        Ok(Agent::ClaudeCode)
    }
}

fn checked(input: &RunInput, syntax: InputSyntax, is_queued: bool) -> Result<RunRequest, InputError> {
    let (id, state_folder) = (RunId::new(1, 2), PlaceId::new(1, 2));
    let context = Context {
        id: &id,
        settings: &place().settings,
        syntax,
        limits_rule: LimitsRule::Required,
        local_urls: LocalUrls::Refuse,
        max_execution_time_ms: None,
        placing: if is_queued { Placing::Queued { place: &state_folder } } else { Placing::Attached },
        workspace: Workspace::FromInput,
        may_name_path: &|_, _| true,
        surroundings: place(),
    };
    validate(input, &context).map(|validated| validated.request)
}

/// What is worked on.
#[derive(Debug, Clone)]
enum Work {
    Task(String),
    Command(Vec<String>),
    Both,
    Neither,
}

/// The whole command line, and the whole body.
fn both_ways(work: &Work, fields: &[Written]) -> (Vec<String>, Value) {
    let mut words = vec!["cofferdam".to_owned(), "run".to_owned()];
    let mut body = json!({});
    if !fields.iter().any(|written| written.field == "repo") {
        words.push("--no-repo".to_owned());
    }
    for written in fields {
        words.extend(written.words.iter().cloned());
        match written.field.strip_prefix("options.") {
            Some(own) => body["options"][own] = written.json.clone(),
            None => body[written.field] = written.json.clone(),
        }
    }
    let (task, command) = match work {
        Work::Task(task) => (Some(task.clone()), None),
        Work::Command(argv) => (None, Some(argv.clone())),
        Work::Both => (Some("x".to_owned()), Some(vec!["true".to_owned()])),
        Work::Neither => (None, None),
    };
    if let Some(task) = task {
        words.push(task.clone());
        body["task"] = json!(task);
    }
    if let Some(argv) = command {
        words.push("--".to_owned());
        words.extend(argv.iter().cloned());
        body["command"] = json!(argv);
    }
    (words, body)
}

/// How far flags came.
enum Flags {
    Read(Box<RunInput>),
    /// The text of the refusal, before the core was asked.
    Refused(String),
}

fn read_flags(words: &[String]) -> Flags {
    let parsed = match Cli::try_parse_from(words) {
        Ok(parsed) => parsed,
        Err(error) => return Flags::Refused(error.to_string()),
    };
    let Command::Run(args) = parsed.command else { panic!("it is `run`") };
    let caller = Caller { env: Default::default(), current_folder: "/".into() };
    let repository = repository_from(&args, &caller).expect("the repositories that are tried are there");
    match input_from(&args, &caller, repository.repo) {
        Ok(input) => Flags::Read(Box::new(input)),
        Err(error) => Flags::Refused(error.to_string()),
    }
}

/// Reads JSON and checks it: a request, or the field that is wrong.
fn of_json(body: &Value, is_queued: bool) -> Result<RunRequest, String> {
    let text = body.to_string();
    let mut reader = serde_json::Deserializer::from_str(&text);
    let input: RunInput =
        serde_path_to_error::deserialize(&mut reader).map_err(|error| error.path().to_string())?;
    checked(&input, InputSyntax::Fields, is_queued).map_err(|error| error.field.to_owned())
}

/// What all of this is about.
fn assert_same(work: &Work, fields: &[Written], is_queued: bool) -> Result<(), TestCaseError> {
    let (words, body) = both_ways(work, fields);
    let of_json = of_json(&body, is_queued);
    let input = match read_flags(&words) {
        Flags::Read(input) => input,
        Flags::Refused(said) => {
            let field = of_json.expect_err(&format!("JSON was taken, and flags were refused: {said}"));
            let known = cofferdam_core::INPUT_FIELDS.iter().find(|(name, _)| **name == field);
            let flag = known.and_then(|(_, flag)| *flag).expect("the field has a flag");
            prop_assert!(said.contains(flag), "{said} does not name {flag}");
            return Ok(());
        }
    };
    let of_flags = checked(&input, InputSyntax::Flags, is_queued);
    if let Err(error) = &of_flags {
        let shown = error.shown(InputSyntax::Flags);
        prop_assert!(!shown.contains("options."), "{shown}");
        prop_assert!(!shown.contains("hunter2"), "{shown}");
    }
    prop_assert_eq!(&of_flags.map_err(|error| error.field.to_owned()), &of_json, "{:?}", words);
    let posted = serde_json::to_value(&*input).unwrap();
    let read: RunInput = serde_json::from_value(posted).unwrap();
    prop_assert_eq!(&read, &*input);
    let of_posted = checked(&read, InputSyntax::Fields, is_queued).map_err(|error| error.field.to_owned());
    prop_assert_eq!(&of_posted, &of_json, "{:?}", words);
    Ok(())
}

fn works() -> Vec<Work> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    vec![
        Work::Task("fix it".to_owned()),
        Work::Command(words(&["make", "test"])),
        Work::Task(" ".to_owned()),
        Work::Task("a\0b".to_owned()),
        Work::Task("x".repeat(500_000)),
        Work::Task("x".repeat(500_001)),
        Work::Task("€".repeat(400_000)),
        Work::Command(words(&[""])),
        Work::Command(words(&["a", "b\0"])),
        Work::Command(vec!["x".to_owned(); 1_001]),
        Work::Command(vec!["x".repeat(60_000), "y".repeat(60_000)]),
        Work::Both,
        Work::Neither,
    ]
}

#[test]
fn every_value_of_every_field_means_the_same_as_a_flag_and_in_json() {
    for is_queued in [false, true] {
        for work in works() {
            assert_same(&work, &[], is_queued).unwrap();
        }
        for value in values().concat() {
            for work in &works()[..2] {
                assert_same(work, std::slice::from_ref(&value), is_queued).unwrap();
            }
        }
    }
}

#[test]
fn every_field_that_has_a_flag_is_tried() {
    let tried: Vec<&str> = values().iter().map(|values| values[0].field).collect();
    for (field, flag) in cofferdam_core::INPUT_FIELDS {
        let is_work = matches!(field, "task" | "command");
        assert_eq!(flag.is_some() && !is_work, tried.contains(&field), "{field}");
    }
}

/// Whether a value is one that the core is asked about: what is no number is refused before, and so before every other
/// field.
fn is_read(written: &Written) -> bool {
    let (words, body) = both_ways(&Work::Task("x".to_owned()), std::slice::from_ref(written));
    let is_read = matches!(read_flags(&words), Flags::Read(_));
    is_read && serde_json::from_value::<RunInput>(body).is_ok()
}

fn any_fields() -> impl Strategy<Value = Vec<Written>> {
    let choices: Vec<_> = values()
        .into_iter()
        .filter_map(|values| {
            let read: Vec<Written> =
                values.into_iter().filter(|value| value.field == "ref" || is_read(value)).collect();
            (!read.is_empty()).then(|| prop::option::weighted(0.2, select(read)))
        })
        .collect();
    choices.prop_map(|fields| {
        let fields: Vec<Written> = fields.into_iter().flatten().collect();
        // `--ref` without a repository is refused by clap, before anything else.
        let has_repo = fields.iter().any(|written| written.field == "repo");
        fields.into_iter().filter(|written| written.field != "ref" || has_repo).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn any_request_means_the_same_as_flags_and_in_json(
        work in select(works()[..2].to_vec()),
        fields in any_fields(),
        is_queued in any::<bool>(),
    ) {
        assert_same(&work, &fields, is_queued)?;
    }

    #[test]
    fn any_number_means_the_same_as_a_flag_and_in_json(
        ms in 1_u64..=1 << 33,
        micro in 1_u64..=1 << 42,
        turns in any::<u32>(),
        tokens in any::<u64>(),
        is_queued in any::<bool>(),
    ) {
        let work = Work::Task("x".to_owned());
        for written in [
            timeout(ms),
            cost(micro),
            number("options.max_turns", turns.into()),
            number("options.max_attempts", turns.into()),
            number("options.pids", turns.into()),
            number("options.max_tokens", tokens),
            number("options.max_model_calls", tokens),
        ] {
            assert_same(&work, &[written], is_queued)?;
        }
    }
}
