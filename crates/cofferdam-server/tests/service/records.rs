//! Projects, agents, nodes, dead letters, health and numbers.

use cofferdam_api::{CreateProjectRequest, DeadLettersQuery, HealthStatus};
use cofferdam_core::{DeadLetter, ErrorClass, FailureClass, Mode, NodeId, Outcome, PlaceId, Role};
use cofferdam_store::{Left, ModeReport, NodeHealth, NodeRecord, NodeReport};
use serde_json::json;

use crate::fixture::{Place, Setup, repository};

#[tokio::test]
async fn a_project_is_registered_once_and_brings_its_repository() {
    let folder = tempfile::tempdir().unwrap();
    let path = repository(folder.path(), "repo");
    let place = Place::start().await;
    let client = place.client(&place.system);
    let project = |name: &str, repo: &str| CreateProjectRequest {
        name: name.to_owned(),
        repo: repo.to_owned(),
        reference: None,
        max_concurrency: Some(2),
    };
    let web = client.create_project(&project("web", "https://github.com/acme/web")).await.unwrap();
    let local = client.create_project(&project("local", path.to_str().unwrap())).await.unwrap();
    let twice = client.create_project(&project("web", "acme/other")).await.unwrap_err();
    assert_eq!(twice.code(), Some(cofferdam_api::ErrorCode::ProjectExists));
    assert_eq!(client.projects().await.unwrap().projects.len(), 2);
    assert_eq!(client.project("web").await.unwrap(), web);
    assert_eq!(client.project(web.id.as_str()).await.unwrap(), web);

    let by_project = |name: &str| json!({ "command": ["true"], "project_id": name });
    let run = place.post("/api/v1/runs", &place.run, &by_project("web")).await;
    assert_eq!(run.body["request"]["source"]["url"], "https://github.com/acme/web");
    assert_eq!(run.body["request"]["placement"]["project"], web.id.as_str());
    let here = place.post("/api/v1/runs", &place.run, &by_project("local")).await;
    assert_eq!(here.status, 202, "whoever registered the path was allowed to: {}", here.body);
    assert_eq!(here.body["request"]["placement"]["place"], PlaceId::new(1, 1).as_str());
    let listed = place.get(&format!("/api/v1/runs?project_id={}", local.id), &place.read).await;
    assert_eq!(listed.body["runs"].as_array().unwrap().len(), 1);

    client.remove_project("web").await.unwrap();
    assert_eq!(place.get("/api/v1/projects/web", &place.read).await.refusal(), (404, "PROJECT_NOT_FOUND"));
    let closed = place.post("/api/v1/projects", &place.run, &json!({ "name": "x", "repo": "/etc" })).await;
    assert_eq!(closed.refusal(), (403, "MISSING_SCOPE"), "projects are the operator's");
    for bad in [
        json!({ "name": "a b", "repo": "a/b" }),
        json!({ "name": "x" }),
        json!({ "name": "x", "repo": "a/b", "max_concurrency": 0 }),
    ] {
        assert_eq!(
            place.post("/api/v1/projects", &place.system, &bad).await.refusal(),
            (400, "INVALID_REQUEST"),
            "{bad}"
        );
    }
}

#[tokio::test]
async fn a_dead_letter_is_listed_shown_replayed_and_forgotten() {
    let place = Place::start().await;
    let client = place.client(&place.run);
    let run = place.queued().await;
    let claimed = place.claim(&run).await;
    let letter = DeadLetter {
        failed_at: cofferdam_core::iso_time(0),
        error_class: ErrorClass::Config,
        error_message: "no agent".to_owned(),
        attempt: 1,
        max_attempts: 1,
        payload: json!({}),
    };
    let outcome = Outcome::failed(FailureClass::AgentMissing, "no agent");
    let left = Left { letter: Some(letter.clone()), ..Left::default() };
    place.store.finish(&claimed.lease, &outcome, &left, 9).await.unwrap();
    assert_eq!(client.dead_letters(&DeadLettersQuery::default()).await.unwrap().dead_letters.len(), 1);
    let path = "/api/v1/dead-letters?limit=1";
    let page = place.get(path, &place.read).await;
    let cursor =
        page.body["next_cursor"].as_str().expect("a page that is full may have a next one").to_owned();
    assert_eq!(
        place.get(&format!("{path}&cursor={cursor}"), &place.read).await.body["dead_letters"],
        json!([])
    );
    for bad in ["limit=0", "limit=501", "cursor=x"] {
        let refused = place.get(&format!("/api/v1/dead-letters?{bad}"), &place.read).await;
        assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"), "{bad}");
    }
    assert_eq!(client.dead_letter(&run).await.unwrap().letter, letter);
    let replay = client.replay(&run).await.unwrap();
    assert_eq!(replay.request.replay_of.as_ref(), Some(&run));
    assert_eq!(client.dead_letter(&run).await.unwrap().replayed_by, Some(replay.id));
    client.remove_dead_letter(&run).await.unwrap();
    let gone = place.get(&format!("/api/v1/dead-letters/{run}"), &place.read).await;
    assert_eq!(gone.refusal(), (404, "DEAD_LETTER_NOT_FOUND"));
    assert_eq!(place.delete(&format!("/api/v1/dead-letters/{run}"), &place.run).await.status, 404);
}

fn node(missing: Option<&str>) -> NodeRecord {
    NodeRecord {
        id: NodeId::new(1, 5),
        place: PlaceId::new(1, 1),
        started_at_ms: 1,
        seen_at_ms: u64::MAX >> 2,
        report: NodeReport {
            name: "main".to_owned(),
            host: "builder".to_owned(),
            version: "0.1.0".to_owned(),
            roles: vec![Role::Worker],
            capacity: 4,
            running: 1,
            health: NodeHealth::Ready,
            modes: vec![ModeReport { mode: Mode::Native, missing: missing.map(str::to_owned) }],
        },
    }
}

#[tokio::test]
async fn health_is_what_the_nodes_and_the_record_make_of_it() {
    let place = Place::start().await;
    let client = place.client(&place.read);
    let first = client.health().await.unwrap();
    assert_eq!((first.status, first.service.as_str()), (HealthStatus::Degraded, "cofferdam"));
    assert!(first.reasons[0].contains("no node"), "{first:?}");
    place.store.report_node(&node(None)).await.unwrap();
    while client.health().await.unwrap().status != HealthStatus::Healthy {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(client.nodes().await.unwrap().nodes[0].name, "main");
    place.store.report_node(&node(Some("no user namespaces"))).await.unwrap();
    let degraded = loop {
        let health = client.health().await.unwrap();
        if health.status == HealthStatus::Degraded {
            break health;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert!(degraded.reasons[0].contains("no user namespaces"), "{degraded:?}");
    assert_eq!(place.get("/health/ready", "").await.status, 200, "new work is taken all the same");
}

#[tokio::test]
async fn numbers_are_those_of_the_routes_and_never_of_what_callers_make_up() {
    let place = Place::start().await;
    let run = place.queued().await;
    place.get(&format!("/api/v1/runs/{run}"), &place.read).await;
    place.get("/made/up", &place.read).await;
    let text = place.get("/metrics", &place.read).await.body.as_str().unwrap().to_owned();
    assert!(text.contains("cofferdam_store_up 1"), "{text}");
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the disk can be looked at");
        line.trim().parse::<u64>().expect("a number of bytes")
    };
    let (free, size) = (bytes("cofferdam_disk_free_bytes "), bytes("cofferdam_disk_size_bytes "));
    assert!(size > 0 && free <= size, "{free} of {size}");
    assert!(text.contains(r#"route="/api/v1/runs/{id}",method="GET",status="200""#), "{text}");
    assert!(!text.contains("made/up") && !text.contains(run.as_str()), "{text}");
}

#[tokio::test]
async fn agents_are_those_of_the_settings_and_the_clis() {
    let settings = r#"{"agents": {"coder": {"provider": "anthropic", "model": "opus"}}}"#.to_owned();
    let place = Place::with(Setup { settings, ..Setup::default() }).await;
    let agents = place.client(&place.read).agents().await.unwrap().agents;
    assert_eq!(
        (agents[0].name.as_str(), agents[0].model.as_deref(), agents.len()),
        ("coder", Some("opus"), 4)
    );
}
