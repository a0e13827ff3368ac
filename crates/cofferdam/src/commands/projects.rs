//! `cofferdam projects …`: repositories that runs and specs name.

use async_trait::async_trait;
use clap::{Args, Subcommand};
use cofferdam_api::{Client, ProjectResponse};
use cofferdam_core::{Actor, ProjectInput};
use cofferdam_operations::Operations;
use serde_json::json;

use crate::caller::Caller;
use crate::commands::ListArgs;
use crate::commands::run::surroundings_of;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::record_place::open_store;
use crate::records::{client_failure, operation_failure};
use crate::server::ServerFlag;
use crate::{sanitize, terminal};

/// Whoever sits at this machine and may write to the record.
const ACTOR: Actor = Actor::LocalUser;

/// What to do with projects.
#[derive(Debug, Subcommand)]
pub(crate) enum ProjectsCommand {
    /// Register a repository under a name
    Add(AddArgs),
    /// List the projects, by name
    List(ListArgs),
    /// Forget a project, and not its runs
    Rm(RmArgs),
}

/// The flags of `projects add`.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// What it is called, such as `shop`
    name: String,
    /// An address (https, ssh, git), `owner/name` on GitHub, or the path of a repository on the service's machine
    repo: String,
    /// Branch, tag or commit to start from [default: the default branch]
    #[arg(long = "ref", value_name = "REF")]
    reference: Option<String>,
    /// How many of its runs may be under way at once
    #[arg(long, value_name = "NUMBER")]
    max_concurrency: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The flags of `projects rm`.
#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// Its id or name
    project: String,
}

/// The flags of every `projects` command.
#[derive(Debug, Args)]
pub(crate) struct ProjectsArgs {
    #[command(subcommand)]
    command: ProjectsCommand,
    #[command(flatten)]
    server: ServerFlag,
}

/// Does what was asked.
pub(crate) async fn run(args: &ProjectsArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    match args.server.called(caller)? {
        Some(called) => with(&called.client, &args.command).await?,
        None => {
            let store = open_store(&caller.open_state()?, caller).await?;
            let here = Here { operations: Operations::for_own_use(store.clone()), caller: caller.clone() };
            let done = with(&here, &args.command).await;
            store.close().await;
            done?;
        }
    }
    Ok(ExitCode::Succeeded)
}

async fn with(records: &dyn ProjectRecords, command: &ProjectsCommand) -> Result<(), Failure> {
    match command {
        ProjectsCommand::Add(args) => {
            let input = ProjectInput {
                name: args.name.clone(),
                repo: args.repo.clone(),
                reference: args.reference.clone(),
                max_concurrency: args.max_concurrency,
            };
            let made = records.add(&input).await?;
            terminal::write_answer(args.json, || json!(made), || format!("{}\n", made.id))
        }
        ProjectsCommand::List(args) => {
            let projects = records.list().await?;
            if !args.json && projects.is_empty() {
                terminal::write_stderr("cofferdam: no projects; type `cofferdam projects add NAME REPO`\n");
                return Ok(());
            }
            terminal::write_answer(args.json, || json!(projects), || table(&projects))
        }
        ProjectsCommand::Rm(args) => records.remove(&args.project).await,
    }
}

fn table(projects: &[ProjectResponse]) -> String {
    let mut text = format!("{:<30}  {:<20}  REPOSITORY\n", "PROJECT", "NAME");
    for project in projects {
        let reference = project.reference.as_ref().map(|reference| format!(" ({reference})"));
        let repo = format!("{}{}", project.repo, reference.unwrap_or_default());
        let (name, repo) = (sanitize::line(&project.name), sanitize::line(&repo));
        text.push_str(&format!("{:<30}  {name:<20}  {repo}\n", project.id.as_str()));
    }
    text
}

/// What the `projects` commands need.
#[async_trait(?Send)]
trait ProjectRecords {
    async fn add(&self, input: &ProjectInput) -> Result<ProjectResponse, Failure>;

    async fn list(&self) -> Result<Vec<ProjectResponse>, Failure>;

    async fn remove(&self, project: &str) -> Result<(), Failure>;
}

/// The record of this machine.
struct Here {
    operations: Operations,
    caller: Caller,
}

#[async_trait(?Send)]
impl ProjectRecords for Here {
    async fn add(&self, input: &ProjectInput) -> Result<ProjectResponse, Failure> {
        let made = self.operations.create_project(&ACTOR, input, &surroundings_of(&self.caller)).await;
        made.map(ProjectResponse::from).map_err(operation_failure)
    }

    async fn list(&self) -> Result<Vec<ProjectResponse>, Failure> {
        let projects = self.operations.list_projects(&ACTOR).await.map_err(operation_failure)?;
        Ok(projects.into_iter().map(ProjectResponse::from).collect())
    }

    async fn remove(&self, project: &str) -> Result<(), Failure> {
        self.operations.remove_project(&ACTOR, project).await.map_err(operation_failure)
    }
}

#[async_trait(?Send)]
impl ProjectRecords for Client {
    async fn add(&self, input: &ProjectInput) -> Result<ProjectResponse, Failure> {
        self.create_project(input).await.map_err(|error| client_failure(&error))
    }

    async fn list(&self) -> Result<Vec<ProjectResponse>, Failure> {
        Ok(self.projects().await.map_err(|error| client_failure(&error))?.projects)
    }

    async fn remove(&self, project: &str) -> Result<(), Failure> {
        self.remove_project(project).await.map_err(|error| client_failure(&error))
    }
}
