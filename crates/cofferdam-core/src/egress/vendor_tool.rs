//! Tools that the model's vendor runs on the agent's behalf.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::text::named;
use crate::value::ValueError;

/// A tool that the vendor runs. Only those are here whose charge the vendor tells in its answer, and that keep nothing: code that
/// the vendor runs is charged by the hour, and connectors, files and stored answers reach what nobody here can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", parse_err_ty = ValueError, parse_err_fn = not_a_tool)]
pub enum VendorTool {
    /// Searches the web.
    WebSearch,
    /// Fetches pages of the web.
    WebFetch,
}

impl VendorTool {
    /// Every tool that is known.
    pub const ALL: [Self; 2] = [Self::WebSearch, Self::WebFetch];
}

fn not_a_tool(text: &str) -> ValueError {
    let known = VendorTool::ALL.map(|tool| format!("`{tool}`")).join(", ");
    let hint = format!("use one or more of {known}");
    match text {
        "" => ValueError { problem: "no tool is named".to_owned(), hint },
        _ => ValueError::new(text, "is not a tool of a vendor", &hint),
    }
}

/// Reads a list of them. Policies that were written when it was a switch say `true` for all that are known today, or `false`.
pub(super) fn read_tools<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<VendorTool>, D::Error> {
    struct Tools;

    impl<'de> Visitor<'de> for Tools {
        type Value = Vec<VendorTool>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of the vendor's tools")
        }

        fn visit_bool<E>(self, all: bool) -> Result<Self::Value, E> {
            Ok(if all { VendorTool::ALL.into() } else { Vec::new() })
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut tools = Vec::new();
            while let Some(tool) = list.next_element()? {
                tools.push(tool);
            }
            Ok(tools)
        }
    }

    reader.deserialize_any(Tools)
}

named!(VendorTool);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::EgressPolicy;

    fn read(text: &str) -> Vec<VendorTool> {
        serde_json::from_str::<EgressPolicy>(text).unwrap().vendor_tools
    }

    #[test]
    fn a_policy_that_was_stored_as_a_switch_means_the_tools_known_today() {
        assert_eq!(read(r#"{"vendor_tools": true}"#), VendorTool::ALL);
        assert_eq!(read(r#"{"vendor_tools": false}"#), []);
        assert_eq!(read("{}"), []);
        assert_eq!(read(r#"{"vendor_tools": ["web_fetch"]}"#), [VendorTool::WebFetch]);
        assert!(serde_json::from_str::<EgressPolicy>(r#"{"vendor_tools": ["mcp"]}"#).is_err());
        let written = serde_json::to_string(&EgressPolicy {
            vendor_tools: VendorTool::ALL.into(),
            ..EgressPolicy::default()
        });
        assert_eq!(read(&written.unwrap()), VendorTool::ALL);
    }

    #[test]
    fn a_name_that_is_none_is_told_which_there_are() {
        for (text, problem) in
            [("", "no tool is named"), ("code_execution", "`code_execution` is not a tool of a vendor")]
        {
            let error = text.parse::<VendorTool>().unwrap_err();
            assert_eq!(error.problem, problem);
            assert_eq!(error.hint, "use one or more of `web_search`, `web_fetch`");
        }
        for tool in VendorTool::ALL {
            assert_eq!(tool.as_str().parse(), Ok(tool));
            assert_eq!(serde_json::to_value(tool).unwrap(), tool.as_str());
        }
    }
}
