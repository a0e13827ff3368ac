//! The folder of the workspace that a program starts in.

use std::os::unix::fs::symlink;

use cofferdam_e2e::Fixture;
use cofferdam_test_marks::once;

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.write("services/api/main.txt", "main\n");
    for (name, target) in [("inside", "services/api"), ("outside", "/etc"), ("above", "../..")] {
        symlink(target, fixture.repository().join(name)).expect("a new link");
    }
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "--quiet", "--message=folders"]);
    fixture
}

#[test]
fn a_program_starts_in_the_folder_and_its_diff_is_of_the_whole_workspace() {
    let fixture = fixture();
    for folder in ["services/api", "./services//api/", "inside"] {
        let script = "test \"$PWD\" = /workspace/services/api && cat main.txt && echo x > new.txt && echo y > /workspace/top.txt";
        let run = fixture.run(&["--working-dir", folder], script);
        assert_eq!(run.outcome(), "succeeded", "{folder}: {}", run.stderr);
        let diff = run.diff();
        assert!(diff.contains("b/services/api/new.txt") && diff.contains("b/top.txt"), "{diff}");
    }
}

#[test]
fn a_folder_that_is_not_the_workspaces_ends_the_run_before_the_program_starts() {
    let fixture = fixture();
    for (folder, words) in [
        ("missing", "the working directory `missing` cannot be opened"),
        ("outside", "the working directory `outside` leads out of the workspace"),
        ("above", "the working directory `above` leads out of the workspace"),
        ("services/api/main.txt", "is not a folder"),
    ] {
        let run = fixture.run(&["--working-dir", folder], "echo ran > ran.txt");
        assert_eq!(run.outcome(), "failed/workspace", "{folder}: {}", run.stderr);
        assert!(run.stderr.contains(words), "`{words}` in {}", run.stderr);
        assert_eq!(run.diff(), "");
    }
}

#[once]
#[test]
fn a_folder_that_cannot_be_one_of_the_workspaces_is_refused_at_once() {
    let fixture = Fixture::new();
    for folder in ["/etc", "..", "a/../..", ""] {
        let run = fixture.cofferdam(["run", "--working-dir", folder, "--", "true"]);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains("--working-dir"), "{}", run.stderr);
    }
}
