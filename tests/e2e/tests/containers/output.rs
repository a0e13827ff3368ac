//! What an agent prints goes through the engine's log, and comes out as it was.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use cofferdam_e2e::Finished;
use cofferdam_e2e::containers::InContainers;

use crate::in_every_container_mode;

in_every_container_mode! {
    fn a_line_of_30_mb_passes_through_the_engines_log_unharmed(mode: &'static ContainerMode) {
        let Some(stage) = InContainers::new(mode) else { return };
        let finished = stage.run(&[], "seq -s , 1 5000000 | head -c 30000000");
        let mut expected = (1..=5_000_000).fold(String::new(), |mut text, number| {
            let _ = write!(text, "{number},");
            text
        });
        expected.truncate(30_000_000);
        is_whole(&stage, &finished, expected + "\n");
    }

    fn lines_without_number_pass_through_the_engines_log_unharmed(mode: &'static ContainerMode) {
        let Some(stage) = InContainers::new(mode) else { return };
        let finished = stage.run(&[], "seq 1 200000");
        let expected = (1..=200_000).fold(String::new(), |mut text, number| {
            let _ = writeln!(text, "{number}");
            text
        });
        is_whole(&stage, &finished, expected);
    }
}

fn is_whole(stage: &InContainers, finished: &Finished, expected: String) {
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let run = stage.fixture.state().join("runs").join(finished.run_id());
    let attempts = fs::read_dir(run).expect("what the run left").flatten();
    let attempts: Vec<PathBuf> = attempts.map(|entry| entry.path()).collect();
    assert_eq!(attempts.len(), 1);
    let transcript = fs::read(attempts[0].join("transcript.log")).expect("a transcript");
    assert_eq!(transcript.len(), expected.len());
    let differs = transcript.iter().zip(expected.bytes()).position(|(one, other)| *one != other);
    assert_eq!(differs, None, "the first byte that differs");
}
