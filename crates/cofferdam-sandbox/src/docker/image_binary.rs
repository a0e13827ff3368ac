//! Which of our binaries is the worker: ours, mounted, or the image's own where ours cannot run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::Docker;
use cofferdam_core::Policy;

use super::DockerBackend;
use super::image::Image;
use super::throwaway::{Question, ask};
use crate::backend::{Refusal, RefusalKind};

/// Where an image that `cofferdam sandbox build-image` made has our binary.
pub(super) const IN_IMAGE: &str = "/usr/local/bin/cofferdam";
/// The version that an image's binary must have: both sides of the worker's protocol are of one version.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// It takes milliseconds, or seconds on a processor that is emulated.
const DEADLINE: Duration = Duration::from_secs(30);

/// Whether this very process could run in the image.
pub(super) fn runs_here(image: &Image) -> bool {
    // An engine that does not say has images of this machine.
    let same = |found: &str, own: &str| found.is_empty() || found == own;
    same(&image.os, std::env::consts::OS) && same(&image.architecture, architecture())
}

/// This process's processor, in the engine's words.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        "loongarch64" => "loong64",
        same => same,
    }
}

/// Refuses an image whose own binary would be the worker and is missing or of another version. What was found good is
/// remembered, by the image's id.
pub(super) async fn check(
    backend: &DockerBackend,
    docker: &Docker,
    policy: &Policy,
    image: &Image,
) -> Result<(), Refusal> {
    let known = known_path(&backend.options.state, image);
    if backend.mounted_binary(image).is_some() || known.exists() {
        return Ok(());
    }
    let question = Question {
        name: "version",
        policy,
        image,
        command: vec![IN_IMAGE.to_owned(), "--version".to_owned()],
        bounds: Vec::new(),
        memories: Vec::new(),
        deadline: DEADLINE,
    };
    let answer = ask(backend, docker, question).await;
    let found = match &answer {
        Ok(answer) if answer.code == 0 => version_in(&answer.stdout).ok_or("it does not say its version"),
        Ok(_) => Err("it does not start"),
        Err(why) if why.contains("no such file") => Err("there is none"),
        Err(why) => Err(why.as_str()),
    };
    match found {
        Ok(VERSION) => {
            let _ = known.parent().map(fs::create_dir_all);
            let _ = fs::write(&known, "");
            Ok(())
        }
        Ok(other) => Err(refusal(policy, image, &format!("that is version {other}"))),
        Err(why) => Err(refusal(policy, image, why)),
    }
}

fn refusal(policy: &Policy, image: &Image, why: &str) -> Refusal {
    let name = &policy.container.image;
    Refusal::new(
        format!(
            "the image {name} is for {}/{}, where this {}/{} binary cannot run, and its own {IN_IMAGE} cannot be \
             used: it must be version {VERSION}, and {why}",
            image.os,
            image.architecture,
            std::env::consts::OS,
            architecture()
        ),
        format!(
            "cofferdam sandbox build-image --tag {name} --binary FILE, with the {VERSION} binary for {}/{}",
            image.os, image.architecture
        ),
    )
    .about(RefusalKind::ImageInvalid)
}

/// `cofferdam 1.2.3` on the first line.
fn version_in(text: &str) -> Option<&str> {
    text.lines().next()?.trim().strip_prefix("cofferdam ").filter(|version| !version.is_empty())
}

/// The mark of an image whose binary was found good.
fn known_path(state: &Path, image: &Image) -> PathBuf {
    let id: String = image.id.chars().filter(char::is_ascii_alphanumeric).collect();
    state.join("engines").join(format!("binary_{id}_{VERSION}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(os: &str, architecture: &str) -> Image {
        Image { os: os.to_owned(), architecture: architecture.to_owned(), ..Image::default() }
    }

    #[test]
    fn our_binary_runs_in_images_of_this_system_and_processor() {
        assert!(runs_here(&image("linux", architecture())));
        assert!(runs_here(&image("", "")), "an engine that does not say");
        let other = if architecture() == "amd64" { "arm64" } else { "amd64" };
        assert!(!runs_here(&image("linux", other)));
        assert!(!runs_here(&image("windows", architecture())));
    }

    #[test]
    fn a_refusal_names_both_versions_and_what_to_type() {
        let refusal = refusal(&Policy::default(), &image("linux", "arm64"), "that is version 0.0.1");
        assert!(
            refusal.problem.contains(VERSION) && refusal.problem.contains("version 0.0.1"),
            "{refusal:?}"
        );
        assert!(refusal.remedy.contains("cofferdam sandbox build-image"), "{refusal:?}");
    }

    #[test]
    fn a_version_is_read_from_the_first_line_alone() {
        assert_eq!(version_in("cofferdam 1.2.3\nmore\n"), Some("1.2.3"));
        for text in ["", "cofferdam \n", "other 1.2.3\n", "\ncofferdam 1.2.3\n"] {
            assert_eq!(version_in(text), None, "{text:?}");
        }
    }
}
