//! What is the operator's, over HTTP: keys, hosts of live runs, removal, settings, trust.

use cofferdam_core::{Outcome, Scope};
use serde_json::{Value, json};

use crate::fixture::{Place, Setup};

#[tokio::test]
async fn a_key_is_shown_once_listed_without_itself_and_opens_nothing_once_it_is_revoked() {
    let place = Place::start().await;
    let body = json!({ "name": "ci", "scopes": ["read"], "owner": "builds" });
    let made = place.post("/api/v1/keys", &place.system, &body).await;
    assert_eq!((made.status, made.headers["cache-control"].to_str().unwrap()), (201, "no-store"));
    let (id, key) = (made.body["id"].as_str().unwrap(), made.body["key"].as_str().unwrap());
    assert_eq!((&made.body["owner"], &made.body["scopes"]), (&json!("builds"), &json!(["read"])));
    assert_eq!(place.get("/api/v1/runs", key).await.status, 200);

    let listed = place.get("/api/v1/keys", &place.system).await;
    let listed: &Vec<Value> = listed.body["keys"].as_array().unwrap();
    let ours = listed.iter().find(|key| key["id"] == id).unwrap();
    assert_eq!((&ours["name"], &ours["revoked_at_ms"]), (&json!("ci"), &Value::Null));
    assert!(!json!(listed).to_string().contains("cof_"), "{listed:?}");

    let path = format!("/api/v1/keys/{id}");
    assert_eq!(made.headers["location"].to_str().unwrap(), path);
    assert_eq!(place.delete(&path, &place.run).await.refusal(), (403, "MISSING_SCOPE"));
    assert_eq!(place.delete(&path, &place.system).await.status, 204);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while place.get("/api/v1/runs", key).await.status != 401 {
        assert!(std::time::Instant::now() < deadline, "it opens something a long time after it was revoked");
        tokio::task::yield_now().await;
    }
    let nobody = "/api/v1/keys/key_00000000000000000000000000";
    assert_eq!(place.delete(nobody, &place.system).await.refusal(), (404, "KEY_NOT_FOUND"));
}

#[tokio::test]
async fn a_key_that_cannot_be_is_refused_with_what_to_send() {
    let place = Place::start().await;
    for (body, field) in [
        (json!({ "name": "" }), "name"),
        (json!({ "name": " ci" }), "name"),
        (json!({ "name": "ci", "scopes": [] }), "scopes"),
        (json!({ "name": "ci", "scopes": ["admin"] }), "scopes[0]"),
        (json!({ "name": "ci", "owner": "system" }), "owner"),
    ] {
        let refused = place.post("/api/v1/keys", &place.system, &body).await;
        assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"), "{body}");
        assert_eq!(refused.body["details"]["field"], field, "{}", refused.body);
    }
}

#[tokio::test]
async fn a_live_sealed_run_is_allowed_more_by_a_set_of_the_services_settings() {
    let settings = r#"{"egress": {"sets": {"mine": ["a.example:443", "b.example:443"]}}}"#;
    let place = Place::with(Setup { settings: settings.to_owned(), ..Setup::default() }).await;
    let run = |network: &str| json!({ "command": ["true"], "options": { "network": network } });
    let sealed = place.post("/api/v1/runs", &place.run, &run("sealed")).await.body["id"].clone();
    let path = format!("/api/v1/runs/{}/allow", sealed.as_str().unwrap());
    let allow = |what: &str| json!({ "allow": [what] });

    assert_eq!(place.post(&path, &place.run, &allow("mine")).await.refusal(), (403, "MISSING_SCOPE"));
    let added = place.post(&path, &place.system, &allow("mine")).await;
    assert_eq!(added.body["added"], json!(["a.example:443", "b.example:443"]), "{}", added.body);
    let again =
        place.post(&path, &place.system, &json!({ "allow": ["a.example:443", "c.example:443"] })).await;
    assert_eq!(again.body["added"], json!(["c.example:443"]));

    for body in [allow("theirs"), json!({ "allow": [] })] {
        let refused = place.post(&path, &place.system, &body).await;
        assert_eq!(refused.refusal(), (400, "INVALID_REQUEST"));
        assert_eq!(refused.body["details"]["field"], "allow");
    }
    let closed = place.post("/api/v1/runs", &place.run, &run("none")).await.body["id"].clone();
    let path_of_closed = format!("/api/v1/runs/{}/allow", closed.as_str().unwrap());
    let refused = place.post(&path_of_closed, &place.system, &allow("mine")).await;
    assert_eq!(refused.refusal(), (409, "RUN_NOT_SEALED"));
    place.post(&path.replace("/allow", "/cancel"), &place.run, &json!({})).await;
    assert_eq!(place.post(&path, &place.system, &allow("mine")).await.refusal(), (409, "RUN_ENDED"));
}

#[tokio::test]
async fn an_owner_removes_its_ended_run_with_its_files_and_nobody_elses() {
    let place = Place::start().await;
    let run = place.queued().await;
    let path = format!("/api/v1/runs/{run}");
    assert_eq!(place.delete(&path, &place.run).await.refusal(), (409, "RUN_NOT_ENDED"));
    let claimed = place.claim(&run).await;
    place.finish(&claimed, &Outcome::Succeeded, Some("diff")).await;
    let folder = place.folder.path().join("runs").join(run.as_str());
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("copy"), "of an object").unwrap();

    let other = place.key("other", &[Scope::Read, Scope::Run]).await;
    assert_eq!(place.delete(&path, other.key.reveal()).await.refusal(), (403, "NOT_ALLOWED"));
    assert_eq!(place.delete(&path, &place.run).await.status, 204);
    let left: Vec<_> = std::fs::read_dir(place.folder.path().join("runs")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(place.get(&path, &place.system).await.status, 404);
    assert_eq!(place.delete(&path, &place.run).await.status, 404);
    let audit = place.get("/api/v1/audit", &place.system).await;
    assert!(audit.body.to_string().contains("run.remove"), "{}", audit.body);
}

#[tokio::test]
async fn settings_are_shown_with_their_origin_and_without_their_passwords() {
    let settings =
        r#"{"sandbox": {"mode": "docker"}, "store": {"url": "postgres://me:hunter2@db.example/c"}}"#;
    let place = Place::with(Setup { settings: settings.to_owned(), ..Setup::default() }).await;
    let shown = place.get("/system/settings", &place.system).await;
    assert!(!shown.body.to_string().contains("hunter2"), "{}", shown.body);
    assert_eq!(shown.body["settings"]["sandbox"]["mode"], "docker");
    let value = |key: &str| {
        let values = shown.body["values"].as_array().unwrap();
        values.iter().find(|value| value["key"] == key).unwrap().clone()
    };
    assert_eq!(value("sandbox.mode")["origin"], json!({ "kind": "global", "path": "/g", "shown": "/g" }));
    assert_eq!(value("service.listen")["origin"]["kind"], "default");
}

#[tokio::test]
async fn settings_are_those_of_the_moment_also_where_an_operator_has_changed_them() {
    let place = Place::start().await;
    let change = json!({ "updates": { "sandbox.max_attempts": "3" } });
    assert_eq!(place.patch("/config", &place.system, &change).await.status, 200);
    let shown = place.get("/system/settings", &place.system).await.body;
    assert_eq!(shown["settings"]["sandbox"]["max_attempts"], 3, "{shown:#}");
    let values = shown["values"].as_array().unwrap();
    let attempts = values.iter().find(|value| value["key"] == "sandbox.max_attempts").unwrap();
    let origin = &attempts["origin"];
    assert_eq!((&origin["kind"], &origin["key"]), (&json!("system_config"), &json!("sandbox.max_attempts")));
}

#[tokio::test]
async fn what_is_trusted_is_listed_with_its_state() {
    let place = Place::start().await;
    let listed = place.client(&place.system).trust().await.unwrap();
    assert_eq!((listed.files.len(), listed.files[0].state.as_str()), (1, "changed"));
}

#[tokio::test]
async fn a_run_key_has_the_services_that_the_operator_lists_and_is_told_what_to_ask_for() {
    let settings = r#"{"service": {"allowed_forwards": ["db"]}, "sandbox": {"forwards": {
        "db": {"port": 5432, "target": "127.0.0.1:5432"}, "queue": {"port": 5672, "target": "127.0.0.1:5672"}}}}"#;
    let place = Place::with(Setup { settings: settings.to_owned(), ..Setup::default() }).await;
    let with = |name: &str| json!({ "command": ["true"], "options": { "forward": [name] } });
    let accepted = place.post("/api/v1/runs", &place.run, &with("db")).await;
    let forwards = &accepted.body["request"]["policy"]["egress"]["forwards"];
    assert_eq!(forwards, &json!([{ "port": 5432, "target": "127.0.0.1:5432" }]), "{}", accepted.body);
    let refused = place.post("/api/v1/runs", &place.run, &with("queue")).await;
    assert_eq!(refused.refusal(), (403, "NOT_ALLOWED"));
    assert_eq!(refused.body["details"]["field"], "options.forward");
    let hint = refused.body["details"]["hint"].as_str().unwrap();
    assert!(hint.contains("`service.allowed_forwards`"), "{hint}");
    assert_eq!(place.post("/api/v1/runs", &place.system, &with("queue")).await.status, 202);
    let unknown = place.post("/api/v1/runs", &place.run, &with("nothing")).await;
    assert_eq!(unknown.refusal(), (409, "CONFLICTING_OPTIONS"));
}
