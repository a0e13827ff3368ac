//! The order of tasks by what they depend on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt;

use serde_json::Value;

use super::output::{ids, items, quoted, text, texts};

/// The most cycles that are told apart. Each takes a walk over all tasks.
const MOST_CYCLES: usize = 5;
/// The most findings of one kind that an error names.
const MOST_NAMED: usize = 5;

/// Why tasks have no order.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
pub struct TaskOrderError {
    /// Tasks that wait for each other: each needs the next, and the last one the first.
    pub cycles: Vec<Vec<String>>,
    /// Tasks and what they depend on that is no task.
    pub unknown: Vec<(String, String)>,
    /// Ids that more than one task has.
    pub duplicates: Vec<String>,
    /// How many tasks have no id.
    pub without_id: usize,
}

impl fmt::Display for TaskOrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cycles = self.cycles.iter().map(|cycle| {
            let members: Vec<_> = cycle.iter().take(MOST_NAMED * 2).map(|id| quoted(id)).collect();
            format!("the tasks {} depend on each other", members.join(", "))
        });
        let unknown = self.unknown.iter().take(MOST_NAMED).map(|(task, needed)| {
            format!("task {} depends on {}, which is no task", quoted(task), quoted(needed))
        });
        let duplicates = self.duplicates.iter().take(MOST_NAMED);
        let duplicates = duplicates.map(|id| format!("more than one task has the id {}", quoted(id)));
        let without_id = (self.without_id > 0).then(|| format!("{} tasks have no id", self.without_id));
        let all: Vec<_> = cycles.chain(unknown).chain(duplicates).chain(without_id).collect();
        f.write_str(&all.join("; "))
    }
}

/// The ids of the tasks of an output of the phase `tasks`, each after those that it depends on, and otherwise as they
/// are listed.
///
/// # Errors
/// If tasks depend on each other or on none that is there, or if their ids do not tell them apart.
pub fn task_order(output: &Value) -> Result<Vec<String>, TaskOrderError> {
    let graph = Graph::of(output);
    let (order, _) = graph.sorted(&BTreeSet::new());
    let error = graph.error();
    match error == TaskOrderError::default() {
        true => Ok(order.into_iter().map(|node| graph.ids[node].to_owned()).collect()),
        false => Err(error),
    }
}

/// Tasks and what each depends on. Tasks of the same id are one here, so that their order makes no difference.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    ids: Vec<&'a str>,
    needs: Vec<BTreeSet<usize>>,
    unknown: BTreeSet<(&'a str, &'a str)>,
    duplicates: BTreeSet<&'a str>,
    without_id: usize,
}

impl<'a> Graph<'a> {
    pub(super) fn of(output: &'a Value) -> Self {
        let tasks = items(output, "tasks");
        let (mut nodes, mut names, mut duplicates) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        for id in ids(output, "tasks") {
            if nodes.contains_key(id) {
                duplicates.insert(id);
            } else {
                nodes.insert(id, names.len());
                names.push(id);
            }
        }
        let mut graph = Self {
            needs: vec![BTreeSet::new(); names.len()],
            ids: names,
            unknown: BTreeSet::new(),
            duplicates,
            without_id: tasks.iter().filter(|task| text(task, "id").is_empty()).count(),
        };
        for task in tasks {
            let id = text(task, "id");
            let own = nodes.get(id).copied();
            for (needed, is_needed) in dependencies(task) {
                let Some(other) = nodes.get(needed).copied() else {
                    graph.unknown.insert((id, needed));
                    continue;
                };
                let Some(own) = own else { continue };
                let (waiting, first) = if is_needed { (own, other) } else { (other, own) };
                graph.needs[waiting].insert(first);
            }
        }
        graph
    }

    /// Everything that keeps the tasks from having an order.
    pub(super) fn error(&self) -> TaskOrderError {
        TaskOrderError {
            cycles: self.cycles(),
            unknown: self
                .unknown
                .iter()
                .map(|&(task, needed)| (task.to_owned(), needed.to_owned()))
                .collect(),
            duplicates: self.duplicates.iter().map(|&id| id.to_owned()).collect(),
            without_id: self.without_id,
        }
    }

    /// The tasks that can be done one after the other, and those that wait for themselves in the end. Those that are left
    /// out count as done.
    fn sorted(&self, left_out: &BTreeSet<usize>) -> (Vec<usize>, BTreeSet<usize>) {
        let mut waits: Vec<usize> =
            self.needs.iter().map(|needs| needs.difference(left_out).count()).collect();
        let mut needed_by = vec![Vec::new(); self.ids.len()];
        for (node, needs) in self.needs.iter().enumerate() {
            needs.difference(left_out).for_each(|&other| needed_by[other].push(node));
        }
        let all = || (0..self.ids.len()).filter(|node| !left_out.contains(node));
        let mut free: BinaryHeap<_> = all().filter(|&node| waits[node] == 0).map(Reverse).collect();
        let (mut order, mut stuck): (Vec<_>, BTreeSet<_>) = (Vec::new(), all().collect());
        while let Some(Reverse(node)) = free.pop() {
            stuck.remove(&node);
            order.push(node);
            for &waiting in &needed_by[node] {
                waits[waiting] -= 1;
                if waits[waiting] == 0 && !left_out.contains(&waiting) {
                    free.push(Reverse(waiting));
                }
            }
        }
        (order, stuck)
    }

    /// Tasks that wait for each other, some of them if there are many.
    pub(super) fn cycles(&self) -> Vec<Vec<String>> {
        let (mut found, mut left_out) = (Vec::new(), BTreeSet::new());
        while found.len() < MOST_CYCLES {
            let (_, stuck) = self.sorted(&left_out);
            // Each of these needs another of them, so that a walk comes back to where it was. It begins with the least
            // id, so that the order in which tasks are listed makes no difference.
            let least = |nodes: &mut dyn Iterator<Item = usize>| nodes.min_by_key(|&node| self.ids[node]);
            let Some(start) = least(&mut stuck.iter().copied()) else { break };
            let (mut walked, mut at, mut seen) = (Vec::new(), start, BTreeMap::new());
            let cycle = loop {
                if let Some(&since) = seen.get(&at) {
                    break walked.split_off(since);
                }
                seen.insert(at, walked.len());
                walked.push(at);
                match least(&mut self.needs[at].intersection(&stuck).copied()) {
                    Some(next) => at = next,
                    None => break walked,
                }
            };
            left_out.extend(cycle.iter().copied());
            let first = (0..cycle.len()).min_by_key(|&index| self.ids[cycle[index]]).unwrap_or(0);
            let in_order = cycle[first..].iter().chain(&cycle[..first]);
            found.push(in_order.map(|&node| self.ids[node].to_owned()).collect());
        }
        found.sort();
        found
    }
}

/// What a task is tied to: each id with whether the task needs it (`true`) or is needed by it.
pub(super) fn dependencies(task: &Value) -> Vec<(&str, bool)> {
    let needs = texts(task, "dependencies").map(|id| (id, true));
    let Some(both @ Value::Object(_)) = task.get("dependencies") else { return needs.collect() };
    let needs = texts(both, "depends_on").map(|id| (id, true));
    needs.chain(texts(both, "blocks").map(|id| (id, false))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tasks(needs: &[(&str, &[&str])]) -> Value {
        let tasks: Vec<_> =
            needs.iter().map(|(id, needs)| json!({"id": id, "dependencies": needs})).collect();
        json!({"tasks": tasks})
    }

    #[test]
    fn each_task_comes_after_what_it_depends_on() {
        let output = tasks(&[("C", &["B"]), ("A", &[]), ("B", &["A"]), ("D", &[])]);
        assert_eq!(task_order(&output).unwrap(), ["A", "B", "C", "D"]);
        assert_eq!(task_order(&json!({})).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_a_task_blocks_comes_after_it() {
        let output = json!({"tasks": [
            {"id": "B"},
            {"id": "A", "dependencies": {"depends_on": ["C"], "blocks": ["B"]}},
            {"id": "C", "dependencies": []},
        ]});
        assert_eq!(task_order(&output).unwrap(), ["C", "A", "B"]);
    }

    #[test]
    fn a_cycle_is_told_with_its_members_and_without_those_that_wait_for_it() {
        let needs: &[(&str, &[&str])] =
            &[("E", &["D"]), ("B", &["C"]), ("D", &["B"]), ("C", &["A"]), ("A", &["B"]), ("X", &["X"])];
        let mut reversed = needs.to_vec();
        reversed.reverse();
        for order in [needs.to_vec(), reversed] {
            let error = task_order(&tasks(&order)).unwrap_err();
            assert_eq!(error.cycles, [vec!["A", "B", "C"], vec!["X"]]);
            assert!(error.to_string().contains("`A`, `B`, `C` depend on each other"), "{error}");
        }
    }

    #[test]
    fn unknown_references_and_ids_that_tell_nothing_apart_are_told() {
        let output = json!({"tasks": [
            {"id": "A", "dependencies": ["Z"]}, {"id": "A"}, {"title": "no id"}, 7,
        ]});
        let error = task_order(&output).unwrap_err();
        assert_eq!(error.unknown, [("A".to_owned(), "Z".to_owned())]);
        assert_eq!(error.duplicates, ["A"]);
        assert_eq!(error.without_id, 2);
        assert_eq!(
            error.to_string(),
            "task `A` depends on `Z`, which is no task; more than one task has the id `A`; 2 tasks have no id"
        );
    }

    #[test]
    fn a_long_chain_and_a_long_cycle_take_no_stack() {
        let name = |number: usize| format!("T{number:05}");
        let chain = |last: usize| -> Value {
            let needs = |number: usize| match number {
                0 => json!([name(last)]),
                _ => json!([name(number - 1)]),
            };
            json!({"tasks": (0..20_000).map(|n| json!({"id": name(n), "dependencies": needs(n)})).collect::<Vec<_>>()})
        };
        assert_eq!(task_order(&chain(19_999)).unwrap_err().cycles[0].len(), 20_000);
        let mut open = chain(0);
        open["tasks"][0]["dependencies"] = json!([]);
        assert_eq!(task_order(&open).unwrap().last().unwrap(), "T19999");
    }
}
