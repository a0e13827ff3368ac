//! A conversation with a scripted model over a TCP connection, whose journal and mail a test can see.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_core::{EventType, MessageKind};
use cofferdam_direct::{
    Connect, Connection, Delta, Ended, Entry, History, Journal, JournalError, Mail, ModelClient, Patience,
    Said, Settings, Tool, ToolResult, Tools, Turn, converse,
};
use cofferdam_scripted_model::{Answer, Script, ScriptedModel, ToolCall};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::Notify;

pub(crate) struct Tcp(pub(crate) SocketAddr);

#[async_trait]
impl Connect for Tcp {
    async fn connect(&self) -> io::Result<Box<dyn Connection>> {
        Ok(Box::new(TcpStream::connect(self.0).await?))
    }
}

/// A client that asks again at once.
pub(crate) fn client(address: SocketAddr) -> ModelClient {
    client_that_asks_again(address, 4)
}

/// A client that asks once.
pub(crate) fn impatient(address: SocketAddr) -> ModelClient {
    client_that_asks_again(address, 0)
}

fn client_that_asks_again(address: SocketAddr, retries: u32) -> ModelClient {
    let (first_wait, longest_wait) = (Duration::from_millis(1), Duration::from_millis(1500));
    let patience = Patience { retries, first_wait, longest_wait };
    ModelClient::new(Arc::new(Tcp(address)), http::HeaderMap::new(), patience)
}

/// What was recorded and shown.
#[derive(Clone, Default)]
pub(crate) struct Record {
    entries: Arc<Mutex<Vec<Entry>>>,
    shown: Arc<Mutex<Vec<Delta>>>,
    shows: Arc<Notify>,
    /// Fails from this entry on.
    fails_at: Option<usize>,
}

impl Record {
    pub(crate) fn failing_at(entry: usize) -> Self {
        Self { fails_at: Some(entry), ..Self::default() }
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }

    pub(crate) fn turns(&self) -> Vec<Turn> {
        self.entries().into_iter().flat_map(|entry| entry.turns).collect()
    }

    pub(crate) fn facts(&self, wanted: EventType) -> Vec<Value> {
        let facts = self.entries().into_iter().flat_map(|entry| entry.facts);
        facts.filter(|fact| fact.event_type == wanted).map(|fact| fact.data).collect()
    }

    pub(crate) fn delivered(&self) -> Vec<String> {
        self.entries().into_iter().flat_map(|entry| entry.delivered).map(|message| message.id).collect()
    }

    /// Returns once so many pieces were shown.
    pub(crate) async fn shown(&self, pieces: usize) {
        loop {
            let shows = self.shows.notified();
            tokio::pin!(shows);
            shows.as_mut().enable();
            if self.shown.lock().unwrap().len() >= pieces {
                return;
            }
            shows.await;
        }
    }

    pub(crate) fn shown_text(&self) -> String {
        let shown = self.shown.lock().unwrap();
        let texts = shown.iter().filter_map(|delta| match delta {
            Delta::Text { text, .. } => Some(text.as_str()),
            Delta::Thinking { .. } => None,
        });
        texts.collect()
    }
}

#[async_trait]
impl Journal for Record {
    async fn record(&mut self, entry: Entry) -> Result<(), JournalError> {
        let mut entries = self.entries.lock().unwrap();
        if self.fails_at.is_some_and(|at| entries.len() >= at) {
            return Err(JournalError("the disk is full".into()));
        }
        entries.push(entry);
        Ok(())
    }

    fn show(&mut self, delta: Delta) {
        self.shown.lock().unwrap().push(delta);
        self.shows.notify_waiters();
    }
}

/// What people say. Like the store, it gives a message until its delivery was recorded.
#[derive(Clone)]
pub(crate) struct Post {
    said: Arc<Mutex<Vec<Said>>>,
    came: Arc<Notify>,
    record: Record,
}

impl Post {
    pub(crate) fn new(record: &Record) -> Self {
        Self { said: Arc::default(), came: Arc::default(), record: record.clone() }
    }

    pub(crate) fn say(&self, id: &str, kind: MessageKind, content: &str) {
        let said = Said { id: id.to_owned(), kind, content: content.to_owned() };
        self.said.lock().unwrap().push(said);
        self.came.notify_waiters();
    }

    fn undelivered(&self) -> Vec<Said> {
        let delivered = self.record.delivered();
        self.said.lock().unwrap().iter().filter(|said| !delivered.contains(&said.id)).cloned().collect()
    }
}

#[async_trait]
impl Mail for Post {
    async fn waiting(&mut self) -> Vec<Said> {
        self.undelivered()
    }

    async fn interrupted(&mut self) {
        loop {
            let came = self.came.notified();
            tokio::pin!(came);
            came.as_mut().enable();
            if self.undelivered().iter().any(|said| said.kind == MessageKind::Interrupt) {
                return;
            }
            came.await;
        }
    }
}

/// Repeats what it is given; `fail`, `panic` and `wait` do what they say.
pub(crate) struct Echo {
    pub(crate) name: &'static str,
    pub(crate) waits: Option<Arc<tokio::sync::Barrier>>,
}

#[async_trait]
impl Tool for Echo {
    fn name(&self) -> &str {
        self.name
    }

    fn definition(&self) -> Value {
        json!({ "name": self.name, "description": "Repeats.", "input_schema": { "type": "object" } })
    }

    async fn call(&self, input: Value) -> ToolResult {
        if let Some(barrier) = &self.waits {
            barrier.wait().await;
        }
        match input["say"].as_str().unwrap_or_default() {
            "fail" => ToolResult::error("it failed"),
            "panic" => panic!("a tool that panics"),
            "wait" => std::future::pending().await,
            text => ToolResult::text(text),
        }
    }
}

pub(crate) fn echo() -> Tools {
    Tools { own: vec![Arc::new(Echo { name: "Echo", waits: None })], ..Tools::default() }
}

/// A call of [`Echo`].
pub(crate) fn say(text: &str) -> ToolCall {
    ToolCall::Raw { name: "Echo".to_owned(), input: json!({ "say": text }) }
}

pub(crate) fn settings() -> Settings {
    Settings {
        model: "scripted".to_owned(),
        system: "Be brief.".to_owned(),
        max_turns: 10,
        max_output_tokens: 1000,
        thinking: None,
        effort: None,
        output_schema: None,
    }
}

/// A conversation that is led to its end.
pub(crate) struct Led {
    pub(crate) model: ScriptedModel,
    pub(crate) record: Record,
    pub(crate) ended: Ended,
}

impl Led {
    pub(crate) fn result(&self) -> &str {
        self.ended.report.result.as_deref().unwrap_or_default()
    }

    /// The bodies of the requests.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.model.requests().into_iter().map(|request| request.body).collect()
    }

    /// The last message of each request.
    pub(crate) fn last_messages(&self) -> Vec<Value> {
        let last = |body: &Value| body["messages"].as_array().and_then(|all| all.last()).cloned();
        self.requests().iter().filter_map(last).collect()
    }
}

pub(crate) async fn lead(answers: impl IntoIterator<Item = Answer>) -> Led {
    lead_with(&settings(), &echo(), Script::new(answers)).await
}

pub(crate) async fn lead_with(settings: &Settings, tools: &Tools, script: Script) -> Led {
    let history = History { before: Vec::new(), own: vec![Turn::prompt("Do it")] };
    go_on(settings, tools, history, ScriptedModel::start(script.counting_asides())).await
}

pub(crate) async fn go_on(settings: &Settings, tools: &Tools, history: History, model: ScriptedModel) -> Led {
    let record = Record::default();
    let mut mail = Post::new(&record);
    let client = client(model.address());
    let talk = converse(settings, history, &client, tools, &mut record.clone(), &mut mail).await;
    Led { model, record, ended: talk.unwrap() }
}
