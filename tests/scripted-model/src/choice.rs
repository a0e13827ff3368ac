//! Which answer a call gets.

use std::collections::HashMap;

use crate::answer::Answer;
use crate::conversation::Conversation;
use crate::script::Script;

/// How far each list of a script has been played.
#[derive(Debug, Default)]
pub(crate) struct Position {
    /// By list (the script's own is the last) and session: how often each answer was given.
    given: HashMap<(usize, String), Vec<u32>>,
}

impl Position {
    /// Takes the answer of this call from the script.
    pub(crate) fn take(&mut self, script: &Script, asked: &Conversation, session: Option<&str>) -> Answer {
        let list = script.sessions.iter().position(|session| session.when.holds(asked));
        let answers = list.map_or(&script.answers, |list| &script.sessions[list].answers);
        let session = if script.each_session { session.unwrap_or_default() } else { "" };
        let key = (list.unwrap_or(script.sessions.len()), session.to_owned());
        let given = self.given.entry(key).or_insert_with(|| vec![0; answers.len()]);
        let left = |at: usize| given[at] < answers[at].repeat;
        let matching = |at: &usize| answers[*at].when.as_ref().is_some_and(|when| when.holds(asked));
        let in_order = |at: &usize| answers[*at].when.is_none();
        let mut candidates = (0..answers.len()).filter(|&at| left(at));
        let next = candidates.clone().find(matching).or_else(|| candidates.find(in_order));
        let Some(next) = next else { return script.at_end.clone() };
        given[next] += 1;
        answers[next].clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::conversation::Api;
    use crate::script::When;

    fn asked(text: &str) -> Conversation {
        Conversation::of(Api::ChatCompletions, &json!({"messages": [{"role": "user", "content": text}]}))
    }

    fn take(position: &mut Position, script: &Script, text: &str, session: &str) -> String {
        position.take(script, &asked(text), Some(session)).text.expect("a text")
    }

    #[test]
    fn answers_are_taken_in_order_as_often_as_they_repeat() {
        let script = Script::new([Answer::text("a").times(2), Answer::text("b")]);
        let mut position = Position::default();
        let taken: Vec<String> = (0..4).map(|_| take(&mut position, &script, "x", "s")).collect();
        assert_eq!(taken, ["a", "a", "b", "Done."]);
    }

    #[test]
    fn an_answer_with_a_condition_is_taken_when_it_holds() {
        let when = When { last_user_contains: Some("please".to_owned()), ..When::default() };
        let script = Script::new([Answer::text("in order"), Answer::text("matched").when(when)]);
        let mut position = Position::default();
        assert_eq!(take(&mut position, &script, "please", "s"), "matched");
        assert_eq!(take(&mut position, &script, "please", "s"), "in order");
    }

    #[test]
    fn each_session_can_begin_anew() {
        let script = Script::new([Answer::text("a")]).for_each_session();
        let mut position = Position::default();
        assert_eq!(take(&mut position, &script, "x", "one"), "a");
        assert_eq!(take(&mut position, &script, "x", "two"), "a");
        assert_eq!(take(&mut position, &script, "x", "one"), "Done.");
    }

    #[test]
    fn a_prompt_can_have_a_list_of_its_own() {
        let script = Script::new([Answer::text("a")]).for_prompt("second", [Answer::text("b")]);
        let mut position = Position::default();
        assert_eq!(take(&mut position, &script, "the second task", "s"), "b");
        assert_eq!(take(&mut position, &script, "the first task", "s"), "a");
    }
}
