use cofferdam_core::{Agent, Credential, TroubleKind};
use http::StatusCode;
use serde_json::{Value, json};

use super::rig::{Fake, MESSAGES, RESPONSES, Rig, Setup, answered, message};
use crate::body::full;

async fn at_chatgpt() -> (Fake, Rig) {
    let fake = Fake::start(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    setup.base_url = Some(format!("{}/backend-api/codex", fake.base_url));
    setup.credential =
        Credential::ChatGpt { token: "login-token".to_owned(), account: Some("the-account".to_owned()) };
    setup.grant.budget.max_tokens = Some(1_000_000);
    let rig = setup.open().await;
    (fake, rig)
}

fn responses() -> Value {
    json!({"model": "gpt-5", "input": [{"role": "user", "content": "hi"}], "stream": true})
}

#[tokio::test]
async fn a_login_at_chatgpt_has_its_account_its_own_paths_and_no_limit_for_an_answer() {
    let (fake, rig) = at_chatgpt().await;
    let request = rig
        .request("POST", RESPONSES)
        .header("authorization", "Bearer placeholder")
        .header("chatgpt-account-id", "another-account")
        .header("openai-organization", "o")
        .header("originator", "codex_exec")
        .header("x-openai-internal-codex-responses-lite", "true")
        .body(full(responses().to_string()))
        .unwrap();
    assert_eq!(rig.send(request).await.status(), StatusCode::OK);
    let seen = &fake.seen()[0];
    assert_eq!(seen.path, "/backend-api/codex/responses");
    assert_eq!(seen.headers["authorization"], "Bearer login-token");
    assert_eq!(seen.headers["chatgpt-account-id"], "the-account");
    assert_eq!(seen.headers["originator"], "codex_exec");
    assert_eq!(seen.headers["x-openai-internal-codex-responses-lite"], "true");
    assert!(!seen.headers.contains_key("openai-organization"));
    assert_eq!(seen.body.get("max_output_tokens"), None, "ChatGPT rejects a request with a limit");
}

#[tokio::test]
async fn codex_may_ask_which_models_a_login_has_and_nothing_else() {
    let (fake, rig) = at_chatgpt().await;
    let ask = async |query: &str| {
        let path = format!("/model/openai/v1/models{query}");
        let request = rig.request("GET", &path).body(full("")).unwrap();
        rig.send(request).await.status()
    };
    ask("?client_version=0.166.0").await;
    assert_eq!(fake.seen()[0].path, "/backend-api/codex/models?client_version=0.166.0");
    for query in ["?client_version=", "?client_version=1&x=2", "?client_version=%31", "?beta=true", "?x=1"] {
        assert_eq!(ask(query).await, StatusCode::FORBIDDEN, "{query}");
    }
    assert_eq!(fake.seen().len(), 1);
}

#[tokio::test]
async fn a_login_that_opens_nothing_is_written_down_as_the_trouble_of_the_call() {
    let fake = Fake::start(|_| answered()).await;
    let mut setup = Setup::at(&fake);
    setup.grant.agent = Some(Agent::OpenCode);
    let rig = setup.open().await;
    let (status, body) = rig.post(MESSAGES, &message()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "no agent repeats it");
    assert!(body.to_string().contains("the login has expired"), "{body}");
    assert_eq!(fake.seen().len(), 0);
    let ended = rig.ledger.ended.lock().unwrap();
    let trouble = ended[0].trouble.as_ref().expect("it is trouble");
    assert_eq!((trouble.kind, &*trouble.message), (TroubleKind::Auth, "the login has expired"));
    assert_eq!(ended[0].spent.tokens, 0);
}
