use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::access::Scope;
use crate::egress::VendorTool;
use crate::ids::{KeyId, PlaceId, RunId};
use crate::policy::{LimitsRule, Mode, Mount, MountAccess, Network, Policy};
use crate::publish::Publish;
use crate::repo_url::{LocalUrls, RepoUrl};
use crate::retry::RetryPolicy;
use crate::run::{Conversation, SessionStart};
use crate::run_input::test_machine::Machine;
use crate::run_input::{
    AskInput, Context, InputSyntax, Placing, RunInput, RunOptions, Workspace, validate, validate_ask,
};
use crate::settings::Effective;
use crate::work::Work;

fn key(scope: Scope) -> Actor {
    Actor::Key { id: KeyId::new(0, 0), owner: "ci".parse().unwrap(), scopes: [scope].into_iter().collect() }
}

fn settings(tree: serde_json::Value) -> Settings {
    serde_json::from_value(tree).unwrap()
}

/// What the settings give to whoever asks for nothing but a policy, a mode and a network.
fn given(settings: &Settings, policy: Option<&str>, mode: Mode, network: Network) -> Policy {
    let mut effective = Effective::default();
    effective.settings = settings.clone();
    let input = RunInput {
        command: Some(vec!["make".to_owned()]),
        options: RunOptions {
            policy: policy.map(str::to_owned),
            mode: Some(mode.to_string()),
            network: Some(network.to_string()),
            ..RunOptions::default()
        },
        ..RunInput::default()
    };
    let context = Context {
        id: &RunId::new(0, 0),
        settings: &effective,
        syntax: InputSyntax::Fields,
        limits_rule: LimitsRule::Required,
        local_urls: LocalUrls::Refuse,
        max_execution_time_ms: Some(settings.service.max_execution_time_ms.count().into()),
        placing: Placing::Queued { place: &PlaceId::new(0, 0) },
        workspace: Workspace::FromInput,
        may_name_path: &|_, _| false,
        surroundings: &Machine::new(),
    };
    validate(&input, &context).unwrap().request.policy
}

fn request(policy: Policy) -> RunRequest {
    RunRequest {
        id: RunId::new(0, 0),
        source: git("https://github.com/acme/app"),
        workspace: WorkspaceKind::Overlay,
        working_dir: None,
        work: Work::Program { argv: vec!["make".to_owned()] },
        conversation: None,
        policy,
        publish: None,
        retry: RetryPolicy::default(),
        placement: Default::default(),
        claimable_by: None,
        replay_of: None,
    }
}

fn git(url: &str) -> Source {
    Source::Git { url: RepoUrl::parse(url, LocalUrls::Allow).unwrap(), reference: None }
}

fn lists<'a>(settings: &'a Settings, policy: ChosenPolicy<'a>) -> Lists<'a> {
    Lists { settings, policy, project: None, is_below_linked_root: &|_| false }
}

fn fields(actor: &Actor, lists: &Lists<'_>, request: &RunRequest) -> Vec<&'static str> {
    lists.beyond(actor, request).into_iter().map(|beyond| beyond.field).collect()
}

/// Each single excess, and the field that it is reported under.
type Excess = (&'static str, fn(&mut RunRequest));
const EXCESSES: &[Excess] = &[
    ("options.mode", |request| {
        (request.policy.mode, request.policy.network) = (Mode::Host, Network::Open);
    }),
    ("options.network", |request| request.policy.network = Network::Open),
    ("options.env", |request| request.policy.env.push("AWS_SECRET_ACCESS_KEY".to_owned())),
    ("options.env", |request| request.policy.env.push("ANTHROPIC_API_KEY".to_owned())),
    ("options.mounts", |request| {
        request.policy.mounts.push(Mount { path: "/srv".into(), access: MountAccess::Ro });
    }),
    ("options.unmask", |request| request.policy.mask.show.push("*.secret".to_owned())),
    ("options.unmask", |request| request.policy.mask.hide.clear()),
    ("options.unmask", |request| request.policy.mask.hide.retain(|pattern| pattern != "*.pem")),
    ("options.forward", |request| {
        request.policy.egress.forwards.push("5432=db.example:5432".parse().unwrap());
    }),
    ("options.vendor_tools", |request| request.policy.egress.vendor_tools.push(VendorTool::WebSearch)),
    ("options.allow", |request| request.policy.egress.allow.push("intranet.example:443".parse().unwrap())),
    ("options.memory", |request| request.policy.limits.memory_bytes = u64::MAX),
    ("options.cpus", |request| request.policy.limits.cpus_milli = u32::MAX),
    ("options.pids", |request| request.policy.limits.pids = u32::MAX),
    ("options.disk", |request| request.policy.limits.workspace_bytes = u64::MAX),
    ("limits", |request| request.policy.limits.open_files = u64::MAX),
    ("limits", |request| request.policy.limits.output_bytes = u64::MAX),
    ("limits", |request| request.policy.limits_rule = LimitsRule::BestEffort),
    ("options.timeout_ms", |request| request.policy.timeout_ms += 1),
    ("repo", |request| request.source = git("https://10.0.0.1/x")),
    ("repo", |request| request.source = git("https://localhost/x")),
    ("repo", |request| request.source = git("file:///etc")),
    ("repo", |request| request.source = git("file:///srv/repos/../../etc")),
    ("repo", |request| request.source = Source::Local { path: "/etc".into() }),
    ("repo", |request| request.source = Source::Local { path: "/srv/repos/../../etc".into() }),
    ("branch", |request| {
        request.publish = Some(Publish { branch: "main".parse().unwrap(), commit_message: None });
    }),
    ("options.push", |request| request.policy.egress.push = Some("main".to_owned())),
    ("conversation", |request| {
        request.conversation =
            Some(Conversation { agent: "coder".parse().unwrap(), session: SessionStart::Continue });
    }),
    ("workspace", |request| request.workspace = WorkspaceKind::Direct),
];

/// Those of the modes that make containers.
const IN_CONTAINERS: &[Excess] = &[
    ("options.image", |request| request.policy.container.image = "evil.example/image".parse().unwrap()),
    ("container", |request| request.policy.container.network = "another".parse().unwrap()),
    ("container", |request| request.policy.container.runtime = Some("another".parse().unwrap())),
    ("container", |request| request.policy.container.runtime_command = "another".parse().unwrap()),
    ("container", |request| {
        request.policy.container.rewrite_loopback =
            crate::loopback::RewriteLoopback::Named(vec!["ANOTHER".to_owned()]);
    }),
];

#[test]
fn each_excess_is_reported_under_its_field_and_to_nobody_who_may_have_it() {
    let settings = Settings::default();
    let lists = lists(&settings, ChosenPolicy::Known(None));
    for mode in [Mode::Native, Mode::Docker, Mode::Apple] {
        let within = request(given(&settings, None, mode, Network::Sealed));
        assert_eq!(fields(&key(Scope::Run), &lists, &within), [""; 0], "{mode}");
        let more = if mode.is_container() { IN_CONTAINERS } else { &[] };
        for (field, exceed) in EXCESSES.iter().chain(more) {
            let mut request = within.clone();
            exceed(&mut request);
            for actor in [key(Scope::Run), key(Scope::Read), Actor::Loopback] {
                assert_eq!(fields(&actor, &lists, &request), [*field], "{mode} {actor:?}");
            }
            for actor in [key(Scope::System), Actor::LocalUser] {
                assert_eq!(fields(&actor, &lists, &request), [""; 0], "{mode} {field} {actor:?}");
            }
        }
    }
}

#[test]
fn each_bound_is_one_that_something_exceeds() {
    let tried: Vec<&str> = EXCESSES.iter().chain(IN_CONTAINERS).map(|(field, _)| *field).collect();
    for bound in BOUNDS {
        // What a policy is for is no part of the request: the next test is about it.
        let is_tried = tried.contains(&bound.field) || bound.field == "options.policy";
        assert!(is_tried, "{}", bound.field);
    }
}

#[test]
fn a_policy_for_what_is_not_allowed_gives_nothing() {
    let settings = settings(json!({ "sandbox": { "policies": {
        "host": { "mode": "host", "env_allowlist": ["TOKEN"] },
        "open": { "network": "open", "env_allowlist": ["TOKEN"] },
        "sealed": { "mode": "docker", "network": "sealed", "env_allowlist": ["TOKEN"] },
        "plain": { "env_allowlist": ["TOKEN"] },
    } } }));
    let weak = key(Scope::Run);
    let policies = &settings.sandbox.policies;
    for (name, is_within) in [("host", false), ("open", false), ("sealed", true), ("plain", true)] {
        let request = request(given(&settings, Some(name), Mode::Native, Network::Sealed));
        assert_eq!(request.policy.env, ["TOKEN"]);
        let known = lists(&settings, ChosenPolicy::Known(policies.get(name)));
        let expected: &[&str] = if is_within { &[] } else { &["options.policy"] };
        assert_eq!(fields(&weak, &known, &request), expected, "{name}");
        assert_eq!(fields(&key(Scope::System), &known, &request), [""; 0], "{name}");
    }
}

#[test]
fn what_the_operator_allows_is_within() {
    let settings = settings(json!({
        "service": {
            "allowed_modes": ["native:open", "host:open", "docker"],
            "allowed_roots": ["/srv/repos"],
            "allowed_repos": ["https://10.0.0.1/**"],
            "allowed_push": { "https://10.0.0.1/a/*": ["agents/*"] },
            "allowed_forwards": ["db"],
            "max_execution_time_ms": 1_000_000,
        },
        "sandbox": {
            "env_allowlist": ["ANTHROPIC_API_KEY", "LANG"],
            "mask": { "show": [".env.test"], "hide": ["*.p12"] },
            "limits": { "memory": "8g" },
            "forwards": {
                "db": { "port": 5432, "target": "127.0.0.1:5432" },
                "queue": { "port": 5672, "target": "127.0.0.1:5672" },
                "cache": { "port": 6379, "target": "127.0.0.1:6379", "always": true },
            },
        },
        "egress": { "sets": { "corp": ["git.corp.example:443"] } },
    }));
    let lists = lists(&settings, ChosenPolicy::Known(None));
    let within = request(given(&settings, None, Mode::Native, Network::Sealed));
    let within = RunRequest { source: git("https://10.0.0.1/a/b"), ..within };
    let changes: [fn(&mut RunRequest); 12] = [
        |request| request.policy.network = Network::Open,
        |request| (request.policy.mode, request.policy.network) = (Mode::Host, Network::Open),
        |request| {
            request.policy.network = Network::Open;
            request.policy.env = vec!["ANTHROPIC_API_KEY".to_owned()];
        },
        |request| request.policy.timeout_ms = 1_000_000,
        |request| request.policy.limits.memory_bytes = 8 << 30,
        |request| request.policy.egress.allow.push("git.corp.example:443".parse().unwrap()),
        |request| request.policy.egress.allow.push("registry.npmjs.org:443".parse().unwrap()),
        |request| request.source = Source::Local { path: "/srv/repos/a".into() },
        |request| request.source = git("file:///srv/repos/a%20b"),
        |request| request.policy.egress.forwards.push("5432=127.0.0.1:5432".parse().unwrap()),
        |request| request.policy.egress.push = Some("agents/fix".to_owned()),
        |request| {
            request.publish = Some(Publish { branch: "agents/fix".parse().unwrap(), commit_message: None });
        },
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut request = within.clone();
        change(&mut request);
        assert_eq!(fields(&key(Scope::Run), &lists, &request), [""; 0], "change {index}");
    }
    assert_eq!(within.policy.egress.forwards.len(), 1, "one is every run's");
    for (forward, problem) in [
        ("5672=127.0.0.1:5672", "the service `queue` is not allowed"),
        ("5432=127.0.0.1:5433", "port 5432 leads to `127.0.0.1:5433`"),
    ] {
        let mut request = within.clone();
        request.policy.egress.forwards.push(forward.parse().unwrap());
        let found = lists.beyond(&key(Scope::Run), &request);
        assert_eq!((found[0].field, found[0].problem.as_str()), ("options.forward", problem));
        assert!(found[0].ask.contains("`service.allowed_forwards`"), "{}", found[0].ask);
    }
    let elsewhere = RunRequest { source: git("https://github.com/acme/app"), ..within.clone() };
    assert_eq!(fields(&key(Scope::Run), &lists, &elsewhere), ["repo"], "there is a list");
    let mut hidden_no_more = within;
    hidden_no_more.policy.mask.hide.retain(|pattern| pattern != "*.p12");
    assert_eq!(fields(&key(Scope::Run), &lists, &hidden_no_more), ["options.unmask"]);
}

#[test]
fn without_a_key_there_is_never_the_host_nor_an_open_network() {
    let settings =
        settings(json!({ "service": { "allowed_modes": ["native:open", "docker:open", "host:open"] } }));
    let lists = lists(&settings, ChosenPolicy::Known(None));
    for (mode, network, field) in [
        (Mode::Native, Network::Open, "options.network"),
        (Mode::Docker, Network::Open, "options.network"),
        (Mode::Host, Network::Open, "options.mode"),
    ] {
        let request = request(given(&settings, None, mode, network));
        assert_eq!(fields(&key(Scope::Run), &lists, &request), [""; 0], "{mode}");
        let beyond = lists.beyond(&Actor::Loopback, &request);
        assert_eq!(beyond[0].field, field);
        assert!(beyond[0].problem.contains("needs an API key"), "{beyond:?}");
    }
}

#[test]
fn a_direct_run_has_no_mode_that_could_be_bound() {
    let settings = settings(json!({ "service": { "allowed_modes": ["docker"] } }));
    let mut effective = Effective::default();
    effective.settings = settings.clone();
    let input = AskInput { prompt: "x".to_owned(), ..AskInput::default() };
    let context = Context {
        id: &RunId::new(0, 0),
        settings: &effective,
        syntax: InputSyntax::Fields,
        limits_rule: LimitsRule::Required,
        local_urls: LocalUrls::Refuse,
        max_execution_time_ms: Some(300_000),
        placing: Placing::Queued { place: &PlaceId::new(0, 0) },
        workspace: Workspace::FromInput,
        may_name_path: &|_, _| false,
        surroundings: &Machine::new(),
    };
    let mut request = validate_ask(&input, None, &context).unwrap();
    let lists = lists(&settings, ChosenPolicy::Known(None));
    for actor in [key(Scope::Run), Actor::Loopback] {
        assert_eq!(fields(&actor, &lists, &request), [""; 0]);
    }
    request.policy.timeout_ms += 1;
    assert_eq!(fields(&key(Scope::Run), &lists, &request), ["options.timeout_ms"]);
    request.work = Work::Program { argv: vec!["true".to_owned()] };
    assert_eq!(
        fields(&key(Scope::Run), &lists, &request),
        ["options.mode", "options.vendor_tools", "options.timeout_ms"]
    );
}

#[test]
fn a_path_is_allowed_below_a_root_or_where_a_linked_root_leads() {
    let settings = settings(json!({ "service": { "allowed_roots": ["/srv/repos"] } }));
    let is_below_linked_root = |path: &Path| path.starts_with("/data/repos");
    let lists =
        Lists { is_below_linked_root: &is_below_linked_root, ..lists(&settings, ChosenPolicy::Known(None)) };
    let named = |source: Source| lists.beyond_source(&key(Scope::Run), &source).is_none();
    for path in ["/srv/repos", "/srv/repos/a", "/data/repos/a"] {
        assert!(named(Source::Local { path: path.into() }), "{path}");
        assert!(named(Source::Git { url: RepoUrl::of_folder(Path::new(path)), reference: None }), "{path}");
    }
    for path in ["/srv", "/srv/repositories", "/data", "/srv/repos/../x", "/data/repos/../x", "srv/repos"] {
        assert!(!named(Source::Local { path: path.into() }), "{path}");
    }
    for url in ["file:///srv/repos/%2e%2e/x", "FILE:///srv/repos/a", "file:///srv/repos/a?b", "file://"] {
        assert!(!named(git(url)), "{url}");
    }
}

#[test]
fn the_repository_of_a_project_is_the_operators_and_its_branches_are_not() {
    let settings = Settings::default();
    let projects = [Source::Local { path: "/home/operator/app".into() }, git("https://10.0.0.1/app")];
    for project in projects {
        let lists = Lists { project: Some(&project), ..lists(&settings, ChosenPolicy::Known(None)) };
        let policy = given(&settings, None, Mode::Native, Network::Sealed);
        let mut request = RunRequest { source: project.clone(), ..request(policy) };
        assert_eq!(fields(&key(Scope::Run), &lists, &request), [""; 0]);
        let at_a_commit = match &project {
            Source::Local { path } => RepoUrl::of_folder(path),
            Source::Git { url, .. } => url.clone(),
            Source::Empty => unreachable!("there is none above"),
        };
        request.source = Source::Git { url: at_a_commit, reference: Some("v1".to_owned()) };
        assert_eq!(fields(&key(Scope::Run), &lists, &request), [""; 0]);
        request.publish = Some(Publish { branch: "main".parse().unwrap(), commit_message: None });
        assert_eq!(fields(&key(Scope::Run), &lists, &request), ["branch"]);
        request.source = Source::Local { path: "/home/operator".into() };
        assert_eq!(fields(&key(Scope::Run), &lists, &request), ["repo", "branch"]);
    }
}

#[test]
fn a_recorded_run_is_within_if_one_policy_gives_all_of_it() {
    let settings = settings(json!({ "sandbox": { "policies": {
        "large": { "limits": { "memory": "64g" }, "allow": ["intranet.example:443"] },
        "talkative": { "env_allowlist": ["TOKEN"] },
    } } }));
    let unknown = lists(&settings, ChosenPolicy::Unknown);
    let large = request(given(&settings, Some("large"), Mode::Docker, Network::Sealed));
    assert_eq!(fields(&key(Scope::Run), &unknown, &large), [""; 0]);
    let known = lists(&settings, ChosenPolicy::Known(None));
    assert_eq!(fields(&key(Scope::Run), &known, &large), ["options.allow", "options.memory"]);
    // Two policies together give what nobody can ask for.
    let mut both = large;
    both.policy.env.push("TOKEN".to_owned());
    assert_eq!(fields(&key(Scope::Run), &unknown, &both), ["options.env", "options.allow", "options.memory"]);
}

/// Settings with values that matter here, and one policy that has some of them.
fn any_settings() -> impl Strategy<Value = Settings> {
    let names = || prop::collection::vec(prop::sample::select(vec!["LANG", "CI", "OPENAI_API_KEY"]), 0..3);
    let patterns = || prop::collection::vec(prop::sample::select(vec!["*.p12", ".env.test", "a/**"]), 0..3);
    let sizes = || prop::sample::select(vec!["64m", "1g", "3g"]);
    let allow = prop::collection::vec(prop::sample::select(vec!["npm", "corp", "a.example:443"]), 0..3);
    let policy = (
        prop::option::of(names()),
        prop::option::of((patterns(), patterns())),
        prop::option::of(sizes()),
        prop::option::of(allow),
    );
    let base = (names(), patterns(), patterns(), sizes(), 1_u32..1_000_000);
    (base, policy).prop_map(|((env, hide, show, memory, most_ms), (env_2, mask_2, memory_2, allow))| {
        let mut policy = json!({ "limits": {} });
        let mut set = |key: &str, value: Option<serde_json::Value>| {
            if let Some(value) = value {
                policy[key] = value;
            }
        };
        set("env_allowlist", env_2.map(|env| json!(env)));
        set("mask", mask_2.map(|(hide, show)| json!({ "hide": hide, "show": show })));
        set("limits", memory_2.map(|memory| json!({ "memory": memory })));
        set("allow", allow.map(|allow| json!(allow)));
        settings(json!({
            "service": { "max_execution_time_ms": most_ms },
            "sandbox": {
                "env_allowlist": env,
                "mask": { "hide": hide, "show": show },
                "limits": { "memory": memory },
                "docker": { "pids_limit": 17, "network": "agents", "runtime": "runsc" },
                "rewrite_loopback": ["API_URL"],
                "policies": { "p": policy },
            },
            "egress": { "sets": { "corp": ["git.corp.example:443"] } },
        }))
    })
}

proptest! {
    /// Whatever the settings themselves give is within, and one thing more is that one thing beyond.
    #[test]
    fn what_the_settings_give_is_within_and_each_excess_is_not(
        settings in any_settings(),
        is_named in any::<bool>(),
        mode in prop::sample::select(vec![Mode::Native, Mode::Docker, Mode::Apple]),
        network in prop::sample::select(vec![Network::Sealed, Network::None]),
        excess in prop::sample::select(EXCESSES.to_vec()),
    ) {
        let policy = is_named.then_some("p");
        let chosen = policy.and_then(|name| settings.sandbox.policies.get(name));
        let within = request(given(&settings, policy, mode, network));
        let (field, exceed) = excess;
        let mut beyond = within.clone();
        exceed(&mut beyond);
        let known = lists(&settings, ChosenPolicy::Known(chosen));
        let unknown = lists(&settings, ChosenPolicy::Unknown);
        for actor in [key(Scope::Run), Actor::Loopback] {
            prop_assert_eq!(fields(&actor, &known, &within), [""; 0]);
            prop_assert_eq!(fields(&actor, &unknown, &within), [""; 0]);
            prop_assert_eq!(fields(&actor, &known, &beyond), [field]);
            prop_assert!(fields(&actor, &unknown, &beyond).contains(&field));
        }
    }
}

#[test]
fn the_repository_of_a_key_is_fetched_from_public_hosts_unless_the_operator_listed_it() {
    let (open, listed) =
        (settings(json!({})), settings(json!({"service": {"allowed_repos": ["git@h.example:**"]}})));
    let source = git("https://github.com/acme/app");
    let run = key(Scope::Run);
    assert_eq!(lists(&open, ChosenPolicy::Unknown).fetch_rule(&run, &source), FetchRule::Public);
    assert_eq!(lists(&listed, ChosenPolicy::Unknown).fetch_rule(&run, &source), FetchRule::Listed);
    let of_project = Lists { project: Some(&source), ..lists(&open, ChosenPolicy::Unknown) };
    assert_eq!(of_project.fetch_rule(&run, &source), FetchRule::Listed);
    for actor in [key(Scope::System), Actor::LocalUser] {
        assert_eq!(lists(&open, ChosenPolicy::Unknown).fetch_rule(&actor, &source), FetchRule::AsUser);
    }
}
