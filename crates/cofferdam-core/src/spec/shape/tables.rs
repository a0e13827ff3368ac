//! The known fields of each phase's output.

use super::Need::{Optional, Required};
use super::Shape::{Any, Either, Flag, List, Map, Number, Object, Text};
use super::{Field, Need, Shape, TEXTS};
use crate::spec::Phase;

/// The fields of a phase's output, if it has one.
pub(super) fn of(phase: Phase) -> Option<&'static [Field]> {
    match phase {
        Phase::Explore => Some(EXPLORE),
        Phase::Prd => Some(PRD),
        Phase::Requirements => Some(REQUIREMENTS),
        Phase::Design => Some(DESIGN),
        Phase::Tasks => Some(TASKS),
        Phase::Sync => Some(SYNC),
        Phase::Implement => None,
    }
}

const fn field(name: &'static str, need: Need, shape: Shape, says: &'static str) -> Field {
    Field { name, need, shape, says }
}

/// What most fields are.
const fn text(name: &'static str, says: &'static str) -> Field {
    field(name, Optional, Text, says)
}

/// A list of texts.
const fn texts(name: &'static str, says: &'static str) -> Field {
    field(name, Optional, TEXTS, says)
}

/// A list of objects, or of whatever somebody finds worth saying.
const fn list(name: &'static str, item: &'static Shape, says: &'static str) -> Field {
    field(name, Optional, List(item), says)
}

const FEATURE_NAME: Field = text("feature_name", "A short name for the feature, such as `order-export`");
const PRIORITY: Field = text("priority", "`must`, `should` or `could`");

const EXPLORE: &[Field] = &[
    field(
        "codebase_summary",
        Required,
        Text,
        "What the code is and how it is built, in more than 50 characters",
    ),
    text("project_type", "What kind of project it is, such as `web service in Python`"),
    texts("tech_stack", "Languages, frameworks and services that it uses; at least 2"),
    field("structure", Optional, Map(&Any), "At least 2 folders of the project, each with what is in it"),
    list(
        "key_files",
        &Object(&[text("path", "From the project's root"), text("purpose", "Why it matters here")]),
        "At least 3 files that matter for this feature",
    ),
    field(
        "conventions",
        Optional,
        Object(&[
            field("naming", Optional, Any, "How things are named"),
            field("testing", Optional, Any, "How things are tested"),
            list("patterns", &Any, "Patterns that the code follows"),
        ]),
        "How this project does things",
    ),
    list(
        "discovery_questions",
        &Object(&[
            text(
                "category",
                "One of `Problem & Value`, `Users & Journeys`, `Scope & Boundaries`, `Technical Context`, `Trade-offs & Risks`",
            ),
            texts("questions", "What has to be known, each with your best answer if the code has it"),
        ]),
        "Questions on the feature, with at least one for each of the five categories",
    ),
    field(
        "feature_summary",
        Optional,
        Object(&[
            text("name", "A short name for the feature, such as `order-export`"),
            text("problem_statement", "What is wrong or missing today, and for whom"),
            texts("scope_in", "What belongs to it; at least 1"),
            texts("scope_out", "What does not"),
        ]),
        "What is to be made, as you understand it",
    ),
    list("relevant_patterns", &Any, "Code to follow as an example; an empty list if there is none"),
    list("related_to_feature", &Any, "Existing code that this touches; an empty list if there is none"),
];

const USER: Shape = Object(&[
    text("role", ""),
    text("description", ""),
    texts("needs", "What they need from the feature; at least 1"),
]);

const PRD: &[Field] = &[
    field(
        "overview",
        Required,
        Object(&[
            FEATURE_NAME,
            text("one_liner", "The feature in a sentence"),
            text("problem_statement", "In more than 30 characters"),
            text("solution_summary", "In more than 30 characters"),
        ]),
        "",
    ),
    field(
        "goals",
        Optional,
        Object(&[
            field("primary", Optional, Either(&[TEXTS, Text]), "What it is for"),
            texts("secondary", "An empty list if there are none"),
            list(
                "success_metrics",
                &Object(&[
                    text("metric", ""),
                    field("target", Optional, Either(&[Text, Number]), ""),
                    text("measurement", "How it is measured"),
                ]),
                "At least 1",
            ),
        ]),
        "",
    ),
    field(
        "users",
        Optional,
        Object(&[
            list("primary", &USER, "At least 1"),
            list("secondary", &USER, "An empty list if there are none"),
        ]),
        "Whom it is for",
    ),
    list(
        "user_stories",
        &Object(&[
            text("id", "`US-NNN`, each used once"),
            text("role", "As a …"),
            text("want", "I want to …"),
            text("benefit", "so that …"),
            PRIORITY,
            texts("acceptance_criteria", "At least 1"),
        ]),
        "At least 1",
    ),
    field(
        "scope",
        Optional,
        Object(&[
            texts("in", "What belongs to it; at least 1"),
            texts("out", "What does not; at least 1"),
            texts("dependencies", "What it needs that is not part of it; an empty list if there is nothing"),
        ]),
        "",
    ),
    texts("assumptions", "At least 1"),
    field(
        "constraints",
        Optional,
        Object(&[texts("technical", "At least 1"), texts("business", "An empty list if there are none")]),
        "",
    ),
    list(
        "risks",
        &Object(&[text("description", ""), text("impact", ""), text("mitigation", "")]),
        "At least 1",
    ),
    texts("open_questions", "An empty list if there are none"),
];

const REQUIREMENTS: &[Field] = &[
    FEATURE_NAME,
    field(
        "requirements",
        Required,
        List(&Object(&[
            field(
                "id",
                Required,
                Text,
                "`REQ-FEATURE-CATEGORY-NNN`, each used once, such as `REQ-EXPORT-API-001`",
            ),
            text("title", "The capability in a few words"),
            text("type", "`functional` or `non_functional`"),
            PRIORITY,
            field(
                "text",
                Required,
                Text,
                "One sentence with SHALL, such as `WHEN a user asks for the export, THE SYSTEM SHALL …`. Begin with WHEN, WHILE, WHERE or IF",
            ),
            texts("acceptance_criteria", "At least 2, each of which can be tested"),
        ])),
        "At least 1",
    ),
    texts("assumptions", "At least 1"),
    texts("out_of_scope", "At least 1"),
    field("traceability", Optional, Map(&Any), "Where the requirements come from: each id with its source"),
];

const DESIGN: &[Field] = &[
    FEATURE_NAME,
    field("architecture_overview", Required, Text, "How it is built and why so, in at least 100 characters"),
    field(
        "components",
        Required,
        List(&Object(&[
            field("name", Required, Text, ""),
            text("type", "Such as `service`, `module`, `table`"),
            text("responsibility", "What it alone does"),
            list("interfaces", &Any, "How others use it; an empty list if nobody does"),
        ])),
        "At least 1",
    ),
    list(
        "data_models",
        &Object(&[
            text("name", ""),
            field("fields", Optional, Either(&[Map(&Any), List(&Any)]), "Each field with its type"),
        ]),
        "What is stored or sent",
    ),
    list(
        "api_endpoints",
        &Object(&[text("method", ""), text("path", ""), text("description", "")]),
        "What can be called from outside",
    ),
    field(
        "testing_strategy",
        Optional,
        Object(&[list("unit_tests", &Any, "At least 1"), list("integration_tests", &Any, "At least 1")]),
        "",
    ),
    field(
        "error_handling",
        Optional,
        Either(&[Map(&Any), List(&Any), Text]),
        "What can fail, and what happens then",
    ),
    field("security_considerations", Optional, List(&Any), "At least 1"),
    field("integration_points", Optional, List(&Any), "Where it meets what is already there; at least 1"),
];

const TASKS: &[Field] = &[
    FEATURE_NAME,
    list(
        "tickets",
        &Object(&[
            field("id", Required, Text, "`TKT-NNN`, each used once"),
            text("title", ""),
            text("description", ""),
            PRIORITY,
        ]),
        "Tasks that belong together; at least 1",
    ),
    field(
        "tasks",
        Required,
        List(&Object(&[
            field("id", Required, Text, "`TSK-NNN`, each used once"),
            text("title", ""),
            text("description", "Enough to do the task without this conversation"),
            text("type", "Such as `implementation`, `test`, `documentation`"),
            PRIORITY,
            text("parent_ticket", "The id of its ticket"),
            field("estimated_hours", Optional, Number, "From 1 to 4; cut a larger task in two"),
            texts("files_to_create", "From the project's root"),
            texts("files_to_modify", "From the project's root"),
            field(
                "dependencies",
                Optional,
                Either(&[TEXTS, Object(&[texts("depends_on", ""), texts("blocks", "")])]),
                "The ids of tasks that must be done before it; an empty list if there are none",
            ),
            texts("requirements_addressed", "The ids of the requirements that it fulfils; at least 1"),
            texts("acceptance_criteria", "At least 1"),
        ])),
        "At least 1, and at least 1 for each requirement",
    ),
    texts("critical_path", "The ids of the tasks that decide how long it takes"),
    field("total_estimated_hours", Optional, Number, "The sum of the tasks' hours"),
];

const SYNC: &[Field] = &[
    field(
        "validation_results",
        Optional,
        Object(&[
            field("all_requirements_covered", Optional, Flag, "Each requirement has a task"),
            field("all_design_components_have_tasks", Optional, Flag, "Each component has a task"),
            field("dependency_order_valid", Optional, Flag, "Each task depends on tasks that are there"),
            field("no_circular_dependencies", Optional, Flag, "No tasks wait for each other"),
        ]),
        "What you checked, and whether it holds",
    ),
    list(
        "coverage_matrix",
        &Object(&[
            text("requirement_id", ""),
            texts("covered_by_tasks", "The ids of its tasks"),
            text("status", "`fully_covered`, `partially_covered` or `not_covered`"),
        ]),
        "One row for each requirement",
    ),
    field(
        "traceability_stats",
        Optional,
        Object(&[
            field("requirements", Optional, Map(&Any), "How many there are, and how many are covered"),
            field("tickets", Optional, Map(&Any), "How many there are, and how many serve a requirement"),
            field(
                "tasks",
                Optional,
                Map(&Any),
                "How many there are, and how many have a ticket and a requirement",
            ),
            field(
                "dependencies",
                Optional,
                Map(&Any),
                "How many there are, and how many are circular or unknown",
            ),
        ]),
        "",
    ),
    field(
        "spec_summary",
        Optional,
        Object(&[
            field("total_requirements", Optional, Number, ""),
            field("total_tickets", Optional, Number, ""),
            field("total_tasks", Optional, Number, ""),
            field("total_estimated_hours", Optional, Number, ""),
        ]),
        "",
    ),
    field("ready_for_execution", Required, Flag, "Whether the tasks can be done as they are"),
    field(
        "dependency_analysis",
        Optional,
        Object(&[
            field("task_dependency_graph", Optional, Map(&TEXTS), "Each task's id with what it depends on"),
            texts("critical_path", "The ids of the tasks that decide how long it takes"),
        ]),
        "",
    ),
    list("blockers", &Any, "What keeps the tasks from being done; an empty list if nothing does"),
    list(
        "recommendations",
        &Any,
        "What whoever does the tasks should know; an empty list if there is nothing",
    ),
];
