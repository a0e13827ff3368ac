//! Who sees a spec, and what of it.

use super::*;

#[tokio::test]
async fn a_spec_is_its_owners() {
    let settings = r#"{"service": {"visibility": "own"}}"#.to_owned();
    let place = Place::with(Setup { settings, ..Setup::default() }).await;
    let id = waiting(&place).await;
    let other = place.key("other", &[Scope::Read, Scope::Run]).await;
    let other = other.key.reveal();
    for rest in ["", "/phase-data", "/execution-status", "/versions", "/runs", "/events", "/tasks", "/export"]
    {
        for key in [other, place.read.as_str()] {
            assert_eq!(place.get(&path(&id, rest), key).await.refusal(), (404, "SPEC_NOT_FOUND"), "{rest}");
        }
        assert_eq!(place.get(&path(&id, rest), &place.run).await.status, 200, "{rest}");
        assert_eq!(place.get(&path(&id, rest), &place.system).await.status, 200, "{rest}");
    }
    for (verb, body) in [("/execute", json!({})), ("/approve", json!({})), ("/cancel", json!({}))] {
        let refused = place.post(&path(&id, verb), other, &body).await;
        assert_eq!(refused.refusal(), (404, "SPEC_NOT_FOUND"), "{verb}");
        assert_eq!(place.post(&path(&id, verb), &place.read, &body).await.refusal(), (403, "MISSING_SCOPE"));
    }
    assert_eq!(place.get("/api/v1/specs", other).await.body["specs"], json!([]));
    assert_eq!(place.get("/api/v1/specs", &place.system).await.body["specs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn who_may_see_a_spec_of_others_may_not_touch_it() {
    let place = Place::start().await;
    let id = waiting(&place).await;
    let other = place.key("other", &[Scope::Read, Scope::Run]).await;
    let other = other.key.reveal();
    assert_eq!(place.get(&path(&id, ""), other).await.status, 200);
    for (verb, body) in [("/execute", json!({})), ("/approve", json!({})), ("/cancel", json!({}))] {
        assert_eq!(
            place.post(&path(&id, verb), other, &body).await.refusal(),
            (403, "NOT_ALLOWED"),
            "{verb}"
        );
    }
    let edit = json!({ "title": "mine" });
    assert_eq!(place.patch(&path(&id, ""), other, &edit).await.refusal(), (403, "NOT_ALLOWED"));
}

#[tokio::test]
async fn the_export_is_a_page_of_what_passed() {
    let place = Place::start().await;
    let id = waiting(&place).await;
    let export = place.get(&path(&id, "/export"), &place.read).await;
    assert_eq!(export.headers["content-type"], "text/markdown; charset=utf-8");
    let page = export.body.as_str().unwrap();
    assert!(page.starts_with("# Accept coupons\n") && page.contains("One coupon at the till."), "{page}");
    assert_eq!(page.matches("\n## ").count(), 1, "one phase has passed: {page}");
}

#[tokio::test]
async fn the_events_of_a_spec_are_those_of_its_runs_one_after_the_other() {
    let place = Place::start().await;
    let id = waiting(&place).await;
    let first = run_of(&place.get(&path(&id, ""), &place.read).await);
    let approved = place.post(&path(&id, "/approve"), &place.run, &json!({})).await;
    let second = run_of(&approved);
    let client = place.client(&place.read);
    let spec: SpecId = id.parse().unwrap();
    // Page by page.
    let mut query = SpecEventsQuery { after: None, limit: Some(2) };
    let mut read = Vec::new();
    loop {
        let page = client.spec_events(&spec, &query).await.unwrap();
        assert!(!page.ended, "a run is under way");
        if page.events.is_empty() {
            break;
        }
        read.extend(page.events.iter().map(|told| (told.run_id.clone(), told.event.seq)));
        query.after = page.next_after;
    }
    assert!(read.len() > 3 && read.is_sorted_by_key(|(run, seq)| (*run != first, *seq)), "{read:?}");
    assert_eq!((&read[0], &read.last().unwrap().0), (&(first.clone(), 1), &second));
    // As a stream, while the second run goes on.
    let mut stream = client.stream_spec(&spec, None);
    let mut streamed = Vec::new();
    while streamed.len() < read.len() {
        let SpecNext::Event(told) = stream.next().await.unwrap() else { panic!("a run is under way") };
        streamed.push((told.run_id.clone(), told.event.seq));
    }
    assert_eq!(streamed, read);
    let claimed = place.claim(&second).await;
    pass(&place, &claimed, Phase::Requirements).await;
    place.finish(&claimed, &Outcome::Cancelled, None).await;
    let end = loop {
        match stream.next().await.unwrap() {
            SpecNext::Event(told) => assert_eq!(told.run_id, second),
            SpecNext::End(end) => break end,
        }
    };
    assert_eq!(end, SpecEnd { spec_id: spec.clone(), status: SpecStatus::Cancelled });
    // From a place on.
    let mut stream = client.stream_spec(&spec, Some(format!("{second}.1")));
    let SpecNext::Event(told) = stream.next().await.unwrap() else { panic!("there are more events") };
    assert_eq!((told.run_id, told.event.seq), (second, 2));
    let ended = client.spec_events(&spec, &SpecEventsQuery::default()).await.unwrap();
    assert!(ended.ended);
    let bad = place.get(&path(&id, "/events?after=7"), &place.read).await;
    assert_eq!(bad.refusal(), (400, "INVALID_REQUEST"));
}

#[tokio::test]
async fn a_place_in_another_run_shows_nothing_of_it() {
    let settings = r#"{"service": {"visibility": "own"}}"#.to_owned();
    let place = Place::with(Setup { settings, ..Setup::default() }).await;
    let other = place.key("other", &[Scope::Read, Scope::Run]).await;
    let own = spec_of(&place, other.key.reveal()).await;
    let foreign = run_of(&{
        let id = waiting(&place).await;
        place.get(&path(&id, ""), &place.run).await
    });
    let client = place.client(other.key.reveal());
    let spec: SpecId = own.parse().unwrap();
    let after = Some(format!("{foreign}.0"));
    let page =
        client.spec_events(&spec, &SpecEventsQuery { after: after.clone(), limit: None }).await.unwrap();
    assert_eq!(page.events, []);
    let told = client.stream_spec(&spec, after).next().await.unwrap();
    assert_eq!(told, SpecNext::End(SpecEnd { spec_id: spec, status: SpecStatus::Draft }));
}
