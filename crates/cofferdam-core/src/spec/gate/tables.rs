//! What each phase is asked for and how much it counts, as data: the gate and `docs/reference/specs.md` are made from it.
//! The weights of a phase are percents and sum to 100.

use super::Criterion;
use super::check::Check::{
    self, All, Any, AtLeast, Both, Each, Filled, Hours, Ids, List, Map, Some, Special, Text, True,
};
use super::check::IdForm::{Requirement, Story, Task, Ticket};
use super::special;
use crate::spec::Phase;

/// What a phase is asked for.
pub(in crate::spec) fn criteria(phase: Phase) -> &'static [Criterion] {
    match phase {
        Phase::Explore => EXPLORE,
        Phase::Prd => PRD,
        Phase::Requirements => REQUIREMENTS,
        Phase::Design => DESIGN,
        Phase::Tasks => TASKS,
        Phase::Sync => SYNC,
        Phase::Implement => &[],
    }
}

const fn ask(weight: u32, field: &'static str, check: Check, asks: &'static str) -> Criterion {
    Criterion { field, weight, asks, check }
}

/// What an output has earned that lists no data models or endpoints: not every feature has them.
const WITHOUT: u32 = 3_000;

const EXPLORE: &[Criterion] = &[
    ask(12, "codebase_summary", Text(51), "summarise the code in more than 50 characters"),
    ask(8, "project_type", Text(1), "say what kind of project it is"),
    ask(10, "tech_stack", List(2), "list at least 2 languages, frameworks or services"),
    ask(10, "structure", Map(2), "name at least 2 folders with what is in them"),
    ask(
        15,
        "key_files",
        Some(3, &All(&[("path", Text(1)), ("purpose", Text(1))])),
        "list at least 3 files, each with `path` and `purpose`",
    ),
    ask(
        10,
        "conventions",
        All(&[("naming", Filled), ("testing", Filled), ("patterns", List(0))]),
        "say how the project does `naming`, `testing` and `patterns` (a list)",
    ),
    ask(
        15,
        "discovery_questions",
        Special(special::categories),
        "ask questions in each of the categories Problem & Value, Users & Journeys, Scope & Boundaries, Technical Context, Trade-offs & Risks",
    ),
    ask(
        12,
        "feature_summary",
        All(&[
            ("name", Text(1)),
            ("scope_in", List(1)),
            ("scope_out", List(0)),
            ("problem_statement", Text(1)),
        ]),
        "give the feature's `name`, `problem_statement`, `scope_in` and `scope_out`",
    ),
    ask(4, "relevant_patterns", List(0), "list code to follow as an example, or give an empty list"),
    ask(
        4,
        "related_to_feature",
        List(0),
        "list existing code that the feature touches, or give an empty list",
    ),
];

const USER: Check = All(&[("role", Text(1)), ("description", Text(1)), ("needs", List(1))]);

const PRD: &[Criterion] = &[
    ask(
        15,
        "overview",
        All(&[
            ("feature_name", Text(1)),
            ("one_liner", Text(1)),
            ("problem_statement", Text(31)),
            ("solution_summary", Text(31)),
        ]),
        "give `feature_name`, `one_liner`, and `problem_statement` and `solution_summary` of more than 30 characters",
    ),
    ask(
        15,
        "goals",
        All(&[
            ("primary", Filled),
            ("secondary", List(0)),
            (
                "success_metrics",
                Each(&All(&[("metric", Text(1)), ("target", Filled), ("measurement", Text(1))])),
            ),
        ]),
        "give `primary`, `secondary` and `success_metrics`, each of these with `metric`, `target` and `measurement`",
    ),
    ask(
        10,
        "users",
        All(&[("primary", Each(&USER)), ("secondary", List(0))]),
        "give `primary` users with `role`, `description` and `needs`, and `secondary` ones",
    ),
    ask(
        20,
        "user_stories",
        Each(&All(&[
            ("id", Text(1)),
            ("role", Text(1)),
            ("want", Text(1)),
            ("benefit", Text(1)),
            ("priority", Filled),
        ])),
        "give each story `id`, `role`, `want`, `benefit` and `priority`",
    ),
    ask(5, "user_stories", Ids(Story), "give each story an id of its own, such as `US-001`"),
    ask(
        10,
        "user_stories",
        Each(&All(&[("acceptance_criteria", List(1))])),
        "give each story at least 1 of `acceptance_criteria`",
    ),
    ask(
        10,
        "scope",
        All(&[("in", List(1)), ("out", List(1)), ("dependencies", List(0))]),
        "say what is `in`, what is `out`, and its `dependencies`",
    ),
    ask(3, "assumptions", List(1), "list at least 1 assumption"),
    ask(
        5,
        "constraints",
        All(&[("technical", List(1)), ("business", List(0))]),
        "list `technical` and `business` constraints",
    ),
    ask(
        5,
        "risks",
        Each(&All(&[("description", Text(1)), ("impact", Filled), ("mitigation", Text(1))])),
        "give each risk `description`, `impact` and `mitigation`",
    ),
    ask(2, "open_questions", List(0), "list open questions, or give an empty list"),
];

const REQUIREMENTS: &[Criterion] = &[
    ask(5, "feature_name", Text(1), "name the feature"),
    ask(
        20,
        "requirements",
        Each(&All(&[
            ("id", Text(1)),
            ("title", Text(1)),
            ("type", Text(1)),
            ("priority", Filled),
            ("text", Text(1)),
        ])),
        "give each requirement `id`, `title`, `type`, `priority` and `text`",
    ),
    ask(
        20,
        "requirements",
        Each(&All(&[("text", Special(special::obliges))])),
        "say SHALL, MUST, SHOULD or MAY in each `text`",
    ),
    ask(
        15,
        "requirements",
        Each(&All(&[("text", Special(special::has_trigger))])),
        "say WHEN, WHILE, WHERE or IF in each `text`; one that holds always counts half",
    ),
    ask(
        20,
        "requirements",
        Each(&All(&[("acceptance_criteria", List(2))])),
        "give each requirement at least 2 of `acceptance_criteria`",
    ),
    ask(5, "requirements", Ids(Requirement), "give each an id of its own, such as `REQ-EXPORT-API-001`"),
    ask(5, "assumptions", List(1), "list at least 1 assumption"),
    ask(5, "out_of_scope", List(1), "list at least 1 thing that is out of scope"),
    ask(5, "traceability", Map(1), "say where the requirements come from"),
];

const DESIGN: &[Criterion] = &[
    ask(15, "architecture_overview", Text(100), "say how it is built, in at least 100 characters"),
    ask(
        20,
        "components",
        Each(&All(&[
            ("name", Text(1)),
            ("type", Text(1)),
            ("responsibility", Text(1)),
            ("interfaces", List(0)),
        ])),
        "give each component `name`, `type`, `responsibility` and `interfaces`",
    ),
    ask(
        15,
        "data_models",
        AtLeast(WITHOUT, &Each(&All(&[("name", Text(1)), ("fields", Filled)]))),
        "give each data model `name` and `fields`; without any, 30% of this",
    ),
    ask(
        15,
        "api_endpoints",
        AtLeast(WITHOUT, &Each(&All(&[("method", Text(1)), ("path", Text(1)), ("description", Text(1))]))),
        "give each endpoint `method`, `path` and `description`; without any, 30% of this",
    ),
    ask(
        10,
        "testing_strategy",
        All(&[("unit_tests", List(1)), ("integration_tests", List(1))]),
        "list `unit_tests` and `integration_tests`",
    ),
    ask(8, "error_handling", Filled, "say what can fail, and what happens then"),
    ask(7, "security_considerations", List(1), "list at least 1 security consideration"),
    ask(5, "feature_name", Text(1), "name the feature"),
    ask(5, "integration_points", List(1), "list at least 1 place where it meets existing code"),
];

const TASKS: &[Criterion] = &[
    ask(
        12,
        "tickets",
        Both(&[
            Each(&All(&[
                ("id", Text(1)),
                ("title", Text(1)),
                ("description", Text(1)),
                ("priority", Filled),
            ])),
            Ids(Ticket),
        ]),
        "give each ticket an `id` of its own, such as `TKT-001`, and `title`, `description` and `priority`",
    ),
    ask(
        15,
        "tasks",
        Each(&All(&[
            ("id", Text(1)),
            ("title", Text(1)),
            ("description", Text(1)),
            ("type", Text(1)),
            ("priority", Filled),
            ("requirements_addressed", List(1)),
            ("acceptance_criteria", List(1)),
        ])),
        "give each task `id`, `title`, `description`, `type`, `priority`, `requirements_addressed` and `acceptance_criteria`",
    ),
    ask(
        12,
        "tasks",
        Each(&All(&[("estimated_hours", Hours(100, 400))])),
        "cut the work so that each task's `estimated_hours` are from 1 to 4",
    ),
    ask(
        15,
        "tasks",
        Special(special::no_cycles),
        "give each task an `id` and `dependencies`, so that none wait for each other",
    ),
    ask(
        12,
        "tasks",
        Each(&All(&[("parent_ticket", Special(special::known_ticket))])),
        "name each task's ticket in `parent_ticket`",
    ),
    ask(
        8,
        "tasks",
        Each(&Any(&["files_to_create", "files_to_modify"])),
        "list the files of each task in `files_to_create` or `files_to_modify`",
    ),
    ask(8, "tasks", Special(special::known_dependencies), "name only tasks of the list in `dependencies`"),
    ask(5, "tasks", Ids(Task), "give each task an id of its own, such as `TSK-001`"),
    ask(
        5,
        "critical_path",
        Special(special::critical_path),
        "list the ids of the tasks that decide how long it takes",
    ),
    ask(5, "total_estimated_hours", Special(special::total_hours), "give the sum of the tasks' hours"),
    ask(3, "feature_name", Text(1), "name the feature"),
];

const SYNC: &[Criterion] = &[
    ask(
        20,
        "validation_results",
        All(&[
            ("all_requirements_covered", True),
            ("all_design_components_have_tasks", True),
            ("dependency_order_valid", True),
            ("no_circular_dependencies", True),
        ]),
        "check `all_requirements_covered`, `all_design_components_have_tasks`, `dependency_order_valid` and `no_circular_dependencies`",
    ),
    ask(
        15,
        "coverage_matrix",
        Special(special::coverage),
        "give a row for each requirement, with `requirement_id` and `covered_by_tasks`",
    ),
    ask(
        15,
        "traceability_stats",
        All(&[("requirements", Map(1)), ("tickets", Map(1)), ("tasks", Map(1)), ("dependencies", Map(1))]),
        "count `requirements`, `tickets`, `tasks` and `dependencies`, each an object",
    ),
    ask(
        15,
        "spec_summary",
        Special(special::totals),
        "give `total_requirements`, `total_tickets`, `total_tasks` and `total_estimated_hours`, as the phases before have them",
    ),
    ask(15, "ready_for_execution", True, "say whether the tasks can be done as they are"),
    ask(
        10,
        "dependency_analysis",
        All(&[("task_dependency_graph", Map(1)), ("critical_path", List(1))]),
        "give `task_dependency_graph` and `critical_path`",
    ),
    ask(
        5,
        "blockers",
        Special(special::blockers),
        "list what keeps the tasks from being done; a list that is not empty counts half",
    ),
    ask(5, "recommendations", List(0), "list what whoever does the tasks should know, or give an empty list"),
];
