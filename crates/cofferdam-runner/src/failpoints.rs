//! Places where the crash tests kill a node, besides the store's own.

/// The runner's failpoints: one after each durable write outside the store, and one after each line that a
/// worker acts on.
pub const FAILPOINTS: &[&str] = &[
    "runner.artifacts",
    "runner.dead_letter",
    "runner.destroyed",
    "runner.diff",
    "runner.job_sent",
    "runner.prepared",
    "runner.pushed",
    "runner.sandbox_created",
    "runner.start_sent",
    "runner.summary",
    "runner.transcript",
    "runner.workspace_removed",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::FAILPOINTS;

    fn collect(folder: &Path, found: &mut Vec<String>) {
        let call = concat!("failpoint", "(\"");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            found.extend(text.split(call).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()));
        }
    }

    #[test]
    fn the_list_names_every_failpoint_of_the_sources_once() {
        let mut found = Vec::new();
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        let once: BTreeSet<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(once.len(), found.len(), "a name is used twice: {found:?}");
        assert_eq!(once.into_iter().collect::<Vec<_>>(), FAILPOINTS);
    }
}
