//! The broker in a process of its own, with the ledger that it really has.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use cofferdam_broker::{
    Bounds, Broker, GitCredential, GitRepository, Grant, Locked, ModelGrant, NoGitCredential, Options,
    PriceTable, Secrets, Upstream,
};
use cofferdam_core::{
    Action, Actor, Agent, AttemptRef, Budget, Credential, NodeId, PlaceId, Policy, Redactor, RunId,
    RunRequest, Source, Vendor, Work,
};
use cofferdam_mandate::issue;
use cofferdam_runner::{Home, StoreLedger, now_ms};
use cofferdam_store::{ClaimRules, Owner, Store};
use serde_json::json;

/// Serves one attempt in this folder until it is killed. Prints a line when it does.
pub(super) fn serve(folder: &Path, upstream: u16) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let home = Home::open(&folder.join("home"))?;
        let store = Store::open_sqlite(&folder.join("home/bench.db")).await?;
        let attempt = claim(&store).await?;
        let redactor = Redactor::default().with(["sk-ant-of-the-benchmark-0123456789"]);
        let ledger = StoreLedger::new(store, home, redactor);
        let bounds = Bounds::default();
        let options = Options {
            secrets: Arc::new(Keys { base_url: format!("http://127.0.0.1:{upstream}") }),
            name_servers: Vec::new(),
            prices: PriceTable::default(),
            bounds,
        };
        let broker = Broker::new(options, Arc::new(ledger));
        let model = ModelGrant {
            agent: None,
            placeholder: "placeholder".to_owned(),
            placeholder_required: false,
            vendor_tools: Vec::new(),
            budget: Budget::default(),
        };
        let grant = Grant {
            attempt,
            folder: folder.to_owned(),
            proxy: None,
            forwards: Vec::new(),
            model: Some(model),
            git: None,
        };
        broker.open(grant).await?;
        println!("ready");
        std::io::stdout().flush()?;
        std::future::pending::<()>().await;
        Ok(())
    })
}

/// A run that is under way, so that its calls can be written down.
async fn claim(store: &Store) -> anyhow::Result<AttemptRef> {
    let request = RunRequest::new(
        RunId::new(now_ms(), 1),
        Source::Empty,
        Work::Program { argv: vec!["true".to_owned()] },
        Policy::default(),
    );
    let mandate = issue(&Actor::LocalUser, Action::CreateRun, request.id.as_str(), json!({}), now_ms());
    store.enqueue(&mandate, &request, None).await?;
    let owner = Owner { node: NodeId::new(now_ms(), 1), place: PlaceId::new(now_ms(), 1) };
    let claimed = store.claim(&owner, now_ms(), 3_600_000, &ClaimRules::default()).await?;
    Ok(claimed.context("the run could not be claimed")?.attempt)
}

struct Keys {
    base_url: String,
}

impl Secrets for Keys {
    fn upstream(&self, _: Vendor, _: Option<Agent>) -> Result<Upstream, Locked> {
        let credential = Credential::ApiKey("sk-ant-of-the-benchmark-0123456789".to_owned());
        Ok(Upstream { base_url: self.base_url.clone(), credential })
    }

    fn git(&self, _: &GitRepository<'_>) -> Result<GitCredential, NoGitCredential> {
        Err(NoGitCredential::NoToken)
    }
}
