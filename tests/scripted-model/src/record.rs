//! What arrived, and what became of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use serde::Serialize;
use serde_json::Value;

use crate::conversation::Api;
use crate::watched::Watched;

/// A request that arrived.
#[derive(Debug, Clone, Serialize)]
pub struct Recorded {
    /// Its place among all requests, from 0.
    pub number: usize,
    /// The HTTP method.
    pub method: String,
    /// The path as it was asked for, with prefix and query.
    pub path: String,
    /// The headers, with names in lower case; of one that came twice, both values joined by `, `.
    pub headers: BTreeMap<String, String>,
    /// The body: JSON, or a string if it is not JSON.
    pub body: Value,
    /// The API, if it is one of those spoken.
    pub api: Option<Api>,
    /// What it was.
    pub kind: Kind,
    /// The session of a CLI, if the headers name one.
    pub session: Option<String>,
    /// When it arrived, in milliseconds since 1970.
    pub at_ms: u64,
    /// How many calls were in flight when it arrived, with itself if it is one.
    pub in_flight: usize,
    /// How it ended; nothing while it is in flight.
    pub ending: Option<Ending>,
}

/// What a request was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A generating call: it took an answer from the script.
    Call,
    /// A generating call without tools, answered beside the script.
    Aside,
    /// A count of tokens.
    CountTokens,
    /// The list of models.
    Models,
    /// A `HEAD` or `OPTIONS`, as a look whether anyone is here.
    Probe,
    /// Refused, since its key was not the expected one.
    WrongKey,
    /// Anything else.
    Unknown,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It was answered as the script said; an error of the script's is an answer.
    Answered,
    /// The script cut it off.
    Cut,
    /// The client left before the end.
    Abandoned,
}

impl Recorded {
    /// The key that arrived: `x-api-key`, or the bearer token.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        let bearer = || self.headers.get("authorization").and_then(|value| value.strip_prefix("Bearer "));
        self.headers.get("x-api-key").map(String::as_str).or_else(bearer)
    }
}

/// All that a running model has seen, and the gates.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) requests: Vec<Recorded>,
    pub(crate) in_flight: usize,
    pub(crate) max_in_flight: usize,
    pub(crate) released: BTreeSet<String>,
    /// How many answers wait at each gate.
    pub(crate) held: BTreeMap<String, usize>,
}

impl Seen {
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.requests.iter().filter(|request| request.kind == kind).count()
    }

    pub(crate) fn is_held(&self, gate: &str) -> bool {
        self.held.get(gate).is_some_and(|&held| held > 0)
    }

    /// The requests, one short line each: for the message of a test that fails.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |one: &Recorded| format!("{} {} {:?} {:?}", one.method, one.path, one.kind, one.ending);
        self.requests.iter().map(line).collect()
    }
}

/// A request in flight. Dropped before its end, it was abandoned.
pub(crate) struct InFlight {
    seen: Arc<Watched<Seen>>,
    number: usize,
    ending: Ending,
}

impl InFlight {
    /// Records a request.
    pub(crate) fn begin(seen: &Arc<Watched<Seen>>, arrived: Arrived) -> Self {
        let number = seen.change(|seen| {
            let number = seen.requests.len();
            if arrived.kind == Kind::Call {
                seen.in_flight += 1;
                seen.max_in_flight = seen.max_in_flight.max(seen.in_flight);
            }
            seen.requests.push(arrived.into_recorded(number, seen.in_flight));
            number
        });
        Self { seen: Arc::clone(seen), number, ending: Ending::Abandoned }
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    pub(crate) fn end(mut self, ending: Ending) {
        self.ending = ending;
    }

    /// Waits at a gate.
    pub(crate) async fn hold(&self, gate: &str) {
        let held = Held::at(&self.seen, gate);
        self.seen.until(|seen| seen.released.contains(&held.gate)).await;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.seen.change(|seen| {
            let request = &mut seen.requests[self.number];
            request.ending = Some(self.ending);
            if request.kind == Kind::Call {
                seen.in_flight -= 1;
            }
        });
    }
}

/// An answer that waits at a gate; the client may leave while it does.
struct Held {
    seen: Arc<Watched<Seen>>,
    gate: String,
}

impl Held {
    fn at(seen: &Arc<Watched<Seen>>, gate: &str) -> Self {
        seen.change(|seen| *seen.held.entry(gate.to_owned()).or_default() += 1);
        Self { seen: Arc::clone(seen), gate: gate.to_owned() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.seen.change(|seen| {
            if let Some(held) = seen.held.get_mut(&self.gate) {
                *held -= 1;
            }
        });
    }
}

/// A request, before it has a number.
pub(crate) struct Arrived {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    pub(crate) api: Option<Api>,
    pub(crate) kind: Kind,
    pub(crate) session: Option<String>,
}

impl Arrived {
    fn into_recorded(self, number: usize, in_flight: usize) -> Recorded {
        let Self { method, path, headers, body, api, kind, session } = self;
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        Recorded { number, method, path, headers, body, api, kind, session, at_ms, in_flight, ending: None }
    }
}

/// Headers as they are recorded.
pub(crate) fn plain_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut plain: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        plain
            .entry(name.as_str().to_owned())
            .and_modify(|before| *before = format!("{before}, {value}"))
            .or_insert_with(|| value.into_owned());
    }
    plain
}

/// Writes the requests that have ended as JSON lines, each once.
pub(crate) fn write_ended(
    seen: &Seen,
    written: &mut BTreeSet<usize>,
    mut out: impl Write,
) -> std::io::Result<()> {
    for request in &seen.requests {
        if request.ending.is_some() && !written.contains(&request.number) {
            serde_json::to_writer(&mut out, request)?;
            out.write_all(b"\n")?;
            written.insert(request.number);
        }
    }
    out.flush()
}
