//! The folder of the workspace that the agent starts in.

use std::path::Path;

use cofferdam_core::Job;

/// Makes the job start in its folder. The attack: the repository has a link there that leads out of it.
///
/// Nobody can change what is found: the agent has not started. On failure the job is left as it is.
pub(crate) fn enter(job: &mut Job) -> Result<(), String> {
    let Some(folder) = &job.folder else { return Ok(()) };
    let failed =
        |error: std::io::Error| format!("the working directory `{folder}` cannot be opened: {error}");
    let root = Path::new(&job.working_directory).canonicalize().map_err(failed)?;
    let found = root.join(folder.as_path()).canonicalize().map_err(failed)?;
    if !found.starts_with(&root) {
        return Err(format!("the working directory `{folder}` leads out of the workspace"));
    }
    if !found.is_dir() {
        return Err(format!("the working directory `{folder}` is not a folder"));
    }
    let Some(found) = found.to_str() else {
        return Err(format!("the working directory `{folder}` leads to a name that is not text"));
    };
    found.clone_into(&mut job.working_directory);
    job.env.insert("PWD".to_owned(), found.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn entered(root: &Path, folder: &str) -> Result<String, String> {
        let mut job: Job = serde_json::from_value(serde_json::json!({
            "attempt": { "run": "run_00000000000000000000000000", "number": 1 },
            "agent": { "provider": "command", "argv": ["true"] },
            "working_directory": root, "folder": folder, "env": {},
            "walls": cofferdam_core::WallPlan::none(),
            "probe_paths": [], "output_bytes": 1, "grace_ms": 1,
        }))
        .expect("a job");
        enter(&mut job).map(|()| {
            assert_eq!(job.env["PWD"], job.working_directory);
            job.working_directory
        })
    }

    #[test]
    fn the_agent_starts_in_a_folder_of_the_workspace_and_nowhere_else() {
        let outside = tempfile::tempdir().expect("a temp folder");
        let root = outside.path().canonicalize().expect("it is there").join("workspace");
        fs::create_dir_all(root.join("a/b")).expect("new folders");
        fs::create_dir(outside.path().join("workspace-2")).expect("a new folder");
        fs::write(root.join("file"), "").expect("a new file");
        for (name, target) in [("in", "a"), ("out", "../workspace-2"), ("etc", "/etc"), ("dead", "nothing")] {
            symlink(target, root.join(name)).expect("a new link");
        }
        assert_eq!(entered(&root, "a/b"), Ok(root.join("a/b").display().to_string()));
        assert_eq!(entered(&root, "in/b"), Ok(root.join("a/b").display().to_string()));
        for (folder, word) in [
            ("out", "leads out"),
            ("etc", "leads out"),
            ("dead", "cannot be opened"),
            ("c", "cannot be opened"),
            ("file", "is not a folder"),
        ] {
            let error = entered(&root, folder).expect_err(folder);
            assert!(error.contains(word) && error.contains(folder), "{error}");
        }
    }
}
