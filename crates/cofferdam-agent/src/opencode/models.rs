//! Models as OpenCode names them: `PROVIDER/MODEL`.

use cofferdam_core::Vendor;

/// The CLI's name of a vendor, and the model alone of what was asked for.
pub(super) fn named(vendor: Vendor, asked: Option<&str>) -> (&'static str, &str) {
    let (provider, default_model) = match vendor {
        Vendor::Anthropic => ("anthropic", "claude-sonnet-5"),
        Vendor::Openai => ("openai", "gpt-5.5"),
    };
    let asked = asked.unwrap_or(default_model);
    (provider, asked.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/')).unwrap_or(asked))
}

/// Whose models it can use when it is asked for this one, preferred first.
pub(super) fn vendors(model: Option<&str>) -> &'static [Vendor] {
    match model {
        Some(model) if model.starts_with("openai/") => &[Vendor::Openai],
        Some(model) if model.starts_with("anthropic/") => &[Vendor::Anthropic],
        _ => &[Vendor::Anthropic, Vendor::Openai],
    }
}
