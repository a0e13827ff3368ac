//! From a running worker to its end: the seal, the agent's lines, and a cancel.

use std::time::Duration;

use cofferdam_core::{
    AgentEnd, Breach, EventType, FailureClass, Gateway, Job, Network, NewEvent, NumberedSeal, Outcome,
    Policy, Seal, ToWorker, WorkerExited, inside,
};
use cofferdam_sandbox::{Backend, Process, Sandbox};
use cofferdam_store::{PhaseNews, failpoint};
use serde_json::json;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use super::begin::Begun;
use super::heard::Heard;
use super::lines::{Line, read};
use super::mail::Mail;
use super::phases::Phases;
use super::way_out::private_folders;
use super::{Attempt, Stop};
use crate::node::now_ms;
use crate::progress::{Cancel, Stage};
use crate::workspace::Handover;
use crate::{attempt_secrets, redaction};

/// How long a worker has, beyond the agent's grace, before the sandbox is killed.
const LAST_WORDS: Duration = Duration::from_millis(700);
/// How long an agent has to end by itself once its budget is spent: it is told so at its next model call.
const BUDGET_GRACE: Duration = Duration::from_secs(10);
/// How often the store is looked at, should a wake be lost.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How the worker ended.
pub(super) struct Ended {
    /// Set if the agent was never let in.
    pub(super) refused: Option<Outcome>,
    /// The worker's last line.
    pub(super) worker: Option<WorkerExited>,
    /// Whether somebody had asked for the end.
    pub(super) cancelled: bool,
    /// The session that the agent's CLI opened.
    pub(super) session: Option<OpenedSession>,
    /// What the broker goes on to write until it has closed the attempt.
    pub(super) heard: Heard,
}

impl Ended {
    /// What the agent's CLI said at the end of its last turn.
    pub(super) fn last_words(&self) -> &str {
        let report = self.worker.as_ref().and_then(|exited| exited.report.as_ref());
        report.map_or("", |report| report.message.as_str())
    }
}

/// A session of an agent's CLI, as it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenedSession {
    pub(super) id: String,
    /// Whether it is one of an earlier run.
    pub(super) resumed: bool,
}

impl OpenedSession {
    fn of(event: &NewEvent) -> Option<Self> {
        let id = event.data["session_id"].as_str()?.to_owned();
        Some(Self { id, resumed: event.data["resumed"] == true })
    }
}

/// What one supervised worker works with.
struct Supervised<'a> {
    sandbox: &'a dyn Sandbox,
    handover: &'a Handover,
    stdin: std::pin::Pin<Box<dyn AsyncWrite + Send>>,
    batches: mpsc::Receiver<Vec<Line>>,
    worker: Option<WorkerExited>,
    refused: Option<Outcome>,
    measured: bool,
    /// Whether there is an agent that messages could be for.
    started: bool,
    /// When the agent is asked to end, because its budget is spent.
    end_at: Option<Instant>,
    kill_at: Option<Instant>,
    mail: Mail,
    session: Option<OpenedSession>,
    heard: Heard,
    /// How far its spec is, if it works on one.
    phases: Option<Phases>,
}

/// Sends the job, compares the seal, lets the agent in, and records every line until the worker is gone.
pub(super) async fn supervise(
    attempt: &mut Attempt<'_>,
    backend: &dyn Backend,
    begun: &Begun,
) -> Result<Ended, Stop> {
    let Process { stdin, stdout } = begun.sandbox.attach().await?;
    attempt_secrets::remember(attempt.node, &attempt.claimed)?;
    let gateway = connect_egress(begun).await?;
    let mut job = job(attempt, backend, begun, gateway);
    let phases = match attempt.claimed.request.work.spec() {
        Some(setup) => {
            let progress = attempt.node.store.spec_progress(&attempt.claimed.lease).await?;
            job.spec = Some(progress.clone());
            Some(Phases::new(setup, progress))
        }
        None => None,
    };
    let mut supervised = Supervised {
        sandbox: &*begun.sandbox,
        handover: &begun.handover,
        stdin,
        batches: read(stdout),
        worker: None,
        refused: None,
        measured: false,
        started: false,
        end_at: None,
        kill_at: None,
        mail: Mail::default(),
        session: None,
        heard: Heard::new(&attempt.claimed.attempt, attempt.node.broker.listen()),
        phases,
    };
    supervised.send(&ToWorker::Job(Box::new(job))).await;
    failpoint("runner.job_sent");
    supervised.follow(attempt).await?;
    begun.sandbox.wait_for_processes().await?;
    let Supervised { refused, worker, measured, session, heard, .. } = supervised;
    let refused = match worker.as_ref().map(|exited| &exited.end) {
        // What was not measured is not sealed.
        Some(AgentEnd::NotStarted { reason }) if !measured => {
            Some(Outcome::failed(FailureClass::Seal, format!("the seal could not be measured: {reason}")))
        }
        _ => refused,
    };
    let cancelled = *attempt.cancel.borrow() != Cancel::No;
    Ok(Ended { refused, worker, cancelled, session, heard })
}

fn job(attempt: &Attempt<'_>, backend: &dyn Backend, begun: &Begun, gateway: Option<Gateway>) -> Job {
    let exchange = begun.sandbox.exchange();
    let request = &attempt.claimed.request;
    let mut env = backend.base_env(&request.policy);
    // Values are read now and go to the worker alone: they are in no record of ours.
    for name in &request.policy.env {
        if let Some(value) = (attempt.node.env)(name) {
            env.insert(name.clone(), from_inside(&request.policy, backend, name, value));
        }
    }
    let working_directory = exchange.working_directory(&begun.handover.target.0).display().to_string();
    env.insert("PWD".to_owned(), working_directory.clone());
    let mut probe_paths: Vec<String> = inside::CLOSED.map(String::from).into();
    // It is a mount of its own, and tried as such; should it be none, it is tried all the same.
    probe_paths.extend(request.policy.mode.is_sandboxed().then(|| working_directory.clone()));
    let companions = begun.handover.companions(request.policy.workspace_access);
    let program = begun.program.as_ref();
    let mut memory = begun.memory.as_ref();
    if let Some(program) = program {
        let path = env.entry("PATH".to_owned()).or_default();
        for folder in program.path_entries(exchange) {
            path.push(':');
            path.push_str(&folder);
        }
        if !request.policy.mode.is_sandboxed() {
            match private_folders(&attempt.node.home, &attempt.sandbox_id()) {
                Ok(folders) => env.extend(folders),
                // Then it uses the caller's, which is no worse than what the mode says of itself, but nothing is to be
                // linked into those.
                Err(_) => memory = None,
            }
        }
    }
    Job {
        attempt: attempt.claimed.attempt.clone(),
        work: request.work.clone(),
        working_directory,
        folder: request.working_dir.clone(),
        env,
        program: program.map(|program| program.argv(exchange)).unwrap_or_default(),
        gateway,
        session: memory.map(|memory| {
            let kept = memory.kept();
            memory.session(&exchange.path_inside(&kept.source, &kept.target))
        }),
        spec: None,
        walls: backend.wall_plan(&attempt.sandbox_id(), &request.policy, &companions),
        probe_paths,
        output_bytes: request.policy.limits.output_bytes,
        grace_ms: request.policy.grace_ms,
    }
}

/// A value as it must be inside: an address on the caller's loopback leads nowhere in a container with a network of its
/// own. In a sealed one nothing would answer at another address either; there `--forward` puts a service on its loopback.
fn from_inside(policy: &Policy, backend: &dyn Backend, name: &str, value: String) -> String {
    let host = backend.host_name(policy).filter(|_| policy.network == Network::Open);
    let rewritten = host.and_then(|host| policy.container.rewrite_loopback.rewrite(name, &value, host));
    rewritten.unwrap_or(value)
}

/// Connects the worker with the broker, if it has a way out.
async fn connect_egress(begun: &Begun) -> Result<Option<Gateway>, Stop> {
    let Some(granted) = &begun.way_out else { return Ok(None) };
    let folder = begun.sandbox.exchange().connect_egress(&granted.folder).await?;
    Ok(Some(Gateway { folder: folder.display().to_string(), ..granted.gateway.clone() }))
}

impl Supervised<'_> {
    /// Writes one line. A worker that is gone cannot read it, and its output says what happened.
    async fn send(&mut self, line: &ToWorker) {
        let line = serde_json::to_string(line).expect("a line is plain data");
        // A half-written line of a former process would merge with ours.
        let text = format!("\n{line}\n");
        if self.stdin.write_all(text.as_bytes()).await.is_ok() {
            let _ = self.stdin.flush().await;
        }
    }

    async fn follow(&mut self, attempt: &mut Attempt<'_>) -> Result<(), Stop> {
        let mut cancel = attempt.cancel.clone();
        let mut seen = Cancel::No;
        let mut wakes = attempt.node.wakes.clone();
        loop {
            let (end_at, kill_at) = (self.end_at, self.kill_at);
            let more = async { cancel.wait_for(|asked| *asked > seen).await.map(|asked| *asked) };
            tokio::select! {
                batch = self.batches.recv() => match batch {
                    Some(batch) => self.handle(attempt, batch).await?,
                    None => return Ok(()),
                },
                Ok(asked) = more => {
                    seen = asked;
                    self.cancel(attempt.claimed.request.policy.grace_ms, asked).await?;
                }
                () = until(end_at) => {
                    self.end_at = None;
                    self.cancel(attempt.claimed.request.policy.grace_ms, Cancel::Gracefully).await?;
                }
                () = until(kill_at) => {
                    self.kill_at = None;
                    self.sandbox.kill().await?;
                }
                event = self.heard.next() => attempt.tell(vec![event]),
                () = woken(&mut wakes) => self.look(attempt).await?,
            }
        }
    }

    /// Looks for what others have written into the store: messages, a spent budget, a longer allow-list.
    async fn look(&mut self, attempt: &mut Attempt<'_>) -> Result<(), Stop> {
        let (node, claimed) = (attempt.node, &attempt.claimed);
        if self.end_at.is_none() && node.store.budget_exceeded(&claimed.attempt.run).await?.is_some() {
            self.end_at = Some(Instant::now() + BUDGET_GRACE);
        }
        node.broker.refresh(&node.store, &claimed.attempt).await;
        if self.started {
            for line in self.mail.collect(node, &claimed.lease).await? {
                self.send(&line).await;
            }
        }
        Ok(())
    }

    async fn cancel(&mut self, grace_ms: u64, asked: Cancel) -> Result<(), Stop> {
        if asked == Cancel::Now {
            return Ok(self.sandbox.kill().await?);
        }
        self.send(&ToWorker::Cancel { grace_ms }).await;
        self.kill_at = Some(Instant::now() + Duration::from_millis(grace_ms) + LAST_WORDS);
        Ok(())
    }

    async fn handle(&mut self, attempt: &mut Attempt<'_>, batch: Vec<Line>) -> Result<(), Stop> {
        let mut events = Vec::with_capacity(batch.len());
        for line in batch {
            match line {
                Line::Event(event) => {
                    self.started |= event.event_type == EventType::AgentStarted;
                    // Each try of a phase is a process of its own, whose walls are not measured yet.
                    self.measured &= event.event_type != EventType::PhaseStarted;
                    if let Some(phases) = &mut self.phases {
                        phases.hear(&event);
                    }
                    if event.event_type == EventType::AgentSession {
                        self.session = OpenedSession::of(&event).or(self.session.take());
                    }
                    events.push(event);
                }
                Line::Phase(output, place) => {
                    attempt.append(std::mem::take(&mut events)).await?;
                    let judged = self.phases.as_mut().map(|phases| phases.judge(*output, place));
                    self.record(attempt, judged.unwrap_or(Ok(None))).await?;
                }
                Line::Exited(exited, place) => {
                    attempt.append(std::mem::take(&mut events)).await?;
                    let judged = self.phases.as_ref().map(|phases| phases.conclude(&exited.end, place));
                    self.record(attempt, judged.unwrap_or(Ok(None))).await?;
                    self.worker = Some(exited);
                }
                Line::Receipt(receipt) => {
                    attempt.append(std::mem::take(&mut events)).await?;
                    self.mail.receive(attempt, receipt).await?;
                }
                Line::Seal(measured, seq) => {
                    attempt.held.append(&mut events);
                    self.judge(attempt, *measured, seq).await?;
                }
            }
        }
        attempt.append(events).await
    }

    /// Records what is known of a phase. A worker that is not believed is heard no more.
    async fn record(
        &mut self,
        attempt: &mut Attempt<'_>,
        judged: Result<Option<PhaseNews>, Outcome>,
    ) -> Result<(), Stop> {
        match judged {
            Ok(Some(mut news)) if self.refused.is_none() => {
                news.events = attempt.with_held(news.events);
                if let Some(output) = &mut news.output {
                    attempt.redactor.value(output);
                }
                news.reasons.iter_mut().for_each(|reason| attempt.redactor.string(reason));
                let store = &attempt.node.store;
                let stored = store.record_phase(&attempt.claimed.lease, &news, now_ms()).await?;
                attempt.tell(stored);
            }
            Ok(_) => {}
            Err(outcome) => {
                self.refused.get_or_insert(outcome);
                self.sandbox.kill().await?;
            }
        }
        Ok(())
    }

    /// Compares the seal with the policy. The agent starts only if nothing is missing.
    async fn judge(
        &mut self,
        attempt: &mut Attempt<'_>,
        measured: NumberedSeal,
        seq: u64,
    ) -> Result<(), Stop> {
        self.measured = true;
        let NumberedSeal { number, inside } = measured;
        let policy = attempt.claimed.request.policy.clone();
        let workspace = self.sandbox.exchange().working_directory(&self.handover.target.0);
        let seal = Seal {
            mode: policy.mode,
            outside: self.sandbox.measure(&inside).await?,
            workspace: cofferdam_core::WorkspaceSeal::measured(&workspace.to_string_lossy(), &inside),
            inside,
            hidden: self.handover.hidden.clone(),
            stripped: self.handover.stripped.clone(),
        };
        let breaches = seal.breaches(&policy, &self.handover.companions(policy.workspace_access));
        let mut data = json!({ "seal": seal, "breaches": breaches });
        if number > 1 {
            data["number"] = json!(number);
        }
        let sealed = NewEvent::new(now_ms(), EventType::SandboxSealed, data);
        let events = attempt.with_held(vec![NewEvent { worker_seq: Some(seq), ..sealed }]);
        let recorded = redaction::redact_seal(&attempt.redactor, &seal);
        let stored = attempt.node.store.record_seal(&attempt.claimed.lease, &recorded, &events).await?;
        attempt.tell(stored);
        if breaches.is_empty() && self.refused.is_none() {
            attempt.stage(Stage::Running);
            self.send(&ToWorker::Start { number }).await;
            failpoint("runner.start_sent");
        } else {
            self.refused.get_or_insert_with(|| refusal(&breaches));
            self.sandbox.kill().await?;
        }
        Ok(())
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// A wake, or the time to look without one.
async fn woken(wakes: &mut watch::Receiver<u64>) {
    match timeout(LOOK_EVERY, wakes.changed()).await {
        Ok(Ok(())) | Err(_) => {}
        // Nobody wakes any more.
        Ok(Err(_)) => tokio::time::sleep(LOOK_EVERY).await,
    }
}

fn refusal(breaches: &[Breach]) -> Outcome {
    let listed: Vec<String> = breaches.iter().map(ToString::to_string).collect();
    let message = format!("the sandbox is weaker than the policy asks for: {}", listed.join("; "));
    let hint = "the agent was not started; `cofferdam runs events` of this run shows what was measured";
    Outcome::failed_with_hint(FailureClass::Seal, message, hint)
}
