//! What an image brings.

use bollard::Docker;
use cofferdam_core::{ImageReference, Policy};

use super::engine::{is_answer, is_missing, message_of};
use crate::backend::{Refusal, RefusalKind};

/// What of an image matters to a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Image {
    /// The engine's name for exactly this image.
    pub(crate) id: String,
    /// Its variables, `NAME=value`.
    pub(crate) env: Vec<String>,
    /// Folders that it declares as volumes.
    pub(crate) volumes: Vec<String>,
    /// The system that it is for, in the engine's words.
    pub(crate) os: String,
    /// The processor that it is for, in the engine's words.
    pub(crate) architecture: String,
    /// How large it is.
    pub(crate) bytes: u64,
}

impl Image {
    /// Looks the policy's image up. It is never pulled: what runs is what somebody put there.
    pub(crate) async fn find(docker: &Docker, policy: &Policy) -> Result<Self, Refusal> {
        let name = &policy.container.image;
        let found = docker.inspect_image(&name.with_tag()).await.map_err(|error| {
            if is_missing(&error) {
                return missing(name);
            }
            Refusal::new(
                format!("the engine cannot use the image {name}: {}", message_of(&error)),
                format!("docker image inspect {name}"),
            )
            .about(if is_answer(&error) {
                RefusalKind::ImageInvalid
            } else {
                RefusalKind::DaemonUnavailable
            })
        })?;
        let config = found.config.unwrap_or_default();
        Ok(Self {
            id: found.id.unwrap_or_default(),
            env: config.env.unwrap_or_default(),
            volumes: config.volumes.unwrap_or_default(),
            os: found.os.unwrap_or_default(),
            architecture: found.architecture.unwrap_or_default(),
            bytes: found.size.and_then(|size| size.try_into().ok()).unwrap_or_default(),
        })
    }
}

fn missing(name: &ImageReference) -> Refusal {
    let remedy = if *name == ImageReference::default() {
        "cofferdam sandbox build-image".to_owned()
    } else {
        format!("docker pull {name}, or cofferdam sandbox build-image --tag {name}")
    };
    Refusal::new(format!("the engine has no image {name}"), remedy).about(RefusalKind::ImageMissing)
}
