//! How values that are text are described in OpenAPI: each is one that a type of this crate reads.

use std::borrow::Cow;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::run_input::bounds;

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $title:literal, $pattern:expr, $example:literal, $most:expr;)+) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let text = ObjectBuilder::new()
                    .schema_type(Type::String)
                    .pattern(Some($pattern))
                    .min_length(Some(1))
                    .max_length(Some($most))
                    .examples([$example]);
                RefOr::T(Schema::Object(text.build()))
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($title)
            }
        }
    )+ };
}

texts! {
    /// A run's id.
    RunIdText = "RunId", "^run_[0-9a-hjkmnp-tv-z]{26}$", "run_06ey5dtb0nxyva9ph4e4wpvgx8", 30;
    /// A sandbox's id.
    SandboxIdText = "SandboxId", "^sbx_[0-9a-hjkmnp-tv-z]{26}_(0|[1-9][0-9]{0,8})$",
        "sbx_06ey5dtb0nxyva9ph4e4wpvgx8_1", 40;
    /// A project's id.
    ProjectIdText = "ProjectId", "^prj_[0-9a-hjkmnp-tv-z]{26}$", "prj_06ey5dtb0nxyva9ph4e4wpvgx8", 30;
    /// A project's id or name.
    ProjectRefText = "ProjectRef", "^[0-9A-Za-z][0-9A-Za-z._-]*$", "shop", 100;
    /// A project's name.
    ProjectNameText = "ProjectName", "^[0-9A-Za-z][0-9A-Za-z._/-]*$", "acme/shop", 100;
    /// A spec's id.
    SpecIdText = "SpecId", "^spec_[0-9a-hjkmnp-tv-z]{26}$", "spec_06ey5dtb0nxyva9ph4e4wpvgx8", 31;
    /// What a spec is called.
    SpecTitleText = "SpecTitle", r"^[^\u0000]*[^\s\u0000][^\u0000]*$", "Accept coupons",
        bounds::LONGEST_SPEC_TITLE_CHARS;
    /// What is wanted of a spec.
    SpecDescriptionText = "SpecDescription", r"^[^\u0000]*[^\s\u0000][^\u0000]*$",
        "A customer can enter one coupon at the till.", bounds::LONGEST_SPEC_DESCRIPTION_CHARS;
    /// A phase of a spec that can be done.
    PhaseText = "SpecPhase", "^(explore|prd|requirements|design|tasks|sync)$", "design", 12;
    /// A place in the events of a spec: the run, and the number of the event in it.
    SpecPositionText = "SpecPosition", r"^run_[0-9a-hjkmnp-tv-z]{26}\.[0-9]{1,15}$",
        "run_06ey5dtb0nxyva9ph4e4wpvgx8.7", 46;
    /// A node's id.
    NodeIdText = "NodeId", "^node_[0-9a-hjkmnp-tv-z]{26}$", "node_06ey5dtb0nxyva9ph4e4wpvgx8", 31;
    /// A key's id. It is not the key.
    KeyIdText = "KeyId", "^key_[0-9a-hjkmnp-tv-z]{26}$", "key_06ey5dtb0nxyva9ph4e4wpvgx8", 30;
    /// What a key is for, or whom it acts for.
    OwnerText = "OwnerName",
        r"^[^\s\u0000-\u001f\u007f-\u009f]([^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f])?$",
        "ci", 100;
    /// What a key opens.
    ScopeText = "Scope", "^(read|run|system)$", "read", 6;
    /// The name of an agent.
    AgentNameText = "AgentName", "^[0-9A-Za-z][0-9A-Za-z._-]*$", "claude_code", 64;
    /// The name of a lane.
    LaneText = "Lane",
        r"^[^\s\u0000-\u001f\u007f-\u009f]([^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f])?$",
        "release", 200;
    /// Branch, tag or commit.
    ReferenceText = "Reference",
        r"^(?!-)(?!.*\.\.)(?!.*@\{)[^\s\u0000-\u001f\u007f-\u009f~^:?*\[\\]+$", "main", 250;
    /// The name of a branch.
    BranchText = "Branch",
        r"^(?!-)(?!/)(?!refs/)(?!@$)(?!HEAD$)(?!.*(\.\.|//|@\{))(?!\.)(?!.*/\.)(?!.*\.lock(/|$))(?!.*[/.]$)[^\u0000-\u001f\u007f-\u009f ~^:?*\[\\+]+$",
        "fix-login", 200;
    /// A text that says something.
    SayingText = "Text", r"^[^\u0000]*[^\s\u0000][^\u0000]*$", "Fix the login bug", bounds::LONGEST_TASK_CHARS;
    /// What a commit says.
    CommitText = "CommitMessage", r"^[^\u0000]*[^\s\u0000][^\u0000]*$", "Fix the login", 65_536;
    /// A repository: an address, `owner/name`, or a path.
    RepoText = "Repo",
        r"^(https://[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z]([a-z0-9-]*[a-z0-9])?)+(/[0-9A-Za-z_][0-9A-Za-z._-]*)+|ssh://([a-z]+@)?[a-z][a-z0-9-]*[a-z0-9](\.[a-z]+)+(/[0-9A-Za-z_][0-9A-Za-z._-]*)+|git@[a-z][a-z0-9-]*[a-z0-9](\.[a-z]+)+:[0-9A-Za-z_][0-9A-Za-z._/-]*|[0-9A-Za-z_][0-9A-Za-z._-]*/[0-9A-Za-z_][0-9A-Za-z._-]*|/[^\u0000]*)$",
        "https://github.com/owner/repo", bounds::LONGEST_REPO;
    /// The same for what is kept and not fetched at once. Which texts are addresses is more than a pattern can say: this one
    /// leaves out only what no repository is called.
    KeptRepoText = "KeptRepo", r"^(/[^\u0000]*|(?!-)[^\s\u0000-\u001f\u007f-\u009f]+)$",
        "https://github.com/owner/repo", bounds::LONGEST_REPO;
    /// The model, as a CLI names it.
    ModelText = "Model", r"^(?!-)[^\u0000-\u001f\u007f-\u009f]+$", "sonnet", bounds::LONGEST_MODEL;
    /// A folder below the workspace's root.
    FolderText = "Folder", r"^[0-9A-Za-z_-][0-9A-Za-z_-]*(/[0-9A-Za-z_-]+)*$", "services/api", 1024;
    /// The name of a variable.
    VariableText = "Variable", "^[A-Za-z_][0-9A-Za-z_]*$", "LANG", 200;
    /// A pattern of file names.
    FilePatternText = "FilePattern", r"^[^\u0000-\u001f\u007f-\u009f\[\]{}\\]+$", ".env*", bounds::LONGEST_PATTERN;
    /// A tool, as the CLI names it.
    ToolText = "Tool", r"^[A-Za-z][0-9A-Za-z_*-]*(\([^\u0000-\u001f\u007f-\u009f()]*\))?$", "Bash(git log *)", 200;
    /// A tool of a direct run.
    DirectToolText = "DirectTool", "^(WebFetch|WebSearch|TodoWrite|Read|Grep|Glob)$", "WebFetch", 9;
    /// A tool that the model's vendor runs.
    VendorToolText = "VendorTool", "^(web_search|web_fetch)$", "web_search", 20;
    /// What a sealed run may connect to: a set of the settings, or HOST:PORT.
    AllowText = "Allow",
        r"^([0-9A-Za-z][0-9A-Za-z_-]{0,63}|[a-z]([a-z0-9-]*[a-z0-9])?(\.[a-z]([a-z0-9-]*[a-z0-9])?)*:[1-9][0-9]{0,3})$",
        "npm", 200;
    /// A service on the sandbox's own loopback: a name of the settings, or PORT=HOST:PORT.
    ForwardText = "Forward",
        r"^([0-9A-Za-z][0-9A-Za-z._-]{0,63}|(10(2[4-9]|[3-9][0-9])|1[1-9][0-9]{2}|2[0-9]{3}|[4-9][0-9]{3}|[1-5][0-9]{4}|6[0-4][0-9]{3})=[a-z]([a-z0-9-]*[a-z0-9])?(\.[a-z]([a-z0-9-]*[a-z0-9])?)*:[1-9][0-9]{0,3})$",
        "5432=db.example:5432", 200;
    /// The image of a container.
    ImageText = "Image", r"^([a-z0-9]+((_|-)[a-z0-9]+)*|[a-z][a-z0-9]*(-[a-z0-9]+)*(\.[a-z][a-z0-9]*(-[a-z0-9]+)*)+)(/[a-z0-9]+((\.|_|-)[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$",
        "cofferdam/worker:latest", 250;
    /// A size, in powers of 1024.
    SizeText = "Size", "^([1-9][0-9]{2,4}m|[1-9][0-9]{0,2}g)$", "2g", 30;
    /// A number of processors.
    CpusText = "Cpus", "^([1-9][0-9]{0,2}(\\.[0-9]{1,3})?|0\\.[1-9][0-9]{0,2})$", "0.5", 8;
    /// The name of a request, echoed or made.
    RequestIdText = "RequestId", "^[0-9A-Za-z._:-]+$", "req_06ey5dtb0nxyva9ph4e4wpvgx8", 128;
}
