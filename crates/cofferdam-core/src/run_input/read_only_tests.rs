use super::super::test_machine::Machine;
use super::super::{
    Context, InputErrorKind, InputSyntax, MountInput, Placing, RunOptions, Workspace, validate,
};
use super::*;
use crate::ids::RunId;
use crate::policy::{LimitsRule, Policy};
use crate::repo_url::LocalUrls;
use crate::settings::{Effective, Origin, read_layer};

fn policy(input: &RunInput, syntax: InputSyntax) -> Result<Policy, InputError> {
    let by_settings = r#"{"agents": {"open": {"provider": "codex", "sandbox_mode": "host"}}}"#;
    let layer = read_layer(by_settings, &Origin::Global("/g".into())).unwrap();
    let context = Context {
        id: &RunId::new(1, 2),
        settings: &Effective::default().under(&layer),
        syntax,
        limits_rule: LimitsRule::BestEffort,
        local_urls: LocalUrls::Allow,
        max_execution_time_ms: None,
        placing: Placing::Attached,
        workspace: Workspace::FromInput,
        may_name_path: &|_, _| true,
        surroundings: &Machine::new(),
    };
    validate(input, &context).map(|validated| validated.request.policy)
}

fn read_only(options: RunOptions) -> RunInput {
    RunInput {
        task: Some("Review this.".to_owned()),
        repo: Some("/srv/a".to_owned()),
        options: RunOptions { read_only: Some(true), ..options },
        ..RunInput::default()
    }
}

#[test]
fn the_workspace_is_read_only_exactly_if_that_is_asked() {
    for (asked, wanted) in [
        (None, WorkspaceAccess::ReadWrite),
        (Some(false), WorkspaceAccess::ReadWrite),
        (Some(true), WorkspaceAccess::ReadOnly),
    ] {
        for mode in ["native", "docker", "apple"] {
            let mode = Some(mode.to_owned());
            let options = RunOptions { mode, read_only: asked, ..RunOptions::default() };
            let found = policy(&RunInput { options, ..review() }, InputSyntax::Flags).unwrap();
            assert_eq!(found.workspace_access, wanted);
        }
    }
}

fn review() -> RunInput {
    read_only(RunOptions::default())
}

/// The refusal, as flags and as fields have it.
fn refused(input: &RunInput) -> [String; 2] {
    [InputSyntax::Flags, InputSyntax::Fields].map(|syntax| {
        let error = policy(input, syntax).expect_err("it cannot be done");
        assert_eq!((error.field, error.kind), (FIELD, InputErrorKind::Conflict));
        error.shown(syntax)
    })
}

#[test]
fn what_would_change_the_project_is_refused_and_both_fields_are_named() {
    let own = |text: &str| Some(text.to_owned());
    let branch = RunInput { branch: own("fix"), repo: own("https://host.example/a"), ..review() };
    assert_eq!(
        refused(&branch),
        [
            "conflicting options: --read-only leaves nothing to push with --commit-branch",
            "conflicting options: options.read_only leaves nothing to push with branch",
        ]
    );
    let push = read_only(RunOptions { push: own("work"), ..RunOptions::default() });
    assert_eq!(
        refused(&push),
        [
            "conflicting options: --read-only leaves nothing to push with --push",
            "conflicting options: options.read_only leaves nothing to push with options.push",
        ]
    );
    let mount = |path: &str, writable| {
        let mounts = vec![MountInput { path: path.to_owned(), writable }];
        read_only(RunOptions { mounts, ..RunOptions::default() })
    };
    for path in ["/srv", "/srv/a", "/srv/a/deep"] {
        let said = refused(&mount(path, true));
        assert!(said[0].contains("--read-only, and --mount makes") && said[0].contains(path), "{said:?}");
        assert!(said[1].contains("options.read_only, and options.mounts"), "{said:?}");
        assert!(policy(&mount(path, false), InputSyntax::Flags).is_ok(), "{path}, read-only");
        let of_a_commit = RunInput { reference: own("main"), ..mount(path, true) };
        assert!(refused(&of_a_commit)[0].contains(path));
    }
    assert!(policy(&mount("/srv/plain", true), InputSyntax::Flags).is_ok(), "another folder");
}

#[test]
fn a_mode_without_walls_cannot_enforce_it() {
    let own = |text: &str| Some(text.to_owned());
    let asked = read_only(RunOptions { mode: own("host"), ..RunOptions::default() });
    assert_eq!(
        refused(&asked),
        [
            "conflicting options: --read-only cannot be enforced in mode host (--mode)",
            "conflicting options: options.read_only cannot be enforced in mode host (options.mode)",
        ]
    );
    let of_settings = read_only(RunOptions { agent: own("open"), ..RunOptions::default() });
    assert!(refused(&of_settings)[0].contains("--read-only cannot be enforced in mode host ("));
}
