//! What the agent is told of the gateway.

use cofferdam_core::{AgentEnd, Gateway, Vendor};

use crate::support::{Worker, job, job_of_script};

fn gateway() -> Gateway {
    Gateway {
        folder: "/run/cofferdam/egress".to_owned(),
        port: Some(3128),
        forwards: Vec::new(),
        placeholder: "placeholder".to_owned(),
        proxy: true,
        vendor: Some(Vendor::Anthropic),
        repository: Some("https://example.com/a/b.git".to_owned()),
    }
}

#[test]
fn any_program_finds_the_proxy_and_git_finds_the_repository() {
    let script = "echo $https_proxy; git ls-remote --get-url https://example.com/a/b.git";
    let mut job = job(&["bash", "-c", script]);
    job.gateway = Some(gateway());
    let mut worker = Worker::running_job(job);
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    let expected = ["http://127.0.0.1:3128", "http://127.0.0.1:3128/git/example.com/a/b.git"];
    assert_eq!(worker.texts("agent.message"), expected);
}

#[test]
fn a_coding_agent_finds_its_model_there_and_a_placeholder_for_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let script = "read -r task; begin; over \"$ANTHROPIC_BASE_URL $ANTHROPIC_API_KEY $FROM_JOB\"";
    let mut job = job_of_script(folder.path(), script);
    job.gateway = Some(gateway());
    let mut worker = Worker::running_job(job);
    assert_eq!(worker.end(), AgentEnd::Exited { code: 0 });
    let report = &worker.data("worker.exited")[0]["report"];
    assert_eq!(report["message"], "http://127.0.0.1:3128/model/anthropic placeholder yes");
}
