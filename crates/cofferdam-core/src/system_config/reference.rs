//! The page that lists the keys, made from them.

use super::{CONFIG_KEYS, Sets};

const PAGE: &str = include_str!("reference.md");

/// `docs/reference/config.md`: every key, what it sets and what it does.
#[must_use]
pub fn reference() -> String {
    let mut table = "| key | what | sets |\n|---|---|---|\n".to_owned();
    for key in CONFIG_KEYS {
        let sets = match key.sets {
            Sets::Environment => "the mode of runs, before `sandbox.mode`".to_owned(),
            Sets::SealedMode => "`sandbox.mode`".to_owned(),
            Sets::Setting(path) => format!("`{}`", path.join(".")),
            Sets::RoleAgent(path) => format!("`{}`; `inherit` is `service.default_agent`", path.join(".")),
            Sets::Folder => format!("the variable `{}` of nodes", key.name),
        };
        table.push_str(&format!("| `{}` | {} | {sets} |\n", key.name, key.summary));
    }
    PAGE.replace("{{keys}}", &table)
}
