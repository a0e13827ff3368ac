//! Variables that go before the files.

use std::fmt::Display;
use std::net::SocketAddr;
use std::str::FromStr;

use cofferdam_core::{
    ContainerNetwork, DockerSettings, Effective, EngineAddress, ExecutionTimeMs, ImageReference, Layer, Mode,
    Origin, ServiceSettings, Settings, StoreUrl, sandboxed,
};

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;

const IMAGE: &str = "SANDBOX_DOCKER_IMAGE";
const NETWORK: &str = "SANDBOX_DOCKER_NETWORK";
const HOST: &str = "DOCKER_HOST";
const ENVIRONMENT: &str = "EXECUTION_ENVIRONMENT";
const LAUNCH_MODE: &str = "LAUNCH_MODE";
const STORE_URL: &str = "COFFERDAM_STORE_URL";
const LISTEN: &str = "COFFERDAM_LISTEN";
const MAX_EXECUTION_TIME: &str = "MAX_EXECUTION_TIME";

/// Where agents run, as two variables say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Host,
    Sandbox,
}

/// What the caller's variables set. Those of containers and of the service that cannot be read are left out here: they
/// concern whoever wants one, and [`docker`] and [`service`] tell them.
pub(super) fn layer(caller: &Caller, below: &Effective) -> Result<Layer, Failure> {
    let mut layer = Layer::default();
    if let Some((place, variable)) = place(caller)? {
        let mode = match place {
            Place::Host => Mode::Host,
            Place::Sandbox => sandboxed(below),
        };
        layer.set_text(&["sandbox", "mode"], &mode, Origin::Environment(variable));
    }
    if let Ok(Some(image)) = variable::<ImageReference>(caller, IMAGE) {
        layer.set_text(&["sandbox", "docker", "image"], &image, Origin::Environment(IMAGE));
    }
    if let Ok(Some(network)) = variable::<ContainerNetwork>(caller, NETWORK) {
        layer.set_text(&["sandbox", "docker", "network"], &network, Origin::Environment(NETWORK));
    }
    if let Ok(Some(host)) = variable::<EngineAddress>(caller, HOST) {
        layer.set_text(&["sandbox", "docker", "host"], &host, Origin::Environment(HOST));
    }
    if let Ok(Some(listen)) = variable::<SocketAddr>(caller, LISTEN) {
        layer.set_text(&["service", "listen"], &listen, Origin::Environment(LISTEN));
    }
    if let Ok(Some(most)) = variable::<ExecutionTimeMs>(caller, MAX_EXECUTION_TIME) {
        let origin = Origin::Environment(MAX_EXECUTION_TIME);
        layer.set_text(&["service", "max_execution_time_ms"], &most.count(), origin);
    }
    if let Some(url) = store_url(caller)? {
        layer.set_text(&["store", "url"], &url.secret(), Origin::Environment(STORE_URL));
    }
    Ok(layer)
}

/// Where the record is. One that cannot be read stops everything: runs would go to another record.
pub(super) fn store_url(caller: &Caller) -> Result<Option<StoreUrl>, Failure> {
    if caller.var(STORE_URL).is_some_and(|url| url.is_empty()) {
        return Ok(None);
    }
    variable(caller, STORE_URL)
}

/// The settings of containers on a Docker engine, with the caller's variables over them.
pub(crate) fn docker(caller: &Caller, settings: &Settings) -> Result<DockerSettings, Failure> {
    let mut docker = settings.sandbox.docker.clone();
    if let Some(image) = variable(caller, IMAGE)? {
        docker.image = image;
    }
    if let Some(network) = variable(caller, NETWORK)? {
        docker.network = network;
    }
    if let Some(host) = variable(caller, HOST)? {
        docker.host = Some(host);
    }
    Ok(docker)
}

/// The settings of the service, with the caller's variables over them.
pub(crate) fn service(caller: &Caller, settings: &Settings) -> Result<ServiceSettings, Failure> {
    let mut service = settings.service.clone();
    if let Some(listen) = variable(caller, LISTEN)? {
        service.listen = listen;
    }
    if let Some(most) = variable(caller, MAX_EXECUTION_TIME)? {
        service.max_execution_time_ms = most;
    }
    Ok(service)
}

/// One variable or the other; both only if they agree.
fn place(caller: &Caller) -> Result<Option<(Place, &'static str)>, Failure> {
    let environment = word(caller, ENVIRONMENT, [("host", Place::Host), ("sandbox", Place::Sandbox)])?;
    let launch = word(caller, LAUNCH_MODE, [("process", Place::Host), ("docker", Place::Sandbox)])?;
    match (environment, launch) {
        (Some(environment), Some(launch)) if environment != launch => Err(Failure::new(
            ExitCode::Refused,
            format!("the variables {ENVIRONMENT} and {LAUNCH_MODE} contradict each other"),
        )
        .hint(format!("type `unset {LAUNCH_MODE}`, or `unset {ENVIRONMENT}`"))),
        (Some(place), _) => Ok(Some((place, ENVIRONMENT))),
        (None, Some(place)) => Ok(Some((place, LAUNCH_MODE))),
        (None, None) => Ok(None),
    }
}

fn word(
    caller: &Caller,
    name: &'static str,
    words: [(&'static str, Place); 2],
) -> Result<Option<Place>, Failure> {
    let Some(value) = caller.var(name) else { return Ok(None) };
    let value = value.to_string_lossy();
    let written = value.trim().to_lowercase();
    if written.is_empty() {
        return Ok(None);
    }
    let known = words.into_iter().find(|(word, _)| *word == written);
    known.map(|(_, place)| Some(place)).ok_or_else(|| {
        let [(host, _), (sandbox, _)] = words;
        let problem = format!("`{value}` is neither `{host}` nor `{sandbox}`");
        cannot_be_used(name, &problem)
    })
}

/// The value of a variable that is set and not empty.
fn variable<T: FromStr<Err: Display>>(caller: &Caller, name: &str) -> Result<Option<T>, Failure> {
    let Some(value) = caller.var(name) else { return Ok(None) };
    // What is not UTF-8 is in no grammar either, and the replaced characters say where.
    let read = value.to_string_lossy().parse();
    read.map(Some).map_err(|error: T::Err| cannot_be_used(name, &error.to_string()))
}

fn cannot_be_used(name: &str, why: &str) -> Failure {
    Failure::new(ExitCode::Refused, format!("the variable {name} cannot be used: {why}"))
        .hint(format!("correct it, or type `unset {name}`"))
}
