//! Building the image that agents run in, from the Dockerfile that is in this binary.
//!
//! The engine gets that file and our binary, and nothing of the folder that somebody happens to stand in.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

use bollard::Docker;
use bollard::models::BuildInfo;
use bollard::query_parameters::BuildImageOptions;
use cofferdam_core::{EngineAddress, ImageReference};
use futures_util::StreamExt;

use super::engine::{Engine, message_of};
use super::image_binary::{IN_IMAGE, architecture};
use super::layers::{Layer, layers, purpose_of};
use crate::backend::Refusal;
use crate::options::ImageAgent;

/// The Dockerfile, for people who build with another tool.
pub const DOCKERFILE: &str = include_str!("../../../../deploy/worker.Dockerfile");

/// What a proxy is named in. Engines know these arguments without a declaration, and keep them out of the image.
pub const PROXY_VARIABLES: [&str; 10] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
];

/// What to build.
#[derive(Debug, Clone)]
pub struct Build {
    /// What the image is to be called.
    pub tag: ImageReference,
    /// What it is built on; the Dockerfile's own without it.
    pub base: Option<ImageReference>,
    /// The engine's network for the build; the engine's default without it.
    pub network: Option<String>,
    /// [`PROXY_VARIABLES`] that are set.
    pub proxies: BTreeMap<String, String>,
    /// The binary that goes into the image.
    pub binary: PathBuf,
    /// The agents whose steps and layers are named.
    pub agents: Vec<ImageAgent>,
}

/// News of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildProgress {
    /// A step has begun.
    Step {
        /// Which one, such as `3/20`.
        number: String,
        /// What the step makes, where it makes something of size.
        purpose: Option<&'static str>,
        /// The instruction.
        instruction: String,
    },
    /// Something was said meanwhile.
    Line(String),
}

/// An image that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// What it is called.
    pub tag: ImageReference,
    /// The engine's name for exactly this image.
    pub id: String,
    /// What it was built on.
    pub base: String,
    /// The processor that it is for, in the engine's words.
    pub architecture: String,
    /// How large it is.
    pub bytes: u64,
    /// What it is made of, the largest first.
    pub layers: Vec<Layer>,
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The engine or the binary cannot be used.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The binary cannot be read.
    #[error("failed to read the binary {}", path.display())]
    Binary {
        /// Where it was looked for.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A step failed, or the engine stopped.
    #[error("failed to build {tag}: {message}")]
    Failed {
        /// The image that there is not.
        tag: ImageReference,
        /// What the engine said.
        message: String,
    },
}

/// Builds it. Dropping the future ends the build at the engine.
///
/// # Errors
/// [`BuildError`]; an image that had this name before keeps it.
pub async fn build(
    engine: &EngineAddress,
    build: &Build,
    see: &mut (dyn FnMut(BuildProgress) + Send),
) -> Result<Built, BuildError> {
    let docker = Engine::at_address(engine)?.connect().await?;
    let failed = |message: String| BuildError::Failed { tag: build.tag.clone(), message };
    let engine_failed = |error: bollard::errors::Error| failed(message_of(&error));
    let mut last_step = String::new();
    check_binary(&docker, build).await?;
    let context =
        context(&build.binary).map_err(|source| BuildError::Binary { path: build.binary.clone(), source })?;
    let body = bollard::body_full(context.into());
    let mut news = Box::pin(docker.build_image(options(build), None, Some(body)));
    while let Some(info) = news.next().await {
        let mut note = |news: BuildProgress| {
            if let BuildProgress::Step { number, .. } = &news {
                last_step.clone_from(number);
            }
            see(news);
        };
        let taken =
            info.map_err(|error| message_of(&error)).and_then(|info| take(info, &build.agents, &mut note));
        taken.map_err(|message| failed(in_step(&last_step, &message)))?;
    }
    let name = build.tag.with_tag();
    let image = docker.inspect_image(&name).await.map_err(engine_failed)?;
    let history = docker.image_history(&name).await.map_err(engine_failed)?;
    Ok(Built {
        tag: build.tag.clone(),
        id: image.id.unwrap_or_default(),
        base: base_of(build),
        architecture: image.architecture.unwrap_or_default(),
        bytes: image.size.and_then(|size| size.try_into().ok()).unwrap_or_default(),
        layers: layers(&history, &build.agents),
    })
}

/// The Dockerfile as it is sent. The binary is the last layer: another one changes nothing below it.
pub(super) fn dockerfile_with_binary() -> String {
    format!("{DOCKERFILE}\nCOPY cofferdam {IN_IMAGE}\n")
}

fn options(build: &Build) -> BuildImageOptions {
    let mut arguments: HashMap<String, String> = build.proxies.clone().into_iter().collect();
    arguments.extend(build.base.as_ref().map(|base| ("BASE".to_owned(), base.with_tag())));
    let labels = [("dev.cofferdam.version", env!("CARGO_PKG_VERSION"))];
    BuildImageOptions {
        dockerfile: "Dockerfile".to_owned(),
        t: Some(build.tag.with_tag()),
        // Containers of steps are removed, also those of a step that failed.
        rm: true,
        forcerm: true,
        buildargs: Some(arguments),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
        networkmode: build.network.clone(),
        ..BuildImageOptions::default()
    }
}

/// The build's context: two files.
fn context(binary: &Path) -> io::Result<Vec<u8>> {
    let dockerfile = dockerfile_with_binary();
    let binary = fs::read(binary)?;
    let mut archive = tar::Builder::new(Vec::with_capacity(binary.len() + (64 << 10)));
    for (name, mode, content) in
        [("Dockerfile", 0o644, dockerfile.as_bytes()), ("cofferdam", 0o755, binary.as_slice())]
    {
        // Times and owners are always the same, so that an engine knows the same binary again.
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        header.set_mtime(0);
        archive.append_data(&mut header, name, content)?;
    }
    archive.into_inner()
}

/// One piece of news. An error is what the engine said about a step that failed.
fn take(
    info: BuildInfo,
    agents: &[ImageAgent],
    see: &mut (dyn FnMut(BuildProgress) + Send),
) -> Result<(), String> {
    if let Some(error) = info.error_detail {
        return Err(error.message.unwrap_or_else(|| "the engine does not say why".to_owned()));
    }
    for line in info.stream.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty()) {
        see(step(line, agents).unwrap_or_else(|| BuildProgress::Line(line.to_owned())));
    }
    // What is said of a base that is pulled, without the bars.
    if let Some(status) = info.status.filter(|_| info.progress_detail.is_none()) {
        see(BuildProgress::Line(status));
    }
    Ok(())
}

/// The engine repeats the whole instruction; its number and its end say as much.
fn in_step(number: &str, message: &str) -> String {
    match message.rsplit_once("returned a non-zero code: ") {
        Some((_, code)) => format!("step {number} ended with code {code}"),
        None if number.is_empty() => message.to_owned(),
        None => format!("step {number}: {message}"),
    }
}

/// `Step 3/20 : RUN …`.
fn step(line: &str, agents: &[ImageAgent]) -> Option<BuildProgress> {
    let (number, instruction) = line.strip_prefix("Step ")?.split_once(" : ")?;
    let (now, of) = number.split_once('/')?;
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    (is_number(now) && is_number(of)).then(|| BuildProgress::Step {
        number: number.to_owned(),
        purpose: purpose_of(instruction, agents),
        instruction: instruction.to_owned(),
    })
}

fn base_of(build: &Build) -> String {
    let own =
        || DOCKERFILE.lines().find_map(|line| line.strip_prefix("ARG BASE=")).unwrap_or_default().to_owned();
    build.base.as_ref().map_or_else(own, ToString::to_string)
}

/// Refuses a binary that the image could not run. A base that the engine would have to pull is one for the engine's own
/// processor.
async fn check_binary(docker: &Docker, build: &Build) -> Result<(), BuildError> {
    let found = match docker.inspect_image(&base_of(build)).await {
        Ok(image) => image.architecture,
        Err(_) => docker.version().await.ok().and_then(|version| version.arch),
    };
    let wanted = found.filter(|name| !name.is_empty()).unwrap_or_else(|| architecture().to_owned());
    let mut header = [0; 20];
    fs::File::open(&build.binary)
        .and_then(|mut file| file.read_exact(&mut header))
        .map_err(|source| BuildError::Binary { path: build.binary.clone(), source })?;
    let refuse = |what: String| {
        Err(BuildError::Refused(Refusal::new(
            format!("{} {what}, and the image is for linux/{wanted}", build.binary.display()),
            format!("add --binary FILE, with the cofferdam binary for linux/{wanted}"),
        )))
    };
    match processor_of(header) {
        None => refuse("is no Linux program".to_owned()),
        Some(own) if own != wanted => refuse(format!("is for linux/{own}")),
        Some(_) => Ok(()),
    }
}

/// The processor that a program of Linux is for, in the engine's words.
fn processor_of(header: [u8; 20]) -> Option<String> {
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    // `e_machine`, in the program's own order of bytes; all of ours are little-endian but one.
    let number = match header[5] {
        1 => u16::from_le_bytes([header[18], header[19]]),
        _ => u16::from_be_bytes([header[18], header[19]]),
    };
    Some(match number {
        3 => "386".to_owned(),
        21 => "ppc64le".to_owned(),
        22 => "s390x".to_owned(),
        40 => "arm".to_owned(),
        62 => "amd64".to_owned(),
        183 => "arm64".to_owned(),
        243 => "riscv64".to_owned(),
        258 => "loong64".to_owned(),
        other => format!("processor {other}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_build() -> Build {
        Build {
            tag: "me/worker:1".parse().unwrap(),
            base: Some("debian".parse().unwrap()),
            network: None,
            proxies: BTreeMap::from([("HTTPS_PROXY".to_owned(), "http://proxy:3128".to_owned())]),
            binary: std::env::current_exe().unwrap(),
            agents: Vec::new(),
        }
    }

    #[test]
    fn the_context_is_the_dockerfile_and_the_binary_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("any-name");
        fs::write(&binary, b"\x7fELF").unwrap();
        fs::write(folder.path().join("secret"), "of the caller").unwrap();
        let bytes = context(&binary).unwrap();
        assert_eq!(bytes, context(&binary).unwrap(), "an engine knows it again");
        let mut archive = tar::Archive::new(bytes.as_slice());
        let entries: Vec<(String, u32, String)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let mut text = String::new();
                entry.read_to_string(&mut text).unwrap();
                (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap(), text)
            })
            .collect();
        assert_eq!(
            entries,
            [
                ("Dockerfile".to_owned(), 0o644, dockerfile_with_binary()),
                ("cofferdam".to_owned(), 0o755, "\x7fELF".to_owned()),
            ]
        );
    }

    #[test]
    fn base_and_proxies_are_arguments_and_the_network_is_the_engines() {
        let options = options(&a_build());
        let arguments = options.buildargs.unwrap();
        assert_eq!(arguments["BASE"], "debian:latest");
        assert_eq!(arguments["HTTPS_PROXY"], "http://proxy:3128");
        assert_eq!((options.t.as_deref(), options.networkmode), (Some("me/worker:1"), None));
        assert!(options.rm && options.forcerm);
    }

    #[test]
    fn no_proxy_argument_is_declared_so_none_is_kept_in_the_image() {
        for name in PROXY_VARIABLES {
            assert!(!DOCKERFILE.contains(name), "{name}");
        }
    }

    #[test]
    fn without_a_base_it_is_the_dockerfiles() {
        assert_eq!(base_of(&Build { base: None, ..a_build() }), "node:22-bookworm-slim");
        assert_eq!(base_of(&a_build()), "debian");
    }

    #[test]
    fn news_are_steps_and_lines_and_an_error_ends_them() {
        let mut seen = Vec::new();
        let stream = |text: &str| BuildInfo { stream: Some(text.to_owned()), ..BuildInfo::default() };
        for text in ["Step 3/20 : RUN useradd worker", "\n", "one\ntwo\n", "Step by step : none"] {
            take(stream(text), &[], &mut |news| seen.push(news)).unwrap();
        }
        let line = |text: &str| BuildProgress::Line(text.to_owned());
        let step = BuildProgress::Step {
            number: "3/20".to_owned(),
            purpose: Some("worker_user"),
            instruction: "RUN useradd worker".to_owned(),
        };
        assert_eq!(seen, [step, line("one"), line("two"), line("Step by step : none")]);
        let detail = bollard::models::ErrorDetail { code: Some(1), message: Some("no".to_owned()) };
        let info = BuildInfo { error_detail: Some(detail), ..BuildInfo::default() };
        assert_eq!(take(info, &[], &mut |_| ()), Err("no".to_owned()));
    }

    #[test]
    fn a_failure_names_the_step_and_not_the_whole_instruction() {
        let long = "The command '/bin/sh -c apt-get update; …' returned a non-zero code: 100";
        assert_eq!(in_step("6/25", long), "step 6/25 ended with code 100");
        assert_eq!(in_step("2/25", "no such host"), "step 2/25: no such host");
        assert_eq!(in_step("", "no such network"), "no such network");
    }

    #[test]
    fn the_processor_of_a_program_is_known() {
        let mut own = [0; 20];
        fs::File::open(std::env::current_exe().unwrap()).unwrap().read_exact(&mut own).unwrap();
        assert_eq!(processor_of(own).as_deref(), Some(architecture()));
        assert_eq!(processor_of(*b"#!/bin/sh\necho hello"), None);
    }
}
