//! How values that are text are described: each is one that a type of the core reads.

use std::borrow::Cow;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $title:literal, $pattern:expr, $example:literal, $most:literal;)+) => { $(
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
    /// A node's id.
    NodeIdText = "NodeId", "^node_[0-9a-hjkmnp-tv-z]{26}$", "node_06ey5dtb0nxyva9ph4e4wpvgx8", 31;
    /// A key's id. It is not the key.
    KeyIdText = "KeyId", "^key_[0-9a-hjkmnp-tv-z]{26}$", "key_06ey5dtb0nxyva9ph4e4wpvgx8", 30;
    /// The name of an agent.
    AgentNameText = "AgentName", "^[0-9A-Za-z][0-9A-Za-z._-]*$", "claude_code", 64;
    /// The name of a lane.
    LaneText = "Lane", r"^[!-~]([ -~]*[!-~])?$", "release", 200;
    /// The name of a request, echoed or made.
    RequestIdText = "RequestId", "^[0-9A-Za-z._:-]+$", "req_06ey5dtb0nxyva9ph4e4wpvgx8", 128;
}
