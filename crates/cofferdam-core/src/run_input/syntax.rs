//! How a caller writes what it asks for, so that an error names it as the caller wrote it.

use super::ASK_FIELDS;

/// How a caller writes what it asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InputSyntax {
    /// As flags: `--network sealed`.
    #[default]
    Flags,
    /// As fields in JSON: `"network": "sealed"`.
    Fields,
}

/// Every field by its name in JSON, and the flag of `cofferdam run` that fills it, if one does.
pub const FIELDS: [(&str, Option<&str>); 45] = [
    ("task", Some("PROMPT")),
    ("command", Some("CMD")),
    ("repo", Some("--repo")),
    ("ref", Some("--ref")),
    ("branch", Some("--commit-branch")),
    ("commit_message", Some("--commit-message")),
    ("project_id", None),
    ("role", Some("--role")),
    ("priority", None),
    ("lane", None),
    ("dry_run", Some("--dry-run")),
    ("options.include_diff", None),
    ("options.permission_mode", Some("--permission-mode")),
    ("options.system_prompt", Some("--replace-system-prompt")),
    ("options.append_system_prompt", Some("--system-prompt")),
    ("options.model", Some("--model")),
    ("options.agent", Some("--agent")),
    ("options.mode", Some("--mode")),
    ("options.policy", Some("--policy")),
    ("options.network", Some("--network")),
    ("options.allow", Some("--allow")),
    ("options.forward", Some("--forward")),
    ("options.push", Some("--push")),
    ("options.model_access", Some("--model-access")),
    ("options.vendor_tools", Some("--vendor-tools")),
    ("options.image", Some("--image")),
    ("options.timeout_ms", Some("--timeout")),
    ("options.max_turns", Some("--max-turns")),
    ("options.working_dir", Some("--working-dir")),
    ("options.read_only", Some("--read-only")),
    ("options.allowed_tools", Some("--allowed-tools")),
    ("options.disallowed_tools", Some("--disallowed-tools")),
    ("options.max_attempts", Some("--max-attempts")),
    ("options.max_cost_usd", Some("--max-cost-usd")),
    ("options.max_tokens", Some("--max-tokens")),
    ("options.max_model_calls", Some("--max-model-calls")),
    ("options.memory", Some("--memory")),
    ("options.cpus", Some("--cpus")),
    ("options.pids", Some("--pids")),
    ("options.disk", Some("--disk")),
    ("options.env", Some("--env")),
    ("options.mounts", Some("--mount")),
    ("options.unmask", Some("--unmask")),
    ("options.cancel_on_disconnect", None),
    ("options", None),
];

impl InputSyntax {
    /// The name of a field as the caller writes it. The field is named as in JSON.
    #[must_use]
    pub fn name(self, field: &'static str) -> &'static str {
        match self {
            Self::Flags => {
                let fields = ASK_FIELDS.iter().chain(&FIELDS);
                let mut flags = fields.filter(|(name, _)| *name == field).filter_map(|(_, flag)| *flag);
                flags.next().unwrap_or(field)
            }
            Self::Fields => field,
        }
    }

    /// A field with its value, as it is to be written.
    #[must_use]
    pub fn with(self, field: &'static str, value: &str) -> String {
        match self {
            Self::Flags => format!("`{} {value}`", self.name(field)),
            Self::Fields => {
                let own = field.rsplit('.').next().unwrap_or(field);
                format!("`\"{own}\": \"{value}\"`")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MountInput, RunInput, RunOptions};
    use super::*;

    /// An input with every field set: what it serializes to names them all.
    fn full() -> RunInput {
        let text = || Some("x".to_owned());
        let list = || vec!["x".to_owned()];
        RunInput {
            task: text(),
            command: Some(list()),
            repo: text(),
            reference: text(),
            branch: text(),
            commit_message: text(),
            project_id: text(),
            role: text(),
            priority: Some(1),
            lane: text(),
            dry_run: Some(true),
            options: RunOptions {
                include_diff: Some(true),
                permission_mode: text(),
                system_prompt: text(),
                append_system_prompt: text(),
                model: text(),
                agent: text(),
                mode: text(),
                policy: text(),
                network: text(),
                allow: list(),
                forward: list(),
                push: text(),
                model_access: Some(true),
                vendor_tools: list(),
                image: text(),
                timeout_ms: Some(1),
                max_turns: Some(1),
                working_dir: text(),
                read_only: Some(true),
                allowed_tools: list(),
                disallowed_tools: list(),
                max_attempts: Some(1),
                max_cost_usd: Some(1.0),
                max_tokens: Some(1),
                max_model_calls: Some(1),
                memory: text(),
                cpus: text(),
                pids: Some(1),
                disk: text(),
                env: list(),
                mounts: vec![MountInput { path: "/x".to_owned(), writable: true }],
                unmask: list(),
                cancel_on_disconnect: Some(true),
            },
        }
    }

    #[test]
    fn the_table_has_every_field_and_no_other() {
        let written = serde_json::to_value(full()).unwrap();
        let top = written.as_object().unwrap().keys().cloned();
        let own = written["options"].as_object().unwrap().keys().map(|name| format!("options.{name}"));
        let mut named: Vec<String> = top.chain(own).collect();
        let mut listed: Vec<String> = FIELDS.iter().map(|(name, _)| (*name).to_owned()).collect();
        named.sort();
        listed.sort();
        assert_eq!(listed, named);
        for (bounded, _) in super::super::bounds::BOUNDS {
            assert!(listed.iter().any(|name| name == bounded), "{bounded}");
        }
    }

    #[test]
    fn a_field_is_named_as_its_caller_writes_it() {
        let (flags, fields) = (InputSyntax::Flags, InputSyntax::Fields);
        assert_eq!(flags.name("options.max_tokens"), "--max-tokens");
        assert_eq!(fields.name("options.max_tokens"), "options.max_tokens");
        assert_eq!(flags.name("options.system_prompt"), "--replace-system-prompt");
        assert_eq!(flags.name("lane"), "lane");
        assert_eq!(flags.with("options.network", "sealed"), "`--network sealed`");
        assert_eq!(fields.with("options.network", "sealed"), "`\"network\": \"sealed\"`");
    }
}
