//! Outcomes, seals and commands in plain words, for people.

use std::time::Duration;

use cofferdam_core::{DiskLimit, FailureClass, Mode, Outcome, Seal, Tried, Work, inside, iso_time};
use cofferdam_store::RunRecord;

use crate::sanitize;
use crate::units::show_duration;

/// How many hidden files are named before the rest is counted.
const MOST_NAMES: usize = 8;

/// How a run ended.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Succeeded => "succeeded".to_owned(),
        Outcome::Cancelled => "cancelled".to_owned(),
        Outcome::TimedOut { timeout_ms } => {
            format!("timed out after {}", show_duration(Duration::from_millis(*timeout_ms)))
        }
        Outcome::Failed { message, .. } => format!("failed: {}", sanitize::line(message)),
    }
}

/// What to do about it, if anything helps.
pub(crate) fn hint(outcome: &Outcome) -> Option<String> {
    let own = |text: &str| Some(text.to_owned());
    match outcome {
        Outcome::Succeeded | Outcome::Cancelled => None,
        Outcome::TimedOut { .. } => own("give it longer with `--timeout`"),
        Outcome::Failed { hint: Some(hint), .. } => Some(sanitize::line(hint)),
        Outcome::Failed { class, .. } => match class {
            FailureClass::OutOfMemory => own("give it more with `--memory`"),
            FailureClass::PidsLimit => own("give it more with `--pids`"),
            FailureClass::DiskLimit => own("give it more with `--disk`"),
            FailureClass::AgentMissing => own("name a program that exists inside the sandbox"),
            _ => None,
        },
    }
}

/// What retention has taken of a run, if anything.
pub(crate) fn removed(run: &RunRecord) -> Option<String> {
    let events = run.events_removed_at_ms.map(|at_ms| ("events", at_ms));
    let files = run.files_removed_at_ms.map(|at_ms| ("files", at_ms));
    let parts: Vec<String> = [events, files]
        .into_iter()
        .flatten()
        .map(|(what, at_ms)| format!("{what} on {}", iso_time(at_ms).split('T').next().unwrap_or_default()))
        .collect();
    (!parts.is_empty()).then(|| format!("{}, as `retention` says", parts.join(", ")))
}

/// What was in force, in one line.
pub(crate) fn seal(mode: Mode, seal: Option<&Seal>, ended: Option<&Outcome>) -> String {
    if mode == Mode::Host {
        return "NOT SEALED: host mode, the agent could read and change whatever you can".to_owned();
    }
    if let Some(Outcome::Failed { class: FailureClass::Seal, .. }) = ended {
        return format!("NOT SEALED: {mode}, so the agent was never started");
    }
    let Some(seal) = seal else {
        return match ended {
            Some(_) => format!("no seal: {mode}, no agent was started"),
            None => format!("no seal yet: {mode}"),
        };
    };
    let network = &seal.inside.network;
    let has_broker = seal.inside.mounts.iter().any(|mount| mount.target == inside::EGRESS);
    let reach = match (network.ipv4 == Tried::Worked || network.ipv6 == Tried::Worked, has_broker) {
        (true, _) => "open",
        (false, true) => "sealed (through the broker alone)",
        (false, false) => "none",
    };
    let read_only = seal.inside.mounts.iter().filter(|mount| mount.read_only).count();
    let limits = match (&seal.outside.cgroup, &seal.outside.limits_note) {
        (Some(group), _) => format!("limits held by cgroup v{}", group.version),
        (None, Some(note)) => format!("limits are best effort ({})", sanitize::line(note)),
        (None, None) => "limits are best effort".to_owned(),
    };
    let disk = match seal.outside.disk {
        // As it is everywhere by default.
        DiskLimit::Sampled => "",
        DiskLimit::FixedSize => ", disk of a fixed size",
    };
    format!("sealed: {mode}, network {reach}, {read_only} mounts read-only, {limits}{disk}")
}

/// Which files were hidden, if any.
pub(crate) fn hidden(seal: &Seal) -> Option<String> {
    names(&seal.hidden).map(|names| format!("hidden: {names} (show with --unmask)"))
}

/// Which git configuration was shown without its credentials, if any.
pub(crate) fn stripped(seal: &Seal) -> Option<String> {
    names(&seal.stripped).map(|names| format!("shown without credentials: {names}"))
}

fn names(paths: &[String]) -> Option<String> {
    let shown: Vec<String> = paths.iter().take(MOST_NAMES).map(|path| sanitize::line(path)).collect();
    let rest = paths.len().saturating_sub(MOST_NAMES);
    match (shown.is_empty(), rest) {
        (true, _) => None,
        (false, 0) => Some(shown.join(", ")),
        (false, rest) => Some(format!("{} and {rest} more", shown.join(", "))),
    }
}

/// The first words of what is run.
pub(crate) fn command(work: &Work, most: usize) -> String {
    match work {
        Work::Program { argv } => sanitize::short_line(&argv.join(" "), most),
        Work::Direct(setup) => sanitize::short_line(&format!("direct: {}", setup.prompt), most),
        Work::Spec(setup) => sanitize::short_line(&format!("spec: {}", setup.title), most),
        Work::Agent { agent, setup } => sanitize::short_line(&format!("{}: {}", agent, setup.prompt), most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_never_called_sealed() {
        assert!(seal(Mode::Host, None, Some(&Outcome::Succeeded)).starts_with("NOT SEALED"));
        let broken = Outcome::failed(FailureClass::Seal, "seccomp: expected mode 2, measured mode 0");
        assert!(seal(Mode::Native, None, Some(&broken)).starts_with("NOT SEALED"));
        assert!(seal(Mode::Native, None, None).starts_with("no seal yet"));
    }

    #[test]
    fn many_names_are_counted() {
        let many: Vec<String> = (0..10).map(|i| format!("{i}.key")).collect();
        assert_eq!(
            names(&many).unwrap(),
            "0.key, 1.key, 2.key, 3.key, 4.key, 5.key, 6.key, 7.key and 2 more"
        );
        assert_eq!(names(&[]), None);
    }

    #[test]
    fn a_limit_says_which_flag_raises_it() {
        let outcome =
            Outcome::failed(FailureClass::OutOfMemory, "the agent needed more memory than its limit");
        assert_eq!(hint(&outcome).unwrap(), "give it more with `--memory`");
    }
}
