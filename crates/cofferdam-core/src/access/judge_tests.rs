use super::*;
use crate::access::{OwnRole, Scopes};
use crate::ids::KeyId;

/// One letter for each verdict: `y` for yes, `-` for what does not exist, `s` for a missing scope, `o` for another owner's run,
/// `b` for more than may be asked for, `k` for what is never done without a key.
fn letter(verdict: &Result<(), Refusal>) -> char {
    match verdict {
        Ok(()) => 'y',
        Err(Refusal::NotFound) => '-',
        Err(Refusal::MissingScope { .. }) => 's',
        Err(Refusal::AnotherOwners) => 'o',
        Err(Refusal::Beyond(_) | Refusal::RunBeyond(_)) => 'b',
        Err(Refusal::NotWithoutKey { .. }) => 'k',
    }
}

const ACTORS: [&str; 8] = ["no scope", "read", "run", "read,run", "system", "loopback", "local", "role"];

fn actor(name: &str) -> Actor {
    let key = |scopes: Scopes| Actor::Key { id: KeyId::new(0, 0), owner: "ci".parse().unwrap(), scopes };
    match name {
        "loopback" => Actor::Loopback,
        "local" => Actor::LocalUser,
        "role" => Actor::Role(OwnRole::AuthCheck),
        "no scope" => key(Scopes::default()),
        scopes => key(scopes.parse().unwrap()),
    }
}

/// What is done to a run or a spec of one's own.
const TOUCHED: [&str; 8] =
    ["ssss ssss", "ssss ssss", "y-b- y-b-", "yobo y-b-", "yyyy yyyy", "yobo yobo", "yyyy yyyy", "yyyy yyyy"];
/// What the operator alone does to one.
const THE_OPERATORS: [&str; 8] =
    ["ssss ssss", "ssss ssss", "ssss ssss", "ssss ssss", "yyyy yyyy", "kkkk kkkk", "yyyy yyyy", "yyyy yyyy"];
/// What shows one.
const SEEN: [&str; 8] =
    ["ssss ssss", "yyyy y-y-", "y-y- y-y-", "yyyy y-y-", "yyyy yyyy", "yyyy yyyy", "yyyy yyyy", "yyyy yyyy"];

/// The verdicts on an own run or spec, another owner's, an own one with too much, and another owner's with too much, where `read` sees
/// all, and where it sees its own; in the order of [`ACTORS`].
const ON_RUNS: [(&str, [&str; 8]); 14] = [
    ("run.retry", TOUCHED),
    ("run.cancel", TOUCHED),
    ("run.message", TOUCHED),
    ("run.allow", THE_OPERATORS),
    ("run.remove", TOUCHED),
    ("run.list", SEEN),
    ("run.read", SEEN),
    ("dead_letter.read", SEEN),
    ("dead_letter.remove", TOUCHED),
    ("spec.list", SEEN),
    ("spec.read", SEEN),
    ("spec.update", TOUCHED),
    ("spec.execute", TOUCHED),
    ("spec.decide", TOUCHED),
];

/// The verdicts on a request that is within the lists, and on one that is not; one letter an actor.
const ON_REQUESTS: [(&str, &str, &str); 3] = [
    ("run.create", "ssyyyyyy", "ssbbybyy"),
    ("project.create", "ssssykyy", "ssssykyy"),
    ("spec.create", "ssyyyyyy", "ssbbybyy"),
];

/// The verdicts on what is nobody's or the operator's; one letter an actor.
const ON_OTHERS: [(&str, &str); 19] = [
    ("project.read", "syyyyyyy"),
    ("project.remove", "ssssykyy"),
    ("key.create", "ssssykyy"),
    ("key.list", "ssssykyy"),
    ("key.revoke", "ssssykyy"),
    ("agent.list", "syyyyyyy"),
    ("node.list", "sysyyyyy"),
    ("node.doctor", "ssssyyyy"),
    ("node.agents", "ssssyyyy"),
    ("auth.check", "ssssyyyy"),
    ("config.read", "ssssyyyy"),
    ("config.change", "ssssyyyy"),
    ("process.read", "ssssyyyy"),
    ("process.start", "ssssyyyy"),
    ("process.stop", "ssssyyyy"),
    ("metrics.read", "sysyyyyy"),
    ("audit.read", "ssssyyyy"),
    ("settings.read", "ssssyyyy"),
    ("trust.read", "ssssyyyy"),
];

fn too_much() -> [Beyond; 1] {
    [Beyond::new("options.mode", "mode `host` is not allowed".to_owned())]
}

fn verdict(who: &str, action: &str, subject: &Subject<'_>, visibility: Visibility) -> char {
    letter(&may(&actor(who), action.parse().unwrap(), subject, visibility))
}

#[test]
fn the_tables_have_each_action() {
    let mut listed: Vec<Action> = ON_RUNS
        .iter()
        .map(|(action, _)| action)
        .chain(ON_REQUESTS.iter().map(|(action, _, _)| action))
        .chain(ON_OTHERS.iter().map(|(action, _)| action))
        .map(|action| action.parse().unwrap())
        .collect();
    listed.sort_unstable();
    assert_eq!(listed, Action::ALL);
}

#[test]
fn each_actor_may_read_and_touch_the_runs_that_it_should() {
    let too_much = too_much();
    for (action, expected) in ON_RUNS {
        for (who, expected) in ACTORS.into_iter().zip(expected) {
            let (own, foreign) = (actor(who).owner(), "somebody else".parse().unwrap());
            let runs = [(&own, &[][..]), (&foreign, &[]), (&own, &too_much), (&foreign, &too_much)];
            let on_all = |visibility| -> String {
                let verdict =
                    |(owner, beyond)| verdict(who, action, &Subject::Run { owner, beyond }, visibility);
                runs.map(verdict).into_iter().collect()
            };
            let found = format!("{} {}", on_all(Visibility::All), on_all(Visibility::Own));
            assert_eq!(found, expected, "{who}: {action}");
        }
    }
}

#[test]
fn each_actor_may_make_what_is_within_its_lists() {
    let too_much = too_much();
    for (action, within, beyond) in ON_REQUESTS {
        for visibility in [Visibility::All, Visibility::Own] {
            let all = |beyond: &[Beyond]| -> String {
                ACTORS
                    .map(|who| verdict(who, action, &Subject::Request { beyond }, visibility))
                    .iter()
                    .collect()
            };
            assert_eq!((all(&[]).as_str(), all(&too_much).as_str()), (within, beyond), "{action}");
        }
    }
}

#[test]
fn each_actor_reaches_of_the_operators_things_what_it_should() {
    for (action, expected) in ON_OTHERS {
        for visibility in [Visibility::All, Visibility::Own] {
            let found: String =
                ACTORS.map(|who| verdict(who, action, &Subject::Nothing, visibility)).iter().collect();
            assert_eq!(found, expected, "{action}");
        }
    }
}

#[test]
fn a_run_that_is_not_there_is_judged_as_one_that_may_not_be_seen() {
    let foreign = "somebody else".parse().unwrap();
    for (action, _) in ON_RUNS {
        for who in ["no scope", "read", "run", "read,run"] {
            let there = Subject::Run { owner: &foreign, beyond: &too_much() };
            assert_eq!(
                verdict(who, action, &Subject::NoSuchRun, Visibility::Own),
                verdict(who, action, &there, Visibility::Own),
                "{who}: {action}"
            );
        }
        for who in ["system", "local", "role"] {
            assert_eq!(verdict(who, action, &Subject::NoSuchRun, Visibility::All), '-', "{who}: {action}");
        }
    }
}

#[test]
fn a_subject_of_another_kind_opens_nothing() {
    for who in ACTORS {
        for action in ["run.cancel", "run.message", "run.create", "project.create"] {
            assert_ne!(verdict(who, action, &Subject::Nothing, Visibility::All), 'y', "{who}: {action}");
        }
        let request = Subject::Request { beyond: &[] };
        for action in ["run.cancel", "run.read"] {
            assert_ne!(verdict(who, action, &request, Visibility::All), 'y', "{who}: {action}");
        }
        let own = actor(who).owner();
        let run = Subject::Run { owner: &own, beyond: &[] };
        assert_ne!(verdict(who, "run.create", &run, Visibility::All), 'y', "{who}");
    }
}

#[test]
fn a_list_holds_what_its_reader_sees() {
    let (ci, foreign) = ("ci".parse().unwrap(), "somebody else".parse().unwrap());
    for (who, in_all, in_own) in [
        ("read", true, false),
        ("run", false, false),
        ("read,run", true, false),
        ("system", true, true),
        ("loopback", true, true),
        ("local", true, true),
        ("role", true, true),
    ] {
        assert_eq!(verdict(who, "run.list", &Subject::Nothing, Visibility::Own), 'y', "{who}");
        let sees = |visibility, owner| actor(who).sees(visibility).includes(owner);
        assert_eq!(
            (sees(Visibility::All, &foreign), sees(Visibility::Own, &foreign)),
            (in_all, in_own),
            "{who}"
        );
        assert!(!matches!(actor(who), Actor::Key { .. }) || sees(Visibility::Own, &ci), "{who}");
    }
}

#[test]
fn an_owner_outlives_its_keys() {
    let another_key = Actor::Key {
        id: KeyId::new(7, 7),
        owner: "ci".parse().unwrap(),
        scopes: [Scope::Run].into_iter().collect(),
    };
    let owner = actor("run").owner();
    let subject = Subject::Run { owner: &owner, beyond: &[] };
    assert_eq!(may(&another_key, Action::CancelRun, &subject, Visibility::Own), Ok(()));
}
