//! What an agent prints, in any amount, and whoever reads it.

use cofferdam_core::{AgentEnd, ExitCause};

use crate::conformance::stage::{PATIENCE, Talk, end_of, texts};
use crate::on_every_backend;

on_every_backend! {
    async fn a_reader_that_does_not_read_holds_nobody_up(stage: Stage) {
        // More than all pipes and buffers on the way hold together.
        let script = "yes $(head -c 1000 /dev/zero | tr '\\0' x) | head -c 20000000; exit 3";
        let (sandbox, stalled) = stage.running(&stage.policy(), script).await;
        let ended = tokio::time::timeout(3 * PATIENCE, sandbox.wait()).await;
        assert_eq!(ended.expect("the agent goes on").unwrap().cause, ExitCause::Exited { code: 0 });
        let seen = Talk::to(&*sandbox).await.rest().await;
        assert_eq!(end_of(&seen), Some(AgentEnd::Exited { code: 3 }));
        drop(stalled);
        sandbox.destroy().await.unwrap();
    }

    async fn many_lines_arrive_in_order_at_everybody_who_attaches(stage: Stage) {
        let (sandbox, mut first) = stage.running(&stage.policy(), "seq 1 200000").await;
        let first = first.rest().await;
        let printed: Vec<&str> = texts(&first).into_iter().flat_map(str::lines).collect();
        assert_eq!(printed.len(), 200_000);
        assert!(printed.iter().zip(1..).all(|(line, number)| *line == number.to_string()));
        let second = Talk::to(&*sandbox).await.rest().await;
        assert!(second.ends_with(&first), "the second reader read something else");
        sandbox.destroy().await.unwrap();
    }
}
