use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_core::{
    Agent, AskOptions, Effective, KeyId, NodeId, Outcome, PlaceId, Scope, Scopes, Support, Variable,
};
use cofferdam_store::{ClaimRules, Left, NewTurns, Owner, Store};

use super::*;

/// A machine that nobody looks at.
struct Unseen;

impl Surroundings for Unseen {
    fn canonical(&self, path: &Path) -> Option<PathBuf> {
        panic!("{} is looked at", path.display())
    }

    fn repository_root(&self, path: &Path) -> Option<PathBuf> {
        panic!("{} is looked at", path.display())
    }

    fn state_folder(&self) -> Option<PathBuf> {
        None
    }

    fn home(&self) -> Option<PathBuf> {
        None
    }

    fn variable(&self, _: &str) -> Variable {
        Variable::Unknown
    }

    fn support_of(&self, agent: Agent) -> Support {
        panic!("{agent} is asked for")
    }
}

struct Stage {
    _folder: tempfile::TempDir,
    store: Store,
    operations: Operations,
    place: PlaceId,
}

impl Stage {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_sqlite(&folder.path().join("record.db")).await.unwrap();
        let settings = Arc::new(Effective::default());
        let operations = Operations::new(store.clone(), settings, Arc::new(|_| false));
        Self { _folder: folder, store, operations, place: PlaceId::new(1, 1) }
    }

    async fn judge(&self, actor: &Actor, resume: Option<&RunId>) -> Result<Judged, Error> {
        let options = AskOptions { resume: resume.map(ToString::to_string), ..AskOptions::default() };
        let input = AskInput { prompt: "What is 2 + 2?".to_owned(), options, ..AskInput::default() };
        let new = NewAsk {
            input: &input,
            syntax: InputSyntax::Fields,
            way: Way::Queued { place: &self.place },
            surroundings: &Unseen,
        };
        self.operations.judge_ask(actor, &new).await
    }

    async fn ask(&self, actor: &Actor, resume: Option<&RunId>) -> RunId {
        let judged = self.judge(actor, resume).await.unwrap();
        self.operations.accept(judged, None).await.unwrap().run
    }

    /// Claims the run, and keeps a turn of it.
    async fn talk(&self, run: &RunId, first: u64) -> cofferdam_store::Lease {
        let owner = Owner { node: NodeId::new(1, 1), place: self.place.clone() };
        let claimed =
            self.store.claim_run(run, &owner, now_ms(), 30_000, &ClaimRules::default()).await.unwrap();
        let lease = claimed.expect("it is claimable").lease;
        let said = NewTurns { first, contents: vec!["{}".to_owned()], ..NewTurns::default() };
        self.store.record_turns(&lease, &said, now_ms()).await.unwrap();
        lease
    }

    async fn end(&self, lease: &cofferdam_store::Lease) {
        self.store.finish(lease, &Outcome::Succeeded, &Left::default(), now_ms()).await.unwrap();
    }
}

fn key(owner: &str) -> Actor {
    let scopes: Scopes = [Scope::Read, Scope::Run].into_iter().collect();
    Actor::Key { id: KeyId::new(1, 1), owner: owner.parse().unwrap(), scopes }
}

/// The attack: whoever goes on with a conversation has all of it repeated.
#[tokio::test]
async fn a_conversation_goes_on_for_its_owner_once_it_has_ended() {
    let stage = Stage::new().await;
    let (ci, other) = (key("ci"), key("other"));
    let first = stage.ask(&ci, None).await;
    let lease = stage.talk(&first, 1).await;
    let early = stage.judge(&ci, Some(&first)).await.unwrap_err().to_string();
    assert!(early.contains("is still running"), "{early}");
    stage.end(&lease).await;
    let hidden = stage.judge(&other, Some(&first)).await.unwrap_err();
    let missing = stage.judge(&other, Some(&RunId::new(1, 9))).await.unwrap_err();
    // Everybody may see it, as the settings are by default, and only its owner goes on with it.
    assert!(matches!(hidden, Error::Refused(_)), "{hidden:?}");
    assert!(matches!(missing, Error::RunNotFound(_)), "{missing:?}");
    let second = stage.ask(&ci, Some(&first)).await;
    let lease = stage.talk(&second, 2).await;
    let turns = stage.store.turns(&lease).await.unwrap();
    assert_eq!(turns.iter().map(|turn| turn.is_earlier).collect::<Vec<_>>(), [true, false]);
}

#[tokio::test]
async fn what_says_nothing_any_more_is_not_gone_on_with() {
    let stage = Stage::new().await;
    let ci = key("ci");
    let run = stage.ask(&ci, None).await;
    stage.operations.cancel_run(&ci, &run).await.unwrap();
    let error = stage.judge(&ci, Some(&run)).await.unwrap_err().to_string();
    assert!(error.contains("nothing is kept of what was said"), "{error}");
}
