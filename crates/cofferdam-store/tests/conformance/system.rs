//! What an operator changes while the service runs, and questions to nodes.

use crate::fixture::{at, entries, mandate, node};
use crate::on_every_store;
use cofferdam_core::{Action, ConfigUpdates, Mode, NodeId, NodeRequestId, NodeTask};
use cofferdam_store::{NewNodeRequest, RequestState};
use serde_json::json;

fn updates(pairs: &[(&str, Option<&str>)]) -> ConfigUpdates {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect()
}

fn question(number: u128, to: Option<NodeId>, share: Option<&str>) -> NewNodeRequest {
    NewNodeRequest {
        id: NodeRequestId::new(1, number),
        node: to,
        task: NodeTask::Doctor { mode: Mode::Native },
        share: share.map(str::to_owned),
        deadline_ms: 5_000,
    }
}

on_every_store! {
    async fn config_is_changed_as_a_whole_with_who_did_it_and_a_repeat_leaves_no_entry(fixture: Fixture) {
        let store = fixture.open().await;
        assert_eq!(store.system_config().await.unwrap(), []);
        let by = |now_ms| mandate("ci", Action::ChangeConfig, "system_config", now_ms);
        let asked = updates(&[("LLM_EXECUTOR", Some("codex")), ("sandbox.max_attempts", Some("2"))]);
        assert!(store.change_config(&by(1_000), &asked).await.unwrap());
        assert!(!store.change_config(&by(2_000), &asked).await.unwrap(), "nothing is different");
        assert!(store.change_config(&by(3_000), &updates(&[("LLM_EXECUTOR", None)])).await.unwrap());
        assert!(!store.change_config(&by(4_000), &updates(&[("LLM_EXECUTOR", None)])).await.unwrap());
        let kept = fixture.open().await.system_config().await.unwrap();
        let [entry] = kept.as_slice() else { panic!("{kept:?}") };
        assert_eq!((entry.key.as_str(), entry.value.as_str(), entry.at_ms), ("sandbox.max_attempts", "2", 1_000));
        assert_eq!(entry.actor, by(0).actor());
        let audit = entries(&store).await;
        assert_eq!(audit.iter().map(|entry| (entry.action.as_str(), entry.at_ms)).collect::<Vec<_>>(),
            [("config.change", 1_000), ("config.change", 3_000)]);
    }

    async fn a_question_is_taken_once_by_whom_it_is_for_and_its_answer_is_read_once(fixture: Fixture) {
        let store = fixture.open().await;
        let to_one = store.ask_node(&question(1, Some(node(1)), None), None, 1_000).await.unwrap();
        let to_any = store.ask_node(&question(2, None, None), None, 1_000).await.unwrap();
        assert!(to_one.is_new && to_any.is_new);
        let taken = store.take_node_requests(&node(2), 1_000, 9).await.unwrap();
        assert_eq!(taken.iter().map(|one| one.id.clone()).collect::<Vec<_>>(), [to_any.id]);
        assert_eq!(taken[0].task, NodeTask::Doctor { mode: Mode::Native });
        assert_eq!(store.node_answer(&to_one.id).await.unwrap(), RequestState::Open);
        assert_eq!(store.take_node_requests(&node(1), 1_000, 0).await.unwrap(), [], "it has no room");
        assert_eq!(store.take_node_requests(&node(1), 1_000, 9).await.unwrap().len(), 1);
        assert_eq!(store.take_node_requests(&node(1), 1_000, 9).await.unwrap(), []);
        assert!(store.answer_node_request(&to_one.id, &json!({"a": 1}), 2_000).await.unwrap());
        assert!(!store.answer_node_request(&to_one.id, &json!({"a": 2}), 2_000).await.unwrap());
        assert_eq!(store.node_answer(&to_one.id).await.unwrap(), RequestState::Answered(json!({"a": 1})));
        assert_eq!(store.node_answer(&to_one.id).await.unwrap(), RequestState::Gone);
    }

    async fn nobody_takes_or_answers_what_is_late(fixture: Fixture) {
        let store = fixture.open().await;
        let asked = store.ask_node(&question(1, None, None), None, 1_000).await.unwrap();
        assert_eq!(store.take_node_requests(&node(1), 5_000, 9).await.unwrap(), []);
        assert_eq!(store.take_node_requests(&node(1), 4_999, 9).await.unwrap().len(), 1);
        assert!(!store.answer_node_request(&asked.id, &json!(1), 5_000).await.unwrap());
        store.ask_node(&question(2, None, None), None, 5_000).await.unwrap();
        assert_eq!(store.node_answer(&asked.id).await.unwrap(), RequestState::Gone, "what is late is removed");
    }

    async fn equal_questions_have_one_answer_for_a_minute_and_one_entry(fixture: Fixture) {
        let store = fixture.open().await;
        let costs = at(1_000);
        let first = store.ask_node(&question(1, None, Some("claude")), Some(&costs), 1_000).await.unwrap();
        let second = store.ask_node(&question(2, None, Some("claude")), Some(&costs), 1_100).await.unwrap();
        let other = store.ask_node(&question(3, None, Some("codex")), Some(&costs), 1_100).await.unwrap();
        assert_eq!((&second.id, second.is_new, other.is_new), (&first.id, false, true));
        store.take_node_requests(&node(1), 1_200, 9).await.unwrap();
        assert!(store.answer_node_request(&first.id, &json!("ok"), 2_000).await.unwrap());
        for _ in 0..2 {
            assert_eq!(store.node_answer(&first.id).await.unwrap(), RequestState::Answered(json!("ok")));
        }
        assert!(!store.ask_node(&question(4, None, Some("claude")), Some(&costs), 61_999).await.unwrap().is_new);
        assert!(store.ask_node(&question(5, None, Some("claude")), Some(&costs), 62_000).await.unwrap().is_new);
        assert_eq!(entries(&store).await.len(), 3, "the questions that were asked");
    }
}
