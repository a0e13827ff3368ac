//! How each CLI is started.

use cofferdam_agent::{Command, Context, Stdin, Stream, for_work};
use cofferdam_core::{Agent, PermissionMode, PromptSetup, Vendor, Work};
use serde_json::{Value, json};

use crate::support::{PROVIDERS, attempt, context, setup};

fn command(provider: &str, vendor: Vendor) -> Command {
    for_work(&setup(provider)).command(&context(&attempt(), vendor))
}

fn opencode_config(setup: PromptSetup, vendor: Vendor) -> Value {
    let command =
        for_work(&Work::Agent { agent: Agent::OpenCode, setup }).command(&context(&attempt(), vendor));
    serde_json::from_str(&command.env["OPENCODE_CONFIG_CONTENT"]).expect("the configuration is JSON")
}

fn plain(model: Option<&str>) -> PromptSetup {
    PromptSetup {
        prompt: "x".to_owned(),
        model: model.map(str::to_owned),
        system_prompt: None,
        ..PromptSetup::default()
    }
}

#[test]
fn each_cli_is_started_with_these_arguments() {
    let shown: Vec<String> =
        PROVIDERS.iter().map(|provider| command(provider, Vendor::Anthropic).argv.join("\n  ")).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn each_cli_has_these_variables() {
    let shown: Vec<String> = PROVIDERS
        .iter()
        .flat_map(|provider| command(provider, Vendor::Openai).env)
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_prompt_is_never_an_argument_and_a_value_never_an_option() {
    let hostile = PromptSetup {
        prompt: "--dangerous".to_owned(),
        model: Some("--model".to_owned()),
        system_prompt: Some("-p".to_owned()),
        max_turns: Some(3),
        allowed_tools: vec!["-p".to_owned()],
        disallowed_tools: vec!["--model".to_owned()],
        replaced_system_prompt: Some("--dangerous".to_owned()),
        ..PromptSetup::default()
    };
    for setup in [
        Work::Agent { agent: Agent::ClaudeCode, setup: hostile.clone() },
        Work::Agent { agent: Agent::Codex, setup: hostile.clone() },
        Work::Agent { agent: Agent::OpenCode, setup: hostile },
    ] {
        let command = for_work(&setup).command(&context(&attempt(), Vendor::Anthropic));
        assert_eq!(command.stdin, Stdin::Lines);
        for value in ["--dangerous", "--model"] {
            assert!(!command.argv.iter().any(|argument| argument == value), "{:?}", command.argv);
        }
        assert!(command.argv.iter().filter(|argument| *argument == "-p").count() <= 1);
    }
}

#[test]
fn restricted_is_what_only_reads_whatever_list_of_tools_is_given() {
    let restricted = PromptSetup {
        prompt: "x".to_owned(),
        permission_mode: PermissionMode::Restricted,
        allowed_tools: ["Read", "Bash(git log *)", "read", "bash", "write"].map(str::to_owned).into(),
        ..PromptSetup::default()
    };
    let claude = for_work(&Work::Agent { agent: Agent::ClaudeCode, setup: restricted.clone() });
    let argv = claude.command(&context(&attempt(), Vendor::Anthropic)).argv;
    assert!(argv.contains(&"--tools=Read".to_owned()) && argv.contains(&"dontAsk".to_owned()), "{argv:?}");
    let rules = &opencode_config(restricted, Vendor::Anthropic)["permission"];
    assert_eq!(*rules, json!({ "*": "deny", "read": "allow" }));
}

#[test]
fn opencodes_lists_of_tools_become_rules_of_which_the_last_decides() {
    let listed = PromptSetup {
        prompt: "x".to_owned(),
        allowed_tools: ["write", "bash(git *)"].map(str::to_owned).into(),
        disallowed_tools: ["bash(git push *)"].map(str::to_owned).into(),
        ..PromptSetup::default()
    };
    let config = opencode_config(listed, Vendor::Anthropic);
    let bash = json!({ "*": "deny", "git *": "allow", "git push *": "deny" });
    assert_eq!(config["permission"], json!({ "*": "deny", "edit": "allow", "bash": bash }));
    assert_eq!(config["default_agent"], "build");
    assert_eq!(opencode_config(plain(None), Vendor::Anthropic)["permission"], "allow");
}

#[test]
fn codex_is_asked_by_rule_and_told_no_unless_it_may_edit() {
    for (mode, policy, edits) in [
        (PermissionMode::Full, "never", "accept"),
        (PermissionMode::AcceptEdits, "untrusted", "accept"),
        (PermissionMode::Restricted, "untrusted", "decline"),
    ] {
        let setup = PromptSetup { permission_mode: mode, ..plain(None) };
        let mut codex = for_work(&Work::Agent { agent: Agent::Codex, setup });
        let attempt = attempt();
        let context = context(&attempt, Vendor::Openai);
        assert_eq!(codex.command(&context).files.len(), usize::from(mode != PermissionMode::Full));
        codex.begin(&context);
        let started = codex.parse(Stream::Stdout, br#"{"id":1,"result":{}}"#).lines.concat();
        assert!(started.contains(&format!("\"approvalPolicy\":\"{policy}\"")), "{started}");
        let asked = br#"{"id":0,"method":"item/fileChange/requestApproval","params":{}}"#;
        let answer = codex.parse(Stream::Stdout, asked).lines.concat();
        assert!(answer.contains(&format!("\"decision\":\"{edits}\"")), "{answer}");
    }
}

#[test]
fn without_a_gateway_no_cli_is_told_of_one() {
    let attempt = attempt();
    let context = Context { model_route: None, ..context(&attempt, Vendor::Anthropic) };
    for provider in PROVIDERS {
        let command = for_work(&setup(provider)).command(&context);
        let whole = format!("{:?} {:?}", command.argv, command.env);
        assert!(!whole.contains("127.0.0.1") && !whole.contains("placeholder"), "{whole}");
    }
}

#[test]
fn claude_code_is_told_of_a_sandbox_only_where_it_would_refuse_to_run() {
    let attempt = attempt();
    let as_root = Context { is_root: true, ..context(&attempt, Vendor::Anthropic) };
    assert_eq!(for_work(&setup("claude_code")).command(&as_root).env["IS_SANDBOX"], "1");
    assert!(!command("claude_code", Vendor::Anthropic).env.contains_key("IS_SANDBOX"));
}

#[test]
fn opencode_takes_a_model_with_and_without_its_provider_and_has_a_default_for_each_vendor() {
    for (model, vendor, expected) in [
        (Some("gpt-5.5"), Vendor::Openai, "openai/gpt-5.5"),
        (Some("openai/gpt-5.5"), Vendor::Openai, "openai/gpt-5.5"),
        (Some("openai-like"), Vendor::Openai, "openai/openai-like"),
        (None, Vendor::Openai, "openai/gpt-5.5"),
        (None, Vendor::Anthropic, "anthropic/claude-sonnet-5"),
    ] {
        let config = opencode_config(plain(model), vendor);
        assert_eq!(config["model"], expected);
        let (provider, model) = expected.split_once('/').unwrap();
        assert_eq!(config["provider"][provider]["models"][model], json!({}));
        assert_eq!(config["enabled_providers"], json!([provider]));
    }
}
