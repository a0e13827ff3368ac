//! Rows out of outputs. Whatever an agent left out or wrote as something else is empty in its row; a row without an id or a
//! name is one all the same, so that rows and outputs have the same positions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::graph;
use crate::spec::output::{hundredths, items, text, texts};

/// Something that must be true when the work is done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = SpecRequirement)]
pub struct Requirement {
    /// `REQ-FEATURE-CATEGORY-NNN`
    pub id: String,
    /// The capability in a few words.
    pub title: String,
    /// Such as `functional`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Such as `must`.
    pub priority: String,
    /// What the system shall do.
    pub text: String,
    /// How it is tested.
    pub acceptance_criteria: Vec<String>,
}

/// A part of the design.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = SpecComponent)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// Such as `module`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it alone does.
    pub responsibility: String,
}

/// Tasks that belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = SpecTicket)]
pub struct Ticket {
    /// `TKT-NNN`
    pub id: String,
    /// What it is called.
    pub title: String,
    /// What it is about.
    pub description: String,
    /// Such as `must`.
    pub priority: String,
}

/// A piece of work that becomes one commit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = SpecTask)]
pub struct Task {
    /// `TSK-NNN`
    pub id: String,
    /// What it is called.
    pub title: String,
    /// What to do.
    pub description: String,
    /// Such as `implementation`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Such as `must`.
    pub priority: String,
    /// The id of its ticket.
    pub parent_ticket: String,
    /// How long it is thought to take, if that was said.
    pub estimated_hours: Option<f64>,
    /// The files that it makes or changes.
    pub files: Vec<String>,
    /// The ids of the tasks before it.
    pub dependencies: Vec<String>,
    /// The ids of the requirements that it fulfils.
    pub requirements: Vec<String>,
    /// How it is tested.
    pub acceptance_criteria: Vec<String>,
}

/// The requirements of an output of the phase `requirements`.
#[must_use]
pub fn requirements(output: &Value) -> Vec<Requirement> {
    let row = |item: &Value| Requirement {
        id: owned(item, "id"),
        title: owned(item, "title"),
        kind: owned(item, "type"),
        priority: owned(item, "priority"),
        text: owned(item, "text"),
        acceptance_criteria: list(item, "acceptance_criteria"),
    };
    items(output, "requirements").iter().map(row).collect()
}

/// The components of an output of the phase `design`.
#[must_use]
pub fn components(output: &Value) -> Vec<Component> {
    let row = |item: &Value| Component {
        name: owned(item, "name"),
        kind: owned(item, "type"),
        responsibility: owned(item, "responsibility"),
    };
    items(output, "components").iter().map(row).collect()
}

/// The tickets of an output of the phase `tasks`.
#[must_use]
pub fn tickets(output: &Value) -> Vec<Ticket> {
    let row = |item: &Value| Ticket {
        id: owned(item, "id"),
        title: owned(item, "title"),
        description: owned(item, "description"),
        priority: owned(item, "priority"),
    };
    items(output, "tickets").iter().map(row).collect()
}

/// The tasks of an output of the phase `tasks`.
#[must_use]
pub fn tasks(output: &Value) -> Vec<Task> {
    let row = |item: &Value| {
        let needs = graph::dependencies(item).into_iter().filter(|(_, is_needed)| *is_needed);
        Task {
            id: owned(item, "id"),
            title: owned(item, "title"),
            description: owned(item, "description"),
            kind: owned(item, "type"),
            priority: owned(item, "priority"),
            parent_ticket: owned(item, "parent_ticket"),
            estimated_hours: item
                .get("estimated_hours")
                .filter(|hours| hundredths(hours).is_some())
                .and_then(Value::as_f64),
            files: texts(item, "files_to_create")
                .chain(texts(item, "files_to_modify"))
                .map(str::to_owned)
                .collect(),
            dependencies: needs.map(|(id, _)| id.to_owned()).collect(),
            requirements: list(item, "requirements_addressed"),
            acceptance_criteria: list(item, "acceptance_criteria"),
        }
    };
    items(output, "tasks").iter().map(row).collect()
}

fn owned(item: &Value, field: &str) -> String {
    text(item, field).to_owned()
}

fn list(item: &Value, field: &str) -> Vec<String> {
    texts(item, field).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::spec::{Phase, example};

    #[test]
    fn a_complete_output_has_complete_rows() {
        let rows = tasks(&example(Phase::Tasks));
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].id, "TSK-002");
        assert_eq!(rows[1].dependencies, ["TSK-001"]);
        assert_eq!(rows[1].estimated_hours, Some(2.5));
        assert_eq!(rows[1].files, ["shop/routes.py", "shop/orders.py", "tests/test_orders.py"]);
        assert_eq!(rows[1].requirements, ["REQ-EXPORT-API-001", "REQ-EXPORT-SEC-001"]);
        assert_eq!(tickets(&example(Phase::Tasks))[0].title, "Orders as CSV");
        assert_eq!(requirements(&example(Phase::Requirements))[2].acceptance_criteria.len(), 2);
        assert_eq!(components(&example(Phase::Design))[1].kind, "route");
    }

    #[test]
    fn what_is_of_another_type_is_empty_in_its_row() {
        let output = json!({"tasks": [7, {"id": 3, "title": " T ", "estimated_hours": "2", "dependencies": {"blocks": ["x"]}}]});
        assert_eq!(tasks(&output), [Task::default(), Task { title: "T".to_owned(), ..Task::default() }]);
        assert!(requirements(&json!("text")).is_empty());
    }
}
