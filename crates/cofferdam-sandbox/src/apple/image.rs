//! What an image brings, in the words of `RUNTIME image inspect`.

use cofferdam_core::{ImageReference, Policy};
use serde_json::Value;

use super::abilities::Kind;
use super::runtime::Answer;
use crate::backend::{Refusal, RefusalKind};
use crate::supervision::Runtime;

/// What of an image matters to a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Image {
    /// Its variables, `NAME=value`.
    pub(crate) env: Vec<String>,
    /// Folders that it declares as volumes.
    pub(crate) volumes: Vec<String>,
}

impl Image {
    /// Looks the policy's image up. It is never pulled: what runs is what somebody put there.
    pub(crate) async fn find(runtime: &Runtime, kind: Kind, policy: &Policy) -> Result<Self, Refusal> {
        let name = &policy.container.image;
        let arguments = ["image", "inspect", &name.with_tag()].map(str::to_owned).to_vec();
        match runtime.answer(arguments).await {
            Ok(answer) if answer.is_ok() => Ok(Self::read(&answer.output)),
            Ok(answer) => Err(missing(runtime, kind, name, &answer)),
            Err(error) => Err(Refusal::new(
                format!("`{}` cannot be asked for the image {name}: {error}", runtime.name()),
                format!("{} image inspect {name}", runtime.program.display()),
            )
            .about(RefusalKind::DaemonUnavailable)),
        }
    }

    /// A runtime that says it in another way says nothing: an image need not have either.
    fn read(text: &str) -> Self {
        let found: Value = serde_json::from_str(text).unwrap_or_default();
        let found = found.get(0).unwrap_or(&found);
        // As docker, podman and nerdctl say it, and as Apple's does.
        let config = ["/Config", "/variants/0/config/config"].iter().find_map(|path| found.pointer(path));
        let of = |name: &str| config.and_then(|config| config.get(name)).cloned().unwrap_or_default();
        let env = serde_json::from_value(of("Env")).unwrap_or_default();
        let volumes = match of("Volumes") {
            Value::Object(volumes) => volumes.into_iter().map(|(path, _)| path).collect(),
            _ => Vec::new(),
        };
        Self { env, volumes }
    }
}

fn missing(runtime: &Runtime, kind: Kind, name: &ImageReference, answer: &Answer) -> Refusal {
    let program = runtime.name();
    let build = format!("cofferdam sandbox build-image --tag {name}");
    Refusal::new(
        format!("`{program}` has no image {name}: {}", answer.message()),
        match kind {
            Kind::Docker => format!("{program} pull {name}, or {build}"),
            Kind::Podman | Kind::Nerdctl => {
                format!("{program} pull {name}, or {build}; docker save {name} | {program} load")
            }
            Kind::Apple => format!(
                "{program} image pull {name}, or {build}; docker save -o x.tar {name}; {program} image load -i x.tar"
            ),
            Kind::Unknown => format!("{program} pull {name}"),
        },
    )
    .about(RefusalKind::ImageMissing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_image_brings_is_read_from_every_runtime() {
        let like_docker =
            r#"[{"Id": "x", "Config": {"Env": ["PATH=/bin", "A=b=c"], "Volumes": {"/data": {}}}}]"#;
        let found = Image::read(like_docker);
        assert_eq!(found.env, ["PATH=/bin", "A=b=c"]);
        assert_eq!(found.volumes, ["/data"]);
        let like_apple = r#"[{"name": "x", "variants": [{"config": {"config": {"Env": ["A=1"]}}}]}]"#;
        assert_eq!(Image::read(like_apple).env, ["A=1"]);
        for silent in [r#"[{"Config": {"Env": null, "Volumes": null}}]"#, "[]", "{}", "no json"] {
            assert_eq!(Image::read(silent), Image::default(), "{silent}");
        }
    }
}
