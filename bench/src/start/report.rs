//! The table and the JSON.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{BWRAP, CREATE, DOCKER, EMPTY, LARGE_ROOT, LARGE_USER, Lane, SMALL_ROOT, SMALL_USER};
use crate::table;

/// A ratio of two p50s, with the most that it may be.
struct Ratio {
    of: &'static str,
    to: &'static str,
    at_most: Option<f64>,
}

const RATIOS: [Ratio; 4] = [
    Ratio { of: CREATE, to: BWRAP, at_most: Some(2.0) },
    Ratio { of: EMPTY, to: DOCKER, at_most: Some(0.25) },
    Ratio { of: LARGE_ROOT, to: SMALL_ROOT, at_most: Some(2.0) },
    Ratio { of: LARGE_USER, to: SMALL_USER, at_most: None },
];

#[derive(Default)]
pub(super) struct Report {
    pub(super) lanes: Vec<Lane>,
    skipped: Vec<(&'static str, String)>,
}

impl Report {
    pub(super) fn skip(&mut self, name: &'static str, why: &str) {
        self.skipped.push((name, why.to_owned()));
    }

    pub(super) fn is_any_missed(&self) -> bool {
        RATIOS.iter().any(|ratio| self.verdict(ratio) == Verdict::Missed)
    }

    pub(super) fn render(&self) -> String {
        let heading = ["", "p50 ms", "p95 ms"].map(String::from).to_vec();
        let times = self.lanes.iter().map(|lane| {
            let ms = |value: f64| format!("{value:.1}");
            vec![lane.name.to_owned(), ms(lane.times.p50_ms()), ms(lane.times.p95_ms())]
        });
        let mut text = table::render(&std::iter::once(heading).chain(times).collect::<Vec<_>>());
        for (name, why) in &self.skipped {
            text += &format!("not measured: {name}: {why}\n");
        }
        let heading = ["ratio of p50s", "is", "target", ""].map(String::from).to_vec();
        let ratios = RATIOS.iter().map(|ratio| {
            let is = self.value(ratio).map_or("-".to_owned(), |value| format!("{value:.2}"));
            let target = ratio.at_most.map_or("none".to_owned(), |most| format!("<= {most:.2}"));
            vec![format!("{} / {}", ratio.of, ratio.to), is, target, self.verdict(ratio).text().to_owned()]
        });
        text.push('\n');
        text + &table::render(&std::iter::once(heading).chain(ratios).collect::<Vec<_>>())
    }

    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let times = self.lanes.iter().map(|lane| {
            json!({
                "name": lane.name,
                "what": lane.what,
                "rounds": lane.times.count(),
                "p50_ms": lane.times.p50_ms(),
                "p95_ms": lane.times.p95_ms(),
            })
        });
        let ratios = RATIOS.iter().map(|ratio| {
            json!({
                "of": ratio.of,
                "to": ratio.to,
                "is": self.value(ratio),
                "at_most": ratio.at_most,
                "verdict": self.verdict(ratio).text(),
            })
        });
        let skipped = self.skipped.iter().map(|(name, why)| json!({ "name": name, "why": why }));
        let content = json!({
            "bench": "start",
            "kernel": rustix::system::uname().release().to_string_lossy(),
            "processors": std::thread::available_parallelism().map_or(0, usize::from),
            "times": times.collect::<Vec<Value>>(),
            "ratios": ratios.collect::<Vec<Value>>(),
            "skipped": skipped.collect::<Vec<Value>>(),
        });
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let text = serde_json::to_string_pretty(&content)? + "\n";
        fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
    }

    fn value(&self, ratio: &Ratio) -> Option<f64> {
        let p50 = |name| self.lanes.iter().find(|lane| lane.name == name).map(|lane| lane.times.p50_ms());
        Some(p50(ratio.of)? / p50(ratio.to)?)
    }

    fn verdict(&self, ratio: &Ratio) -> Verdict {
        match (self.value(ratio), ratio.at_most) {
            (None, _) => Verdict::NotMeasured,
            (Some(_), None) => Verdict::NoTarget,
            (Some(value), Some(most)) if value <= most => Verdict::Met,
            (Some(_), Some(_)) => Verdict::Missed,
        }
    }
}

#[derive(PartialEq, Eq)]
enum Verdict {
    Met,
    Missed,
    NoTarget,
    NotMeasured,
}

impl Verdict {
    fn text(&self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::NoTarget => "",
            Self::NotMeasured => "not measured",
        }
    }
}
