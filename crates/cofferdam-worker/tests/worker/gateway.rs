//! What the agent is told of the gateway.

use std::net::TcpListener;

use cofferdam_core::{AgentEnd, Gateway, Login, Vendor};

use crate::support::{Worker, job, job_of_script};

/// A gateway at a port that nobody has: these tests share the machine's loopback.
fn gateway() -> (Gateway, u16) {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.expect("a free port").port();
    let gateway = Gateway {
        folder: "/run/cofferdam/egress".to_owned(),
        port: Some(port),
        forwards: Vec::new(),
        placeholder: "placeholder".to_owned(),
        proxy: true,
        vendor: Some(Vendor::Anthropic),
        login: Login::Key,
        repository: Some("https://example.com/a/b.git".to_owned()),
    };
    (gateway, port)
}

#[test]
fn any_program_finds_the_proxy_and_git_finds_the_repository() {
    let script = "echo $https_proxy; git ls-remote --get-url https://example.com/a/b.git";
    let mut job = job(&["bash", "-c", script]);
    let (gateway, port) = gateway();
    job.gateway = Some(gateway);
    let mut worker = Worker::running_job(job);
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    let url = format!("http://127.0.0.1:{port}");
    let expected = [url.clone(), format!("{url}/git/example.com/a/b.git")];
    assert_eq!(worker.texts("agent.message"), expected);
}

#[test]
fn a_coding_agent_finds_its_model_there_and_a_placeholder_for_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let script = "read -r task; begin; over \"$ANTHROPIC_BASE_URL $ANTHROPIC_API_KEY $FROM_JOB\"";
    let mut job = job_of_script(folder.path(), script);
    let (gateway, port) = gateway();
    job.gateway = Some(gateway);
    let mut worker = Worker::running_job(job);
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    let report = &worker.data("worker.exited")[0]["report"];
    assert_eq!(report["message"], format!("http://127.0.0.1:{port}/model/anthropic placeholder yes"));
}
