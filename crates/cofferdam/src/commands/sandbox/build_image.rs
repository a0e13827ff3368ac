//! `cofferdam sandbox build-image`: the image that agents run in, and why it is as large as it is.

mod progress;
mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use cofferdam_core::{ImageReference, ImageReferenceError, with_causes};
use cofferdam_sandbox::docker::{Build, BuildError, DOCKERFILE, PROXY_VARIABLES, build};

use self::progress::BuildWatcher;
use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::{node, settings, signals, terminal};

/// Build the image of containers: git, ssh, curl, Node, the three agents, and this binary
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct BuildImageArgs {
    /// What to call it [default: what the settings name, or cofferdam/worker:latest]
    #[arg(long, value_name = "IMAGE", allow_hyphen_values = true)]
    tag: Option<String>,
    /// The Debian or Ubuntu image to build on [default: that of the Dockerfile]
    #[arg(long, value_name = "IMAGE", allow_hyphen_values = true)]
    base: Option<String>,
    /// The engine's network for the build, such as `host` [default: the engine's own]
    #[arg(long, value_name = "NETWORK")]
    network: Option<String>,
    /// The cofferdam binary to put in, if the image is for another processor [default: this one]
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Print the Dockerfile and build nothing
    #[arg(long, conflicts_with_all = ["tag", "base", "network", "binary", "json"])]
    print_dockerfile: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
   0  the image was built
   1  the build failed
   2  usage error: bad flag, bad name of an image
   3  refused: no engine, a bad setting, a binary that the image could not run
   5  cancelled";

/// Builds it, and says what was made.
pub(crate) async fn run(args: &BuildImageArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    if args.print_dockerfile {
        terminal::write_stdout(DOCKERFILE.as_bytes())?;
        return Ok(ExitCode::Succeeded);
    }
    let settings = settings::read(caller)?;
    let docker = settings::docker(caller, &settings)?;
    let wanted = Build {
        tag: image("--tag", args.tag.as_deref())?.unwrap_or(docker.image),
        base: image("--base", args.base.as_deref())?,
        network: args.network.as_deref().map(network).transpose()?,
        proxies: proxies(caller),
        binary: match &args.binary {
            Some(path) => caller.resolve(path),
            None => std::env::current_exe()
                .map_err(|error| Failure::internal("our own binary cannot be found", &error))?,
        },
        agents: node::image_agents(),
    };
    if wanted.tag.to_string().contains('@') {
        let message = format!("--tag: {} names a content, and a new image has no such name yet", wanted.tag);
        return Err(UsageError::new(message, "leave `@sha256:…` out").into());
    }
    let engine = node::engine_address(caller, &settings).map_err(refused)?;
    let mut watcher = BuildWatcher::on_stderr();
    let mut see = |news| watcher.see(&news);
    let built = tokio::select! {
        built = build(&engine, &wanted, &mut see) => Some(built),
        asked = signals::asked_to_end() => {
            asked.map_err(|error| Failure::internal("signals cannot be received", &error))?;
            None
        }
    };
    watcher.finish();
    let built = match built {
        Some(Ok(built)) => built,
        Some(Err(error)) => {
            watcher.show_tail();
            return Err(failure(error));
        }
        None => return Err(Failure::new(ExitCode::Cancelled, "the build was cancelled")),
    };
    terminal::write_answer(args.json, || report::to_json(&built), || report::to_text(&built))?;
    Ok(ExitCode::Succeeded)
}

fn image(flag: &str, text: Option<&str>) -> Result<Option<ImageReference>, UsageError> {
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error: ImageReferenceError| {
        UsageError::new(
            format!("{flag}: {error}"),
            format!("type an image such as `{flag} debian:bookworm-slim`"),
        )
    })
}

/// The engine knows its networks; what could not be the name of one is not sent.
fn network(name: &str) -> Result<String, UsageError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-:".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        return Ok(name.to_owned());
    }
    let message = format!("--network: `{name}` is not the name of a network");
    Err(UsageError::new(message, "type `--network host`, or one that `docker network ls` lists"))
}

fn proxies(caller: &Caller) -> BTreeMap<String, String> {
    let set = |name: &str| Some((name.to_owned(), caller.var(name)?.to_str()?.to_owned()));
    PROXY_VARIABLES.into_iter().filter_map(set).collect()
}

fn failure(error: BuildError) -> Failure {
    match error {
        BuildError::Refused(refusal) => refused(refusal),
        BuildError::Binary { .. } => {
            Failure::new(ExitCode::Usage, with_causes(&error)).hint("give --binary a file that you can read")
        }
        BuildError::Failed { .. } => Failure::new(ExitCode::Failed, with_causes(&error)).hint(
            "if it could not reach a registry: export HTTPS_PROXY, add --network host, or give --base an image \
             that is there",
        ),
    }
}

fn refused(refusal: cofferdam_sandbox::Refusal) -> Failure {
    Failure::new(ExitCode::Refused, refusal.problem).hint(refusal.remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_are_usage_errors() {
        assert_eq!(image("--tag", None), Ok(None));
        let error = image("--base", Some("openTiger/worker")).unwrap_err();
        assert!(error.to_string().starts_with("--base: image `openTiger/worker` has upper case"), "{error}");
        for name in ["host", "my_net.1", "container:abc"] {
            assert_eq!(network(name).as_deref(), Ok(name));
        }
        for name in ["", "a b", "a&b=c", "\u{1b}[2J"] {
            assert!(network(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn only_proxy_variables_are_passed_on() {
        let env =
            [("HTTPS_PROXY", "http://p:1"), ("no_proxy", "a"), ("GITHUB_TOKEN", "x"), ("HTTP_PROXY", "")]
                .map(|(name, value)| (name.into(), value.into()));
        let caller = Caller { env: env.into(), current_folder: "/".into() };
        let names: Vec<String> = proxies(&caller).into_keys().collect();
        assert_eq!(names, ["HTTPS_PROXY", "no_proxy"]);
    }
}
