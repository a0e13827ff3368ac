//! Named sets of rules for the package registries and git hosts that most repositories need.
//!
//! Each set is what the tool asks for by itself, host by host. There is no host here where anybody can put
//! up a store of their own (`storage.googleapis.com`, say): what an agent can upload there is not kept in.

/// Every preset: its name and its rules.
pub const PRESETS: &[(&str, &[&str])] = &[
    ("npm", &["registry.npmjs.org:443", "registry.yarnpkg.com:443"]),
    ("pypi", &["pypi.org:443", "files.pythonhosted.org:443"]),
    ("crates", &["index.crates.io:443", "static.crates.io:443", "crates.io:443"]),
    ("go", &["proxy.golang.org:443", "sum.golang.org:443", "go.dev:443", "dl.google.com:443"]),
    ("rubygems", &["rubygems.org:443", "index.rubygems.org:443"]),
    ("maven", &["repo.maven.apache.org:443", "repo1.maven.org:443"]),
    // apt asks by plain http unless told otherwise, and checks signatures itself.
    (
        "debian",
        &["deb.debian.org:443", "deb.debian.org:80", "security.debian.org:443", "security.debian.org:80"],
    ),
    (
        "github",
        &[
            "github.com:443",
            "api.github.com:443",
            "codeload.github.com:443",
            "raw.githubusercontent.com:443",
            "objects.githubusercontent.com:443",
            "release-assets.githubusercontent.com:443",
        ],
    ),
    ("gitlab", &["gitlab.com:443"]),
    ("bitbucket", &["bitbucket.org:443", "api.bitbucket.org:443"]),
];

/// The rules of a preset, if there is one of this name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static [&'static str]> {
    PRESETS.iter().find(|(known, _)| *known == name).map(|(_, rules)| *rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::AllowRule;

    #[test]
    fn every_rule_of_every_preset_reads_back_as_it_is_written() {
        for (name, rules) in PRESETS {
            assert!(!rules.is_empty(), "{name}");
            for text in *rules {
                assert_eq!(text.parse::<AllowRule>().unwrap().to_string(), *text);
            }
            assert_eq!(preset(name), Some(*rules));
        }
        assert_eq!(preset("NPM"), None);
    }
}
