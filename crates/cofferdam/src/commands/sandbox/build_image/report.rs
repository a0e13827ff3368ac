//! What was built, how large it is, and why.

use cofferdam_core::show_bytes;
use cofferdam_sandbox::docker::Built;
use serde_json::{Value, json};

use crate::sanitize;

/// The image, its size, and what the size is made of.
pub(super) fn to_text(built: &Built) -> String {
    let line = |text: &str| sanitize::line(text);
    let mut text = format!(
        "{}  {}  {}  {}\n\n",
        built.tag,
        show_bytes(built.bytes),
        line(&built.architecture),
        line(&built.id)
    );
    for layer in built.layers.iter().filter(|layer| layer.bytes > 0) {
        let what = match layer.name {
            "base" => format!("the base image, {}", built.base),
            _ => layer.what.to_owned(),
        };
        text.push_str(&format!("{:>10}  {:<12}  {what}\n", show_bytes(layer.bytes), layer.name));
    }
    text
}

/// The same for programs.
pub(super) fn to_json(built: &Built) -> Value {
    let layers: Vec<Value> = built
        .layers
        .iter()
        .map(|layer| json!({ "name": layer.name, "what": layer.what, "bytes": layer.bytes }))
        .collect();
    json!({
        "image": built.tag.to_string(),
        "id": built.id,
        "base": built.base,
        "architecture": built.architecture,
        "bytes": built.bytes,
        "layers": layers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_sandbox::docker::Layer;

    #[test]
    fn the_size_is_told_with_its_reasons() {
        let layer = |name, what, bytes| Layer { name, what, bytes };
        let built = Built {
            tag: "cofferdam/worker:latest".parse().unwrap(),
            id: "sha256:0123".to_owned(),
            base: "debian:bookworm-slim".to_owned(),
            architecture: "amd64".to_owned(),
            bytes: 600 << 20,
            layers: vec![
                layer("codex", "Codex", 400 << 20),
                layer("base", "the base image", 200 << 20),
                layer("node", "Node, where the base has none", 0),
            ],
        };
        insta::assert_snapshot!(to_text(&built), @r"
        cofferdam/worker:latest  600 MiB  amd64  sha256:0123

           400 MiB  codex         Codex
           200 MiB  base          the base image, debian:bookworm-slim
        ");
        assert_eq!(
            to_json(&built)["layers"][0],
            json!({ "name": "codex", "what": "Codex", "bytes": 400 << 20 })
        );
    }
}
