//! What people say meanwhile.

use cofferdam_core::MessageKind;
use cofferdam_direct::{Delivered, Ended, History, JournalError, Subtype, Turn, converse};
use cofferdam_scripted_model::{Answer, Script, ScriptedModel};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::rig::{Post, Record, client, echo, say, settings};

struct Live {
    model: ScriptedModel,
    record: Record,
    post: Post,
    talk: JoinHandle<Result<Ended, JournalError>>,
}

fn begin(answers: impl IntoIterator<Item = Answer>) -> Live {
    let model = ScriptedModel::start(Script::new(answers));
    let record = Record::default();
    let post = Post::new(&record);
    let (mut journal, mut mail, client) = (record.clone(), post.clone(), client(model.address()));
    let talk = tokio::spawn(async move {
        let history = History { before: Vec::new(), own: vec![Turn::prompt("Do it")] };
        converse(&settings(), history, &client, &echo(), &mut journal, &mut mail).await
    });
    Live { model, record, post, talk }
}

fn texts(model: &ScriptedModel, request: usize) -> Vec<String> {
    let body = &model.requests()[request].body;
    let blocks = body["messages"].as_array().unwrap().iter().flat_map(|it| it["content"].as_array().unwrap());
    blocks.filter_map(|block| block["text"].as_str()).map(str::to_owned).collect()
}

fn delivered(id: &str, kind: MessageKind, turn: u32, text: &str) -> Delivered {
    Delivered { id: id.to_owned(), kind, turn, text: text.to_owned() }
}

#[tokio::test]
async fn a_steer_is_in_the_next_request_with_its_receipt_in_the_same_record() {
    let live = begin([Answer::tools([say("a")]).held_at("go"), Answer::text("ok")]);
    live.model.held("go").await;
    live.post.say("m1", MessageKind::Steer, "the other one");
    live.model.release("go");
    let ended = live.talk.await.unwrap().unwrap();
    assert_eq!(ended.report.result.as_deref(), Some("ok"));
    assert_eq!(texts(&live.model, 1), ["Do it", "the other one"]);
    let entries = live.record.entries();
    let entry = entries.iter().find(|entry| !entry.delivered.is_empty()).unwrap();
    assert_eq!(entry.delivered, [delivered("m1", MessageKind::Steer, 1, "the other one")]);
    assert!(entry.turns.iter().any(|turn| turn.content()[0]["text"] == "the other one"));
}

#[tokio::test]
async fn a_follow_up_waits_for_the_end_of_the_turn() {
    let live = begin([Answer::tools([say("a")]).held_at("go"), Answer::text("one"), Answer::text("two")]);
    live.model.held("go").await;
    live.post.say("m1", MessageKind::FollowUp, "and then?");
    live.model.release("go");
    let ended = live.talk.await.unwrap().unwrap();
    assert_eq!((ended.report.result.as_deref(), ended.report.num_turns), (Some("two"), 3));
    assert!(!texts(&live.model, 1).contains(&"and then?".to_owned()));
    assert_eq!(texts(&live.model, 2), ["Do it", "one", "and then?"]);
    let told: Vec<_> = live.record.entries().into_iter().flat_map(|entry| entry.delivered).collect();
    assert_eq!(told, [delivered("m1", MessageKind::FollowUp, 2, "and then?")]);
}

#[tokio::test]
async fn an_interrupt_ends_the_answer_that_is_coming() {
    let live = begin([Answer::text("Once upon a time there was").held_after(4, "go")]);
    live.record.shown(2).await;
    live.post.say("m1", MessageKind::Interrupt, "");
    let ended = live.talk.await.unwrap().unwrap();
    assert_eq!((ended.report.subtype, ended.report.is_error), (Subtype::ErrorDuringExecution, true));
    assert_eq!(ended.report.errors, ["the turn was interrupted"]);
    assert_eq!(live.record.delivered(), ["m1"]);
    let entries = live.record.entries();
    let last = entries.last().expect("its end is on record");
    assert!(last.delivered.is_empty() && last.facts.len() == 1, "nothing is told after the end: {last:?}");
    // What was shown is kept, and it is known that this was the end: also after a crash.
    let turns = live.record.turns();
    let [Turn::Assistant { content, .. }, Turn::User { interrupted: true, .. }] = &turns[..] else {
        panic!("{turns:#?}")
    };
    assert_eq!(content[0]["text"], live.record.shown_text());
    let own = [vec![Turn::prompt("Do it")], turns].concat();
    let history = History { before: Vec::new(), own };
    let record = Record::default();
    let (mut journal, mut mail) = (record.clone(), Post::new(&record));
    let client = client(live.model.address());
    let again = converse(&settings(), history, &client, &echo(), &mut journal, &mut mail).await.unwrap();
    assert_eq!((again, live.model.calls()), (ended, 1));
}

#[tokio::test]
async fn an_interrupt_ends_the_tools_and_what_waits_is_said() {
    let live = begin([Answer::tools([say("wait"), say("a")]), Answer::text("as you wish")]);
    live.model.until_calls(1).await;
    live.post.say("m1", MessageKind::FollowUp, "do this instead");
    live.post.say("m2", MessageKind::Interrupt, "");
    let ended = live.talk.await.unwrap().unwrap();
    assert_eq!(ended.report.result.as_deref(), Some("as you wish"));
    let messages = live.model.requests()[1].body["messages"].clone();
    let all = messages.as_array().unwrap();
    assert!(texts(&live.model, 1).contains(&"do this instead".to_owned()), "{messages}");
    // Each call has a result, whenever the interrupt came: the API refuses a conversation without.
    let blocks = || all.iter().flat_map(|it| it["content"].as_array().unwrap());
    let of = |kind: &'static str, key: &'static str| -> Vec<Value> {
        blocks().filter(|it| it["type"] == kind).map(|it| it[key].clone()).collect()
    };
    assert_eq!(of("tool_use", "id"), of("tool_result", "tool_use_id"));
}

#[tokio::test]
async fn dropping_it_ends_the_request() {
    let live = begin([Answer::text("Once upon a time").held_after(3, "go")]);
    live.model.held("go").await;
    live.talk.abort();
    assert!(live.talk.await.unwrap_err().is_cancelled());
    live.model.wait_idle();
    assert!(live.record.entries().is_empty());
}
