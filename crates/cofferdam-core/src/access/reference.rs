//! The page that says who may do what, made from the rules.

use crate::access::beyond::BOUNDS;
use crate::access::rules::{Reach, rule_of};
use crate::access::{Action, Actor, OwnRole, OwnerName, Refusal, Scope, Scopes, Subject, Visibility, may};
use crate::ids::KeyId;

const PAGE: &str = include_str!("reference.md");

/// `docs/reference/access.md`: what each kind of actor may do, as the judge says.
#[must_use]
pub fn reference() -> String {
    PAGE.replace("{{actors}}", &actors()).replace("{{actions}}", &actions()).replace("{{bounds}}", &bounds())
}

fn actors() -> String {
    let kinds = [
        ("a key", key(&[Scope::Read, Scope::Run])),
        ("a key with the scope `system`", key(&[Scope::System])),
        ("a caller on loopback, where the operator wants no key", Actor::Loopback),
        ("whoever types commands on the machine and can read the state folder", Actor::LocalUser),
        ("a role of the service that acts by itself", Actor::Role(OwnRole::AuthCheck)),
    ];
    let mut table =
        "| who | name in the audit | owner of its runs | bound by the lists below |\n|---|---|---|---|\n"
            .to_owned();
    for (who, actor) in kinds {
        let (name, owner) = match &actor {
            Actor::Key { .. } => ("the key's id".to_owned(), "the key's owner".to_owned()),
            Actor::Role(_) => ("`role:NAME`".to_owned(), format!("`{}`", actor.owner())),
            Actor::Loopback | Actor::LocalUser => {
                (format!("`{}`", actor.name()), format!("`{}`", actor.owner()))
            }
        };
        let is_bound = if actor.is_unbounded() { "no" } else { "yes" };
        table.push_str(&format!("| {who} | {name} | {owner} | {is_bound} |\n"));
    }
    table
}

fn actions() -> String {
    let mut table =
        "| action | what | `read` key | `run` key, own run | `run` key, another owner's run | `system` key \
        | no key, on loopback | local user |\n|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for &action in Action::ALL {
        let run_key = key(&[Scope::Run]);
        table.push_str(&format!(
            "| `{action}` | {} | {} | {} | {} | {} | {} | {} |\n",
            action.summary(),
            reached(&key(&[Scope::Read]), action),
            if judged(&run_key, action, Whose::Own, Visibility::All).is_ok() { "yes" } else { "no" },
            of_another_owner(&run_key, action),
            reached(&key(&[Scope::System]), action),
            reached(&Actor::Loopback, action),
            reached(&Actor::LocalUser, action),
        ));
    }
    table
}

fn bounds() -> String {
    let mut table =
        "| field | what is within | what allows more, besides the scope `system` |\n|---|---|---|\n"
            .to_owned();
    for bound in BOUNDS {
        let more = bound.setting.unwrap_or("nothing");
        table.push_str(&format!("| `{}` | {} | {more} |\n", bound.field, bound.within));
    }
    table
}

/// Whose run an action is tried on.
#[derive(Clone, Copy)]
enum Whose {
    Own,
    Others,
}

/// What an actor may reach with an action.
fn reached(actor: &Actor, action: Action) -> &'static str {
    let may = |whose, visibility| judged(actor, action, whose, visibility).is_ok();
    let others = (may(Whose::Others, Visibility::All), may(Whose::Others, Visibility::Own));
    match (may(Whose::Own, Visibility::All), others) {
        (false, _) => "no",
        (true, (true, true)) => "yes",
        (true, (true, false)) => "as `service.visibility` says",
        (true, (false, _)) => "own runs",
    }
}

fn of_another_owner(actor: &Actor, action: Action) -> &'static str {
    match (rule_of(action).reach, judged(actor, action, Whose::Others, Visibility::All)) {
        (Reach::Nothing | Reach::Operator | Reach::New, _) => "–",
        (Reach::VisibleRun | Reach::OwnRun, Ok(())) => "yes",
        (Reach::VisibleRun | Reach::OwnRun, Err(Refusal::NotFound)) => "no such run",
        (Reach::VisibleRun | Reach::OwnRun, Err(_)) => "no",
    }
}

fn judged(actor: &Actor, action: Action, whose: Whose, visibility: Visibility) -> Result<(), Refusal> {
    let owner = match whose {
        Whose::Own => actor.owner(),
        Whose::Others => other_owner(),
    };
    let subject = match rule_of(action).reach {
        Reach::Nothing | Reach::Operator => Subject::Nothing,
        Reach::VisibleRun | Reach::OwnRun => Subject::Run { owner: &owner, beyond: &[] },
        Reach::New => Subject::Request { beyond: &[] },
    };
    may(actor, action, &subject, visibility)
}

fn key(scopes: &[Scope]) -> Actor {
    let owner = "an owner".parse().expect("it is a name");
    Actor::Key { id: KeyId::new(0, 0), owner, scopes: scopes.iter().copied().collect::<Scopes>() }
}

fn other_owner() -> OwnerName {
    "another owner".parse().expect("it is a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_action_and_every_bound_and_nothing_left_to_fill_in() {
        let page = reference();
        for action in Action::ALL {
            assert!(page.contains(&format!("\n| `{action}` | ")), "{action}");
        }
        for bound in BOUNDS {
            assert!(page.contains(&format!("\n| `{}` | ", bound.field)), "{}", bound.field);
        }
        assert!(!page.contains("{{"), "{page}");
    }

    #[test]
    fn the_table_says_what_the_judge_says() {
        let page = reference();
        let row = |action: Action| {
            let begins = format!("| `{action}` | {} | ", action.summary());
            page.lines().find_map(|line| line.strip_prefix(begins.as_str()).map(str::to_owned)).unwrap()
        };
        assert_eq!(row(Action::CancelRun), "no | yes | no such run | yes | own runs | yes |");
        assert_eq!(
            row(Action::ReadRun),
            "as `service.visibility` says | yes | no such run | yes | yes | yes |"
        );
        assert_eq!(row(Action::CreateKey), "no | no | – | yes | no | yes |");
        assert_eq!(row(Action::ReadAudit), "no | no | – | yes | yes | yes |");
    }
}
