//! The nodes, the model that their agents talk to, the engine of their containers, and the record that they share.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cofferdam_core::RunId;
use cofferdam_e2e::{Engine, Fixture, Marks, PrivateEngine, Service, leftovers};
use cofferdam_runner::Home;
use cofferdam_scripted_model::{Answer, Script, ScriptedModel};
use cofferdam_store::{PostgresOptions, RunFilter, RunRecord, Store, StoreOptions};

const KEY: &str = "sk-ant-the-key-of-the-operator";
const NAMES: [&str; 3] = ["a", "b", "c"];
/// Retries have pauses, a lease of a node that is gone has to expire, and the machine may be small.
const ENDS_WITHIN: Duration = Duration::from_secs(600);
/// Nodes look for leftovers once a minute, and an engine that has just come back is slow.
const TIDY_WITHIN: Duration = Duration::from_secs(150);

/// A node that may be away.
pub(crate) struct Member {
    name: &'static str,
    state: PathBuf,
    listen: String,
    pub(crate) service: Option<Service>,
}

/// The nodes and what they share.
pub(crate) struct Cast {
    // Before the fixture, which looks for what is left.
    pub(crate) members: Vec<Member>,
    pub(crate) model: ScriptedModel,
    pub(crate) marks: Marks,
    pub(crate) engine: Option<PrivateEngine>,
    runtime: tokio::runtime::Runtime,
    store: Store,
    fixture: Fixture,
}

impl Cast {
    /// Three nodes on one state folder.
    pub(crate) fn of_one_folder() -> Self {
        Self::new(|fixture, _| fixture.state(), None)
    }

    /// Three nodes with a state folder each, as on three machines.
    pub(crate) fn of_many_folders(store_url: &str) -> Self {
        Self::new(|fixture, name| fixture.path(&format!("state-{name}")), Some(store_url))
    }

    fn new(state: impl Fn(&Fixture, &str) -> PathBuf, store_url: Option<&str>) -> Self {
        let mut fixture = Fixture::without_repository();
        let script = Script::new([]).counting_asides().expecting_key(KEY);
        let model = ScriptedModel::start(script.ending_with(Answer::text("It is done.")));
        fixture.set_env("ANTHROPIC_API_KEY", KEY);
        fixture.set_env("ANTHROPIC_BASE_URL", &model.base_url());
        let engine = Engine::find().and_then(|shared| {
            let own = PrivateEngine::start(&shared)?;
            fixture.set_env("DOCKER_HOST", &own.address());
            fixture.set_env("SANDBOX_DOCKER_IMAGE", shared.small_image());
            Some(own)
        });
        if let Some(url) = store_url {
            fixture.set_env("COFFERDAM_STORE_URL", url);
        }
        let mut members: Vec<Member> = NAMES
            .into_iter()
            .map(|name| Member { name, state: state(&fixture, name), listen: free_address(), service: None })
            .collect();
        for member in &mut members {
            member.start(&fixture);
            member.service.iter().for_each(Service::until_ready);
        }
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let store = runtime.block_on(open(&members[0].state, store_url));
        let marks = Marks::new(&fixture);
        Self { members, model, marks, engine, runtime, store, fixture }
    }

    /// Starts a node that is not there.
    pub(crate) fn start(&mut self, index: usize) {
        self.members[index].start(&self.fixture);
    }

    /// Everything is there again.
    pub(crate) fn heal(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.revive();
        }
        for index in 0..self.members.len() {
            self.start(index);
        }
        for service in self.members.iter().filter_map(|member| member.service.as_ref()) {
            service.until_ready();
            let _ = (service.child("dispatcher"), service.child("broker"));
        }
    }

    /// Waits until every run has ended.
    pub(crate) fn wait_for_all(&self, accepted: &[RunId]) {
        let started = Instant::now();
        loop {
            let runs = self.runs();
            let open: Vec<String> = accepted
                .iter()
                .filter(|run| !runs.get(run).is_some_and(|record| record.state.is_final()))
                .map(|run| {
                    let state = runs.get(run).map(|record| (record.state, record.attempts));
                    format!("{run}: {state:?}")
                })
                .collect();
            if open.is_empty() {
                return;
            }
            assert!(started.elapsed() < ENDS_WITHIN, "these have not ended: {open:#?}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// What is on record.
    pub(crate) fn runs(&self) -> BTreeMap<RunId, RunRecord> {
        let runs = self.ask(async |store| store.list_runs(&RunFilter::newest(100_000)).await);
        runs.into_iter().map(|run| (run.request.id.clone(), run)).collect()
    }

    /// Asks the record.
    pub(crate) fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&Store) -> Result<T, cofferdam_store::Error>,
    ) -> T {
        self.runtime.block_on(question(&self.store)).expect("the record can be read")
    }

    /// Waits until the nodes have tidied up, stops them, and looks for what they have left.
    pub(crate) fn end(mut self) {
        // Those that were there when all was done: nodes go on trying which modes they can use, in new ones.
        let containers = || self.in_engine(&["ps", "--all", "--quiet"]);
        let first = containers();
        let started = Instant::now();
        while first.lines().any(|id| containers().contains(id)) {
            let left = || self.left_in_engine();
            assert!(
                started.elapsed() < TIDY_WITHIN,
                "the containers of the dead are still there: {}",
                left()
            );
            std::thread::sleep(Duration::from_millis(500));
        }
        for service in self.members.iter_mut().filter_map(|member| member.service.take()) {
            service.stop();
        }
        for member in &self.members {
            let left = || {
                let mut left = leftovers(&member.state);
                // An engine that was killed while it started a container leaves a helper of its own that waits for ever.
                // It is not ours to end, and never became an agent.
                left.retain(|found| !found.ends_with(": runc init "));
                left
            };
            // Or it has forgotten the container. The worker in it has no job, starts nothing, and ends when none comes.
            let forgotten = |found: &String| found.ends_with(": /run/cofferdam/cofferdam worker ");
            let wait = |left: &[String]| !left.is_empty() && left.iter().all(forgotten);
            while started.elapsed() < TIDY_WITHIN && wait(&left()) {
                std::thread::sleep(Duration::from_millis(500));
            }
            assert_eq!(left(), Vec::<String>::new(), "left by {}", member.name);
        }
        assert_eq!(self.left_in_engine(), "");
    }

    fn left_in_engine(&self) -> String {
        [
            &["ps", "--all", "--format", "{{json .}}"][..],
            &["volume", "ls", "--quiet"],
            &["network", "ls", "--quiet", "--filter", "type=custom"],
        ]
        .into_iter()
        .map(|what| self.in_engine(what))
        .collect()
    }

    /// What the engine lists.
    fn in_engine(&self, what: &[&str]) -> String {
        let Some(engine) = &self.engine else { return String::new() };
        let listed = engine.docker(what).output().expect("docker runs");
        assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
        String::from_utf8_lossy(&listed.stdout).into_owned()
    }
}

impl Member {
    fn start(&mut self, fixture: &Fixture) {
        if self.service.is_none() {
            let flags = ["--listen", &self.listen, "--capacity", "3", "--drain", "60"];
            self.service = Some(Service::launch(fixture, &self.state, self.name, &flags));
        }
    }

    /// Where its API is, whether it is there now or not.
    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.listen)
    }
}

async fn open(state: &std::path::Path, store_url: Option<&str>) -> Store {
    let options = match store_url {
        Some(url) => StoreOptions::Postgres(PostgresOptions::at(url.parse().expect("an address"))),
        None => StoreOptions::Sqlite(Home::open(state).expect("a state folder").database()),
    };
    Store::open(&options).await.expect("the record opens")
}

/// An address that nobody has now, and that a node keeps when it is started again.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}
