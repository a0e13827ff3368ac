//! What an image that was built from our Dockerfile is made of, read from its history.

use bollard::models::ImageHistoryResponseItem;

use crate::options::ImageAgent;

/// What `LABEL` stands right above the base.
const BOUNDARY: &str = "dev.cofferdam.image=worker";

/// A purpose: its stable name, words for people, and what the instruction that made it has in it.
struct Purpose {
    name: &'static str,
    what: &'static str,
    mark: String,
}

/// What every image of ours is made of. An agent is the folder of its package.
fn purposes(agents: &[ImageAgent]) -> Vec<Purpose> {
    let always = [
        ("tools", "git, ssh, curl, certificates, ripgrep", "openssh-client"),
        ("node", "Node, where the base has none", "command -v node"),
        ("worker_user", "the user that agents are", "useradd"),
        ("cofferdam", "Cofferdam, for machines that cannot mount theirs", super::image_binary::IN_IMAGE),
    ];
    let always = always.map(|(name, what, mark)| Purpose { name, what, mark: mark.to_owned() });
    let of_agent = |agent: &ImageAgent| Purpose {
        name: agent.name,
        what: agent.title,
        mark: format!("/lib/node_modules/{}", agent.package),
    };
    always.into_iter().chain(agents.iter().map(of_agent)).collect()
}

/// A part of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// A stable name, for programs.
    pub name: &'static str,
    /// What it is for, for people.
    pub what: &'static str,
    /// How large it is.
    pub bytes: u64,
}

/// What an instruction of our Dockerfile is for, by its stable name.
pub(super) fn purpose_of(instruction: &str, agents: &[ImageAgent]) -> Option<&'static str> {
    purposes(agents)
        .into_iter()
        .find(|purpose| instruction.contains(&purpose.mark))
        .map(|purpose| purpose.name)
}

/// The parts of an image, the largest first. The history begins with what was done last.
pub(super) fn layers(history: &[ImageHistoryResponseItem], agents: &[ImageAgent]) -> Vec<Layer> {
    let boundary = history.iter().position(|item| item.created_by.contains(BOUNDARY));
    let (ours, base) = history.split_at(boundary.unwrap_or(0));
    let made_for = |item: &ImageHistoryResponseItem| purpose_of(&item.created_by, agents);
    let mut layers: Vec<Layer> = purposes(agents)
        .into_iter()
        .map(|purpose| {
            let made = |item: &&ImageHistoryResponseItem| made_for(item) == Some(purpose.name);
            Layer { name: purpose.name, what: purpose.what, bytes: sum(ours.iter().filter(made)) }
        })
        .collect();
    layers.push(Layer { name: "base", what: "the base image", bytes: sum(base.iter()) });
    let rest = sum(ours.iter().filter(|item| made_for(item).is_none()));
    layers.push(Layer { name: "rest", what: "links and settings", bytes: rest });
    layers.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.name.cmp(b.name)));
    layers
}

fn sum<'a>(items: impl Iterator<Item = &'a ImageHistoryResponseItem>) -> u64 {
    items.map(|item| u64::try_from(item.size).unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::build::dockerfile_with_binary;
    use super::*;

    const AGENTS: [ImageAgent; 2] = [
        ImageAgent { name: "codex", program: "codex", title: "Codex", package: "@openai/codex" },
        ImageAgent { name: "opencode", program: "opencode", title: "OpenCode", package: "opencode-ai" },
    ];

    fn item(created_by: &str, size: i64) -> ImageHistoryResponseItem {
        ImageHistoryResponseItem {
            created_by: created_by.to_owned(),
            size,
            ..ImageHistoryResponseItem::default()
        }
    }

    /// The instructions of the Dockerfile's last stage and of the one that it stands on.
    fn instructions() -> Vec<String> {
        let text = dockerfile_with_binary().replace("\\\n", " ");
        let stages: Vec<&str> = text.split("\nFROM ").collect();
        let [_, tools, _agents, last] = stages.as_slice() else { panic!("{} stages", stages.len()) };
        let lines = |stage: &&str| stage.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        let all = lines(tools).into_iter().chain(lines(last));
        all.filter(|line| !line.starts_with('#') && !line.trim().is_empty()).collect()
    }

    #[test]
    fn every_purpose_is_one_instruction_of_the_dockerfile() {
        let instructions = instructions();
        for purpose in purposes(&AGENTS) {
            let made: Vec<&String> =
                instructions.iter().filter(|text| purpose_of(text, &AGENTS) == Some(purpose.name)).collect();
            assert_eq!(made.len(), 1, "{}: {made:?}", purpose.name);
        }
        assert!(instructions.first().is_some_and(|text| text.contains(BOUNDARY)), "{instructions:?}");
    }

    #[test]
    fn what_is_below_the_boundary_is_the_base_whatever_made_it() {
        let history = [
            item("/bin/sh -c #(nop) COPY file:1 in /usr/local/bin/cofferdam ", 5),
            item("/bin/sh -c #(nop)  USER worker", 0),
            item(
                "COPY /usr/local/lib/node_modules/@openai/codex /usr/local/lib/node_modules/@openai/codex/ # buildkit",
                40,
            ),
            item("|1 DEBIAN_FRONTEND=noninteractive /bin/sh -c apt-get install openssh-client", 20),
            item("/bin/sh -c #(nop)  LABEL dev.cofferdam.image=worker", 0),
            item("/bin/sh -c apt-get install openssh-client", 7),
            item("", 3),
        ];
        let found: Vec<(&str, u64)> = layers(&history, &AGENTS)
            .iter()
            .map(|layer| (layer.name, layer.bytes))
            .filter(|(_, bytes)| *bytes > 0)
            .collect();
        assert_eq!(found, [("codex", 40), ("tools", 20), ("base", 10), ("cofferdam", 5)]);
    }
}
