//! Numbers for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::Method;

use crate::app::{App, now_ms};
use crate::status::Seen;

/// Upper bounds of the times that are counted, in milliseconds.
const BUCKETS: [u64; 10] = [1, 5, 10, 25, 50, 100, 250, 1_000, 5_000, 30_000];

/// What has been counted since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By route, method and status. Routes are those of the router, so that callers cannot make up new ones.
    answers: Mutex<BTreeMap<(String, Method, u16), Answers>>,
    in_flight: AtomicI64,
    streams: AtomicI64,
    frames: AtomicU64,
}

#[derive(Debug, Default, Clone)]
struct Answers {
    count: u64,
    total: Duration,
    buckets: [u64; BUCKETS.len()],
}

/// Counts something as long as it is kept.
pub(crate) struct Counted {
    metrics: Arc<Metrics>,
    which: fn(&Metrics) -> &AtomicI64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.which)(&self.metrics).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Counts a stream as long as what is returned is kept.
    pub(crate) fn stream(self: &Arc<Self>) -> Counted {
        self.counted(|metrics| &metrics.streams)
    }

    /// Counts what a stream has sent.
    pub(crate) fn sent(&self, frames: usize) {
        self.frames.fetch_add(u64::try_from(frames).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn counted(self: &Arc<Self>, which: fn(&Self) -> &AtomicI64) -> Counted {
        which(self).fetch_add(1, Ordering::Relaxed);
        Counted { metrics: Arc::clone(self), which }
    }

    fn answered(&self, route: String, method: Method, status: u16, took: Duration) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = answers.entry((route, method, status)).or_default();
        entry.count += 1;
        entry.total += took;
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        for (bucket, bound) in entry.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(ms <= bound);
        }
    }

    /// All of it, as Prometheus reads it.
    pub(crate) fn text(&self, seen: &Seen) -> String {
        let mut text = String::new();
        let mut gauge = |name: &str, help: &str, kind: &str, values: &[(String, String)]| {
            let _ = writeln!(text, "# HELP cofferdam_{name} {help}\n# TYPE cofferdam_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "cofferdam_{name}{labels} {value}");
            }
        };
        let plain = |value: String| vec![(String::new(), value)];
        let up = u8::from(seen.store_fault.is_none());
        gauge("store_up", "Whether the record of runs can be used.", "gauge", &plain(up.to_string()));
        if let Some(disk) = seen.disk {
            let (free, total) = (disk.free_bytes.to_string(), disk.total_bytes.to_string());
            gauge(
                "disk_free_bytes",
                "What the disk of the state folder has room for.",
                "gauge",
                &plain(free),
            );
            gauge("disk_size_bytes", "The size of that disk.", "gauge", &plain(total));
        }
        let runs = seen
            .counts
            .counts
            .iter()
            .map(|(state, count)| (format!("{{state=\"{state}\"}}"), count.to_string()));
        gauge("runs", "Runs on record by state.", "gauge", &runs.collect::<Vec<_>>());
        let waiting = seen.counts.oldest_waiting_ms.map_or(0, |oldest| now_ms().saturating_sub(oldest));
        gauge(
            "oldest_waiting_seconds",
            "How long the oldest run that could be claimed has been waiting.",
            "gauge",
            &plain((waiting / 1000).to_string()),
        );
        gauge(
            "nodes",
            "Nodes that have told of themselves lately.",
            "gauge",
            &plain(seen.nodes.len().to_string()),
        );
        let capacity: u64 = seen.nodes.iter().map(|node| u64::from(node.report.capacity)).sum();
        gauge("capacity", "Runs that these nodes execute at once.", "gauge", &plain(capacity.to_string()));
        let running: u64 = seen.nodes.iter().map(|node| u64::from(node.report.running)).sum();
        gauge("executing", "Runs that they execute now.", "gauge", &plain(running.to_string()));
        let load = |value: &AtomicI64| plain(value.load(Ordering::Relaxed).to_string());
        gauge("http_requests_in_flight", "Requests under way.", "gauge", &load(&self.in_flight));
        gauge("event_streams", "Open streams of events.", "gauge", &load(&self.streams));
        let frames = self.frames.load(Ordering::Relaxed).to_string();
        gauge("event_frames_sent_total", "Events sent on streams.", "counter", &plain(frames));
        self.write_answers(&mut text);
        text
    }

    fn write_answers(&self, text: &mut String) {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let name = "cofferdam_http_request_duration_seconds";
        let _ = writeln!(text, "# HELP {name} How long answers took.\n# TYPE {name} histogram");
        for ((route, method, status), answer) in answers {
            let labels = format!("route=\"{route}\",method=\"{method}\",status=\"{status}\"");
            for (count, bound) in answer.buckets.iter().zip(BUCKETS) {
                let bound = Duration::from_millis(bound).as_secs_f64();
                let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}");
            }
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", answer.count);
            let _ = writeln!(text, "{name}_sum{{{labels}}} {}", answer.total.as_secs_f64());
            let _ = writeln!(text, "{name}_count{{{labels}}} {}", answer.count);
        }
    }
}

/// Counts a request and its answer.
pub(crate) async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    let metrics = Arc::clone(app.metrics());
    let _in_flight = metrics.counted(|metrics| &metrics.in_flight);
    let route = request.extensions().get::<MatchedPath>().map_or("unknown", MatchedPath::as_str).to_owned();
    let (method, begun) = (known(request.method()), Instant::now());
    let response = next.run(request).await;
    metrics.answered(route, method, response.status().as_u16(), begun.elapsed());
    response
}

/// A method that nobody knows is one of many that callers can make up.
fn known(method: &Method) -> Method {
    match *method {
        Method::GET
        | Method::POST
        | Method::PUT
        | Method::PATCH
        | Method::DELETE
        | Method::HEAD
        | Method::OPTIONS => method.clone(),
        _ => Method::TRACE,
    }
}
