//! What a spec says, who edited it, and which of its runs stay on record.

use cofferdam_core::{
    Action, Outcome, OwnerName, Phase, PhaseState, Project, ProjectId, Source, SpecPlan, SpecStatus,
};
use cofferdam_store::{Error, Mandate, NewSpec, Retention, SpecEdit, SpecList, WrittenOutput};
use serde_json::json;

use crate::fixture::specs::{claimed, created, ends, executed, new_spec, passed, spec, spec_id, stretch};
use crate::fixture::{at, entries, mandate, request};
use crate::on_every_store;

fn by_ci(action: Action, now_ms: u64) -> Mandate {
    mandate("ci", action, "a spec", now_ms)
}

fn written(phase: Phase, passed: bool) -> SpecEdit {
    let (score, reasons) = if passed { (0.8, Vec::new()) } else { (0.4, vec!["it is short".to_owned()]) };
    let output = WrittenOutput { phase, output: json!({ "by": "a person" }), passed, score, reasons };
    SpecEdit { output: Some(output), ..SpecEdit::default() }
}

fn titled(title: &str) -> SpecEdit {
    SpecEdit { title: Some(title.to_owned()), ..SpecEdit::default() }
}

on_every_store! {
    async fn a_spec_is_kept_as_it_was_asked_for(fixture: Fixture) {
        let store = fixture.open().await;
        assert_eq!(store.spec(&spec_id(1)).await.unwrap(), None);
        let made = created(&store, 1).await;
        let new = new_spec(1);
        assert_eq!((&made.title, &made.description, &made.project), (&new.title, &new.description, &new.project));
        assert_eq!((made.owner.as_str(), made.version, made.revision), ("ci", 1, 1));
        assert_eq!((made.plan.clone(), made.is_archived, made.created_at_ms), (SpecPlan::default(), false, 1_000));
        assert_eq!((made.status(), made.last_run, made.phases.len()), (SpecStatus::Draft, None, 0));
        let versions = store.spec_versions(&spec_id(1), None, 9).await.unwrap();
        assert_eq!(versions.len(), 1);
        assert_eq!((versions[0].number, versions[0].title.as_str(), versions[0].at_ms), (1, "Dark mode", 1_000));
        assert_eq!(versions[0].actor, entries(&store).await[0].actor);
    }

    async fn a_spec_that_is_made_again_is_made_once(fixture: Fixture) {
        let store = fixture.open().await;
        let first = created(&store, 1).await;
        store.update_spec(&by_ci(Action::UpdateSpec, 1_100), &first.id, &titled("Night mode")).await.unwrap();
        let before = entries(&store).await;
        store.create_spec(&by_ci(Action::CreateSpec, 1_200), &new_spec(1)).await.unwrap();
        let others = mandate("other", Action::CreateSpec, "a spec", 1_200);
        let other_words = NewSpec { title: "Other".to_owned(), ..new_spec(1) };
        for (mandate, new) in [(others, new_spec(1)), (by_ci(Action::CreateSpec, 1_200), other_words)] {
            let refused = store.create_spec(&mandate, &new).await;
            assert!(matches!(refused, Err(Error::SpecExists { .. })), "{refused:?}");
        }
        assert_eq!(entries(&store).await, before);
        assert_eq!(spec(&store, 1).await.title, "Night mode");
    }

    async fn a_text_that_cannot_be_kept_is_refused(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        let new = NewSpec { title: "a\0b".to_owned(), ..new_spec(2) };
        let refused = store.create_spec(&at(1_000), &new).await;
        assert!(matches!(refused, Err(Error::Text { what: "title", .. })), "{refused:?}");
        let refused = store.update_spec(&at(1_000), &spec_id(1), &titled("a\0b")).await;
        assert!(matches!(refused, Err(Error::Text { what: "title", .. })), "{refused:?}");
    }

    async fn specs_are_listed_newest_first_and_page_by_page(fixture: Fixture) {
        let store = fixture.open().await;
        let name = |owner: &str| -> OwnerName { owner.parse().unwrap() };
        for number in 1..=6_u64 {
            let owner = if number % 2 == 0 { "even" } else { "odd" };
            let new = NewSpec { project: Some(ProjectId::new(1, (number / 4).into())), ..new_spec(number.into()) };
            store.create_spec(&mandate(owner, Action::CreateSpec, "", 1_000 + number / 4), &new).await.unwrap();
        }
        passed(&store, 1, 3, &[Phase::Explore, Phase::Design]).await;
        let mut list = SpecList { of: Some(name("odd")), limit: 2, ..SpecList::default() };
        let mut seen = Vec::new();
        loop {
            let page = store.specs(&list).await.unwrap();
            let Some(last) = page.last() else { break };
            list.before = Some((last.created_at_ms, last.id.clone()));
            seen.extend(page);
        }
        assert_eq!(seen.iter().map(|spec| spec.id.clone()).collect::<Vec<_>>(), [5, 3, 1].map(spec_id));
        assert_eq!(seen[1], spec(&store, 3).await, "each has its phases and its run");
        assert_eq!((seen[1].phases.len(), seen[0].phases.len()), (2, 0));
        let of_project = SpecList { project: Some(ProjectId::new(1, 1)), limit: 9, ..SpecList::default() };
        assert_eq!(store.specs(&of_project).await.unwrap().len(), 3);
        let nobodys = SpecList { of: Some(name("nobody")), limit: 9, ..SpecList::default() };
        assert_eq!(store.specs(&nobodys).await.unwrap(), []);
    }

    async fn a_spec_that_is_put_away_is_in_another_list(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        created(&store, 2).await;
        let away = SpecEdit { archived: Some(true), ..SpecEdit::default() };
        let put = store.update_spec(&by_ci(Action::UpdateSpec, 1_100), &spec_id(1), &away).await.unwrap();
        assert_eq!((put.is_archived, put.version, put.revision, put.updated_at_ms), (true, 1, 2, 1_100));
        let ids = async |archived| {
            let specs = store.specs(&SpecList { archived, limit: 9, ..SpecList::default() }).await.unwrap();
            specs.into_iter().map(|spec| spec.id).collect::<Vec<_>>()
        };
        assert_eq!((ids(false).await, ids(true).await), (vec![spec_id(2)], vec![spec_id(1)]));
    }

    async fn each_edit_of_a_text_or_an_output_is_a_version(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        let edits = [titled("Night mode"), written(Phase::Explore, true), SpecEdit {
            description: Some("Soon.".to_owned()),
            ..written(Phase::Design, false)
        }];
        for (edit, at_ms) in edits.iter().zip(1_101..) {
            store.update_spec(&by_ci(Action::UpdateSpec, at_ms), &spec_id(1), edit).await.unwrap();
        }
        let versions = store.spec_versions(&spec_id(1), None, 9).await.unwrap();
        let told: Vec<_> = versions
            .iter()
            .map(|one| (one.number, one.title.as_str(), one.description.as_str(), one.phase, one.at_ms))
            .collect();
        assert_eq!(told, [
            (4, "Night mode", "Soon.", Some(Phase::Design), 1_103),
            (3, "Night mode", "Add it.", Some(Phase::Explore), 1_102),
            (2, "Night mode", "Add it.", None, 1_101),
            (1, "Dark mode", "Add it.", None, 1_000),
        ]);
        assert_eq!(versions[1].output, Some(json!({ "by": "a person" })));
        let page = store.spec_versions(&spec_id(1), Some(4), 2).await.unwrap();
        assert_eq!(page, versions[1..3]);
        let now = spec(&store, 1).await;
        assert_eq!((now.version, now.revision), (4, 4));
        assert_eq!(store.check().await.unwrap().problems, []);
    }

    async fn what_a_person_writes_opens_what_comes_after(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        passed(&store, 1, 1, &[Phase::Explore, Phase::Design]).await;
        let write = async |at_ms, passed| {
            let edit = written(Phase::Explore, passed);
            store.update_spec(&by_ci(Action::UpdateSpec, at_ms), &spec_id(1), &edit).await.unwrap()
        };
        let now = write(3_000, true).await;
        assert_eq!(now, spec(&store, 1).await);
        let explore = now.phase(Phase::Explore).unwrap();
        assert_eq!((explore.state, explore.score, explore.run.as_ref()), (PhaseState::Passed, Some(0.8), None));
        let design = now.phase(Phase::Design).unwrap();
        assert_eq!((design.state, design.tries), (PhaseState::Open, 0));
        assert_eq!(design.output, Some(json!({ "of": "design", "try": 1 })), "it can still be read");
        let record = write(3_001, false).await.phases.remove(&Phase::Explore).unwrap();
        assert_eq!((record.state, record.reasons.as_slice()), (PhaseState::Open, &["it is short".to_owned()][..]));
    }

    async fn an_edit_that_changes_nothing_leaves_no_trace(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        let edit = SpecEdit { title: Some("Night mode".to_owned()), ..written(Phase::Explore, true) };
        let first = store.update_spec(&by_ci(Action::UpdateSpec, 1_100), &spec_id(1), &edit).await.unwrap();
        let before = entries(&store).await;
        let again = store.update_spec(&by_ci(Action::UpdateSpec, 1_200), &spec_id(1), &edit).await.unwrap();
        assert_eq!((again, entries(&store).await), (first, before));
        let nobodys = store.update_spec(&by_ci(Action::UpdateSpec, 1_200), &spec_id(9), &edit).await;
        assert!(matches!(nobodys, Err(Error::NoSuchSpec { .. })), "{nobodys:?}");
    }

    async fn a_spec_is_not_edited_while_a_run_works_on_it(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        executed(&store, 1, 1).await;
        let before = spec(&store, 1).await;
        let edit = async || store.update_spec(&by_ci(Action::UpdateSpec, 1_300), &spec_id(1), &titled("Other")).await;
        let queued = edit().await;
        assert!(matches!(&queued, Err(Error::SpecBusy { run, .. }) if *run == request(1).id), "{queued:?}");
        let claimed = claimed(&store, 1).await;
        assert!(matches!(edit().await, Err(Error::SpecBusy { .. })));
        assert_eq!(spec(&store, 1).await.revision, before.revision);
        ends(&store, &claimed, Outcome::Succeeded).await;
        assert_eq!(edit().await.unwrap().title, "Other");
    }

    async fn a_project_may_be_removed_while_a_spec_names_it(fixture: Fixture) {
        let store = fixture.open().await;
        let (id, name) = (ProjectId::new(1, 1), "shop".parse().unwrap());
        let project = Project { id: id.clone(), name, source: Source::Empty, max_concurrency: None };
        store.create_project(&at(1_000), &project).await.unwrap();
        created(&store, 1).await;
        assert!(store.remove_project(&at(1_100), &id).await.unwrap());
        assert_eq!(spec(&store, 1).await.project, Some(id));
    }

    async fn a_run_of_a_spec_is_accepted_with_the_spec_alone(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        passed(&store, 1, 1, &[Phase::Explore]).await;
        let again = cofferdam_core::RunRequest { replay_of: Some(request(1).id), ..stretch(2, 1) };
        let refused = store.enqueue(&at(3_000), &again, None).await;
        let is_refused = matches!(&refused, Err(Error::RunOfSpec { run, spec })
            if (run, spec) == (&request(1).id, &spec_id(1)));
        assert!(is_refused, "{refused:?}");
        assert!(matches!(store.run(&request(2).id).await, Err(Error::NotFound { .. })));
    }

    async fn the_last_run_of_a_spec_stays_on_record(fixture: Fixture) {
        let store = fixture.open().await;
        created(&store, 1).await;
        passed(&store, 1, 1, &[]).await;
        passed(&store, 2, 1, &[]).await;
        passed(&store, 3, 1, &[Phase::Explore]).await;
        let refused = store.remove_run(&at(3_000), &request(3).id).await;
        assert!(matches!(&refused, Err(Error::RunOfSpec { spec, .. }) if *spec == spec_id(1)), "{refused:?}");
        store.remove_run(&at(3_000), &request(1).id).await.unwrap();
        let retention = Retention { runs_before_ms: Some(9_000), ..Retention::default() };
        assert_eq!(store.expire(&retention).await.unwrap().runs, [request(2).id]);
        assert_eq!(store.expire(&retention).await.unwrap().runs, [], "one call after the other ends");
        let now = spec(&store, 1).await;
        assert_eq!(now.last_run.as_ref().map(|last| &last.run), Some(&request(3).id));
        assert_eq!(store.spec_request(&spec_id(1)).await.unwrap(), Some(stretch(3, 1)));
        assert_eq!(store.check().await.unwrap().problems, []);

        let away = SpecEdit { archived: Some(true), ..SpecEdit::default() };
        store.update_spec(&by_ci(Action::UpdateSpec, 4_000), &spec_id(1), &away).await.unwrap();
        assert_eq!(store.expire(&retention).await.unwrap().runs, [request(3).id]);
        let now = spec(&store, 1).await;
        assert_eq!((now.last_run, now.phases.len()), (None, 1), "what it brought stays");
        assert_eq!(store.spec_request(&spec_id(1)).await.unwrap(), None);
    }
}
