//! Claims runs and executes them, as many at once as the node has room for.

mod breaker;
mod contact;
mod modes;
mod report;
mod requests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::{Mode, RunId, Work, with_causes};
use cofferdam_store::{ClaimRules, Claimed, Slots, Store, WorkTaken};
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, Interval, interval, interval_at, sleep_until, timeout};

use self::breaker::{Breaker, Verdict};
use self::contact::Contact;
pub use self::modes::ModesRule;
pub use self::modes::try_policy;
use self::modes::{Modes, casts_doubt};
use self::report::Now;
pub use self::requests::AnswerTask;
use self::requests::Requests;
use crate::execute::{After, Entry, ExecuteError, Retries, execute_unwatched};
use crate::lease_times::LEASE_MS;
use crate::node::{Node, now_ms};
use crate::recovery::{self, Orphan};

/// How often the queue is looked at, should a wake be lost.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// How often runs are looked for whose node is gone.
const ADOPT_EVERY: Duration = Duration::from_secs(5);
/// How often leftovers are looked for.
const CLEAN_EVERY: Duration = Duration::from_secs(60);
/// How often the node tells of itself.
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// How long one word about itself may take at its end.
const FAREWELL_WITHIN: Duration = Duration::from_secs(2);
/// How long an attempt that was given up is left alone, should it be ours still.
const GIVEN_UP_FOR: Duration = Duration::from_secs(1);
/// How long the record may take to answer. What was claimed in an answer that came too late is adopted.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// Whether a dispatcher is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// It is not.
    No,
    /// It takes nothing more, and waits for its runs as long as its options say.
    Drain,
    /// At once.
    Now,
}

/// How a dispatcher works.
#[derive(Debug, Clone)]
pub struct DispatcherOptions {
    /// How many runs it executes at once.
    pub capacity: usize,
    /// How many direct ones besides: each costs a connection, and no sandbox.
    pub direct_capacity: usize,
    /// Which of its modes it takes runs for.
    pub modes: ModesRule,
    /// How long it waits for its runs when it is told to drain.
    pub drain: Duration,
    /// What people call the node.
    pub name: String,
    /// Its machine.
    pub host: String,
    /// Its version.
    pub version: String,
}

/// Executes detached runs until it is told to stop. Stopping leaves the sandboxes alone: the next start
/// under the same name adopts them.
pub struct Dispatcher {
    node: Arc<Node>,
    /// Does not wait: whether it answers is what the dispatcher goes by.
    store: Store,
    options: DispatcherOptions,
    started_at_ms: u64,
    executing: JoinSet<Ended>,
    /// The runs that are being executed, by the task that does it.
    held: HashMap<Id, Held>,
    trials: JoinSet<(Mode, Option<String>)>,
    cleaning: JoinSet<()>,
    /// Whether leftovers are to be looked for as soon as nothing is tried.
    is_clean_due: bool,
    breaker: Breaker,
    modes: Modes,
    contact: Contact,
    adopt_at: Instant,
    requests: Requests,
    /// Which runs it may have, asked before each claim.
    claim_rules: Option<RulesNow>,
}

/// Which runs a node may have now, where that changes while it works.
pub type RulesNow = Arc<dyn Fn() -> ClaimRules + Send + Sync>;

/// A run that is being executed.
struct Held {
    run: RunId,
    /// In which mode; a direct run has none.
    mode: Option<Mode>,
}

/// An attempt that is over.
struct Ended {
    mode: Option<Mode>,
    after: Result<After, ExecuteError>,
}

/// What the loop waits for, besides its tasks.
struct Waits {
    asked: watch::Receiver<Stop>,
    wakes: watch::Receiver<u64>,
    cleans: Interval,
    reports: Interval,
    /// When it no longer waits for its runs, if it is to end.
    drained_at: Option<Instant>,
}

/// What came.
enum Input {
    Stop(Stop),
    DrainOver,
    Ended(Result<(Id, Ended), JoinError>),
    Tried(Result<(Mode, Option<String>), JoinError>),
    Clean,
    Report,
    Look,
}

impl Dispatcher {
    /// A dispatcher of this node.
    #[must_use]
    pub fn new(node: Arc<Node>, options: DispatcherOptions) -> Self {
        let now = now_ms();
        Self {
            modes: Modes::new(options.modes, node.backends.keys().copied()),
            store: node.impatient_store(),
            node,
            options,
            started_at_ms: now,
            executing: JoinSet::new(),
            held: HashMap::new(),
            trials: JoinSet::new(),
            cleaning: JoinSet::new(),
            is_clean_due: true,
            breaker: Breaker::default(),
            contact: Contact::Since(now),
            adopt_at: Instant::now(),
            requests: Requests::default(),
            claim_rules: None,
        }
    }

    /// The same, answering what the node is asked.
    #[must_use]
    pub fn answering(self, answer: AnswerTask) -> Self {
        Self { requests: Requests::new(answer), ..self }
    }

    /// The same with rules that are asked for before each claim.
    #[must_use]
    pub fn claiming_by(self, rules: RulesNow) -> Self {
        Self { claim_rules: Some(rules), ..self }
    }

    /// Adopts what a former self has left, then claims and executes until it is told to stop. A record that cannot be
    /// reached for a while is waited for.
    pub async fn run(mut self, asked: watch::Receiver<Stop>) {
        let mut waits = Waits {
            asked,
            wakes: self.node.wakes.clone(),
            cleans: interval_at(Instant::now() + CLEAN_EVERY, CLEAN_EVERY),
            reports: interval(REPORT_EVERY),
            drained_at: None,
        };
        let mut stop = Stop::No;
        loop {
            if self.contact.is_due(now_ms()) {
                self.work(stop).await;
            }
            if stop == Stop::Now || (stop == Stop::Drain && self.is_idle()) {
                break;
            }
            match self.wait(&mut waits, stop).await {
                Input::Stop(more) => {
                    stop = more;
                    waits.drained_at.get_or_insert(Instant::now() + self.options.drain);
                    tracing::info!(node = %self.options.name, running = self.executing.len(), "stopping");
                    self.report(stop).await;
                }
                Input::DrainOver => stop = Stop::Now,
                Input::Ended(ended) => self.ended(ended),
                Input::Tried(tried) => self.tried(tried),
                Input::Clean => self.is_clean_due = true,
                Input::Report => self.report(stop).await,
                Input::Look => {}
            }
        }
        let left = self.executing.len();
        tracing::info!(node = %self.options.name, left, "stopped; what runs goes on in its sandbox");
        // Whoever asks the record must not wait for us; it is only a courtesy to readers.
        let farewell = self.store.remove_node(&self.node.id);
        let _ = timeout(FAREWELL_WITHIN, farewell).await;
    }

    /// A trial, an answer or a look for leftovers that was cut off would leave something itself.
    fn is_idle(&self) -> bool {
        let tries_nothing = self.trials.is_empty() && self.requests.is_idle();
        self.executing.is_empty() && tries_nothing && self.cleaning.is_empty()
    }

    async fn wait(&mut self, waits: &mut Waits, stop: Stop) -> Input {
        let Waits { asked, wakes, cleans, reports, drained_at } = waits;
        let more = async { asked.wait_for(|asked| *asked > stop).await.map(|asked| *asked) };
        tokio::select! {
            Ok(more) = more => Input::Stop(more),
            () = drain_over(*drained_at) => Input::DrainOver,
            Some(ended) = self.executing.join_next_with_id() => Input::Ended(ended),
            Some(tried) = self.trials.join_next() => Input::Tried(tried),
            Some(_) = self.cleaning.join_next() => Input::Look,
            () = self.requests.done() => Input::Look,
            _ = cleans.tick() => Input::Clean,
            _ = reports.tick() => Input::Report,
            // Where nobody wakes any more, the poll is left.
            Ok(()) = wakes.changed() => Input::Look,
            () = tokio::time::sleep(POLL_EVERY) => Input::Look,
        }
    }

    /// Adopts, then claims. Adopting comes first: a run that is under way has waited already.
    async fn work(&mut self, stop: Stop) {
        let worked = async {
            if stop != Stop::No {
                return Ok(());
            }
            if self.adopt_at <= Instant::now() {
                self.adopt().await?;
                self.adopt_at = Instant::now() + ADOPT_EVERY;
            }
            self.clean();
            self.try_modes();
            self.requests.take(&self.store, &self.node.id).await?;
            self.fill().await
        };
        let worked: Result<Result<(), ExecuteError>, _> = timeout(ANSWERS_WITHIN, worked).await;
        let error = match worked {
            Ok(Ok(())) => return self.contact.worked(now_ms()),
            Ok(Err(error)) => with_causes(&error),
            Err(_) => "it does not answer".to_owned(),
        };
        let pause_ms = self.contact.failed(now_ms());
        tracing::warn!(%error, pause_ms, "the record cannot be used; trying again");
    }

    async fn fill(&mut self) -> Result<(), ExecuteError> {
        // Two kinds of work are looked for, and a node that has nothing to do writes no more than for one.
        while self.running(WorkTaken::Direct) < self.options.direct_capacity
            && self.store.has_direct_waiting(now_ms()).await?
        {
            let rules = ClaimRules { work: WorkTaken::Direct, slots: Slots::Unlimited, ..self.rules_now() };
            let Some(claimed) = self.claim(&rules).await? else { break };
            self.start(claimed, Entry::Claimed, Retries::AsAsked);
        }
        while self.running(WorkTaken::Processes) < self.options.capacity {
            let Some(rules) = self.rules() else { break };
            let Some(claimed) = self.claim(&rules).await? else { break };
            self.breaker.claimed(claimed.request.policy.mode);
            self.start(claimed, Entry::Claimed, Retries::AsAsked);
        }
        Ok(())
    }

    async fn claim(&self, rules: &ClaimRules) -> Result<Option<Claimed>, ExecuteError> {
        Ok(self.store.claim(&self.node.owner(), now_ms(), LEASE_MS, rules).await?)
    }

    /// How many runs of a kind it executes.
    fn running(&self, work: WorkTaken) -> usize {
        let counts = |held: &&Held| match work {
            WorkTaken::Any => true,
            WorkTaken::Processes => held.mode.is_some(),
            WorkTaken::Direct => held.mode.is_none(),
        };
        self.held.values().filter(counts).count()
    }

    fn rules_now(&self) -> ClaimRules {
        self.claim_rules.as_ref().map_or_else(|| self.node.rules.clone(), |rules| rules())
    }

    /// Which runs of processes it may have now; `None` if there is no mode for them.
    fn rules(&self) -> Option<ClaimRules> {
        let now = now_ms();
        let modes: Vec<Mode> = self.modes.usable().filter(|mode| self.breaker.allows(*mode, now)).collect();
        // No mode at all would mean any mode.
        (!modes.is_empty()).then(|| ClaimRules { modes, work: WorkTaken::Processes, ..self.rules_now() })
    }

    fn try_modes(&mut self) {
        // The sandbox of a trial is nobody's run, and would be taken for a leftover.
        if !self.cleaning.is_empty() {
            return;
        }
        for mode in self.modes.take_due(now_ms()) {
            let node = Arc::clone(&self.node);
            self.trials.spawn(async move {
                let missing = match node.backends.get(&mode) {
                    Some(backend) => modes::try_mode(&**backend, &node.id).await,
                    None => Some("this node has no backend for it".to_owned()),
                };
                (mode, missing)
            });
        }
    }

    fn tried(&mut self, tried: Result<(Mode, Option<String>), JoinError>) {
        match tried {
            Ok((mode, missing)) => {
                let said = missing.clone();
                let is_news = self.modes.found(mode, missing, now_ms());
                match said {
                    _ if !is_news => {}
                    Some(missing) => tracing::info!(%mode, missing, "this mode cannot be used here"),
                    None => tracing::info!(%mode, "this mode can be used"),
                }
            }
            Err(panic) => tracing::error!(%panic, "the task that tries a mode panicked"),
        }
    }

    async fn adopt(&mut self) -> Result<(), ExecuteError> {
        let now = now_ms();
        for orphan in recovery::orphans(&self.node, &self.store, now, self.contact.is_steady(now)).await? {
            let run = &orphan.live().attempt.run;
            if self.held.values().any(|held| held.run == *run) {
                continue;
            }
            if let Some(claimed) = recovery::adopt(&self.node, &self.store, &orphan).await? {
                tracing::info!(run.id = %run, "going on with a run that was under way");
                // Nothing of a direct run was where its node is: what was said is in the record.
                let is_anywhere = claimed.request.work.direct().is_some()
                    && claimed.request.placement.place.as_ref().is_none_or(|place| *place == self.node.place);
                let (entry, retries) = match orphan {
                    Orphan::Here(_) => (Entry::Adopted, Retries::AsAsked),
                    Orphan::Elsewhere(live) if live.claimable_by.is_none() && is_anywhere => {
                        (Entry::Adopted, Retries::AsAsked)
                    }
                    Orphan::Elsewhere(live) if live.claimable_by.is_some() => (Entry::Lost, Retries::Never),
                    Orphan::Elsewhere(_) => (Entry::Lost, Retries::AsAsked),
                };
                self.start(claimed, entry, retries);
            }
        }
        Ok(())
    }

    fn clean(&mut self) {
        let tries_something = !self.trials.is_empty() || !self.requests.is_idle();
        if !self.is_clean_due || !self.cleaning.is_empty() || tries_something {
            return;
        }
        self.is_clean_due = false;
        let node = Arc::clone(&self.node);
        self.cleaning.spawn(async move {
            if let Err(error) = recovery::sweep(&node).await {
                let error = with_causes(&error);
                tracing::warn!(%error, "clean-up after dead processes failed");
            }
        });
    }

    async fn report(&mut self, stop: Stop) {
        let now_ms = now_ms();
        if !self.contact.is_due(now_ms) {
            return;
        }
        let now = Now {
            stop,
            running: self.running(WorkTaken::Processes),
            breaker: &self.breaker,
            modes: &self.modes,
            started_at_ms: self.started_at_ms,
            now_ms,
        };
        let record = report::record(&self.node, &self.options, &now);
        if let Err(error) = self.store.report_node(&record).await {
            tracing::debug!(%error, "the node could not tell of itself");
        }
    }

    fn ended(&mut self, ended: Result<(Id, Ended), JoinError>) {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let Some(Held { run, .. }) = self.held.remove(&id) else { return };
        // If it is still ours, we go on with it as after a restart.
        let go_on = Instant::now() + GIVEN_UP_FOR;
        let Ended { mode, after } = match ended {
            Ok((_, ended)) => ended,
            Err(panic) => {
                tracing::error!(run.id = %run, %panic, "the attempt's task panicked");
                self.adopt_at = self.adopt_at.min(go_on);
                return;
            }
        };
        let outcome = match after {
            Ok(after) => after.outcome,
            Err(error) => {
                tracing::warn!(run.id = %run, error = %with_causes(&error), "an attempt was given up");
                self.adopt_at = self.adopt_at.min(go_on);
                // Should it have been a probe, the next run is one.
                if let Some(mode) = mode {
                    self.breaker.ended(mode, Verdict::Nothing, now_ms());
                }
                return;
            }
        };
        let Some(mode) = mode else { return };
        if casts_doubt(&outcome) {
            self.modes.doubt(mode);
        }
        if let Some(rest) = self.breaker.ended(mode, Verdict::of(&outcome), now_ms()) {
            let (reason, until_ms) = (rest.reason, rest.until_ms);
            tracing::warn!(%mode, reason, until_ms, "this mode is left alone for a while");
        }
    }

    fn start(&mut self, claimed: Claimed, entry: Entry, retries: Retries) {
        let node = Arc::clone(&self.node);
        let run = claimed.attempt.run.clone();
        let mode = match &claimed.request.work {
            Work::Direct(_) => None,
            Work::Program { .. } | Work::Spec(_) | Work::Agent { .. } => Some(claimed.request.policy.mode),
        };
        let task = self.executing.spawn(async move {
            Ended { mode, after: execute_unwatched(&node, claimed, entry, retries).await }
        });
        self.held.insert(task.id(), Held { run, mode });
    }
}

async fn drain_over(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
