//! `start`: what it costs to run a program sealed, against bubblewrap and `docker run`.

mod bwrap;
mod docker;
mod report;
mod repository;
mod sandbox;
mod user;
mod whole_run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;

use crate::StartArgs;
use crate::stats::Times;
use report::Report;
use user::User;
use whole_run::WholeRun;

/// Rounds whose times are thrown away: caches fill in them.
const WARM_UP: usize = 2;
/// The two sizes of a workspace, in files.
const SMALL: usize = 100;
const LARGE: usize = 100_000;

/// Something whose time is measured.
trait Contestant {
    /// Does it once. Cleaning up is not part of the time.
    fn once(&mut self) -> anyhow::Result<Duration>;
}

/// A contestant with its name and its times.
struct Lane {
    name: &'static str,
    what: String,
    contestant: Box<dyn Contestant>,
    times: Times,
}

pub(crate) const CREATE: &str = "sandbox create to first worker line";
pub(crate) const BWRAP: &str = "bwrap to first line";
pub(crate) const EMPTY: &str = "whole run, empty";
pub(crate) const DOCKER: &str = "docker run";
pub(crate) const SMALL_ROOT: &str = "whole run, 100 files, root";
pub(crate) const LARGE_ROOT: &str = "whole run, 100,000 files, root";
pub(crate) const SMALL_USER: &str = "whole run, 100 files, user";
pub(crate) const LARGE_USER: &str = "whole run, 100,000 files, user";

/// Measures everything and reports it.
pub(crate) fn run(args: &StartArgs) -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    user::open_to_all(folder.path())?;
    let binary = copy_binary(args, folder.path())?;
    let mut report = Report::default();
    let mut lanes = lanes(folder.path(), &binary, &mut report)?;
    for round in 0..WARM_UP + args.rounds {
        // One after the other in every round, so that a busy moment of the machine hits all of them.
        for lane in &mut lanes {
            let time = lane.contestant.once().with_context(|| format!("`{}` failed", lane.name))?;
            if round >= WARM_UP {
                lane.times.add(time);
            }
        }
        eprint!("\rround {} of {}", round + 1, WARM_UP + args.rounds);
    }
    eprintln!();
    report.lanes = lanes;
    print!("{}", report.render());
    report.write(&args.output)?;
    eprintln!("written to {}", args.output.display());
    let failed = args.strict && report.is_any_missed();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn lanes(folder: &Path, binary: &Path, report: &mut Report) -> anyhow::Result<Vec<Lane>> {
    let caller = User::of_this_process(&folder.join("caller"))?;
    let small = repository::make(&caller, "small", SMALL)?;
    let mut lanes = Vec::new();
    let mut add = |name, what: String, contestant: Box<dyn Contestant>| {
        lanes.push(Lane { name, what, contestant, times: Times::default() });
    };
    let run = |user: &User, repository: &Path| -> Box<dyn Contestant> {
        Box::new(WholeRun::new(user, binary, repository))
    };
    add(
        CREATE,
        "NativeBackend::create, attach, first line".to_owned(),
        Box::new(sandbox::Create::new(&caller, binary, &small)?),
    );
    match bwrap::Bwrap::find(&small) {
        Some(bwrap) => add(BWRAP, bwrap.describe(), Box::new(bwrap)),
        None => report.skip(BWRAP, "bwrap is not installed"),
    }
    add(EMPTY, "cofferdam run --json -- true".to_owned(), run(&caller, &small));
    match docker::Docker::find() {
        Ok(docker) => add(DOCKER, docker.describe(), Box::new(docker)),
        Err(why) => report.skip(DOCKER, &why),
    }
    let what = "cofferdam run --json -- true".to_owned();
    if caller.is_root() {
        let large = repository::make(&caller, "large", LARGE)?;
        add(SMALL_ROOT, what.clone(), run(&caller, &small));
        add(LARGE_ROOT, what.clone(), run(&caller, &large));
    } else {
        report.skip(LARGE_ROOT, "not started by root");
    }
    match if caller.is_root() { User::nobody(&folder.join("user"))? } else { Some(caller) } {
        Some(user) => {
            let small = repository::make(&user, "small", SMALL)?;
            let large = repository::make(&user, "large", LARGE)?;
            add(SMALL_USER, what.clone(), run(&user, &small));
            add(LARGE_USER, what, run(&user, &large));
        }
        None => report.skip(LARGE_USER, "setpriv is not installed"),
    }
    Ok(lanes)
}

/// The checkout may be closed to other users, so what is measured is a copy.
fn copy_binary(args: &StartArgs, folder: &Path) -> anyhow::Result<PathBuf> {
    let beside = || std::env::current_exe().map(|own| own.with_file_name("cofferdam"));
    let binary = args.binary.clone().map_or_else(beside, Ok)?;
    let copy = folder.join("cofferdam");
    std::fs::copy(&binary, &copy)
        .with_context(|| format!("no release binary at {}; type: ./dev bench start", binary.display()))?;
    Ok(copy)
}
