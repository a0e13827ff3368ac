//! Registered repositories.

use cofferdam_core::{Project, ProjectId};
use rusqlite::{Row, params};

use super::{Sqlite, all, execute, from_json, int, optional, to_json};
use crate::error::Error;
use crate::failpoint::failpoint;

impl Sqlite {
    pub(crate) async fn create_project(&self, project: &Project, now_ms: u64) -> Result<bool, Error> {
        let project = project.clone();
        let created = self
            .write(move |transaction| {
                execute(
                    transaction,
                    "INSERT INTO projects (id, name, project, max_concurrency, created_at) \
                     VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    params![
                        project.id.as_str(),
                        project.name.as_str(),
                        to_json(&project),
                        project.max_concurrency.map(|most| i64::from(most.get())),
                        int(now_ms),
                    ],
                )
            })
            .await?;
        failpoint("store.create_project");
        Ok(created > 0)
    }

    pub(crate) async fn projects(&self) -> Result<Vec<Project>, Error> {
        let sql = "SELECT id, project FROM projects ORDER BY name";
        self.read(move |connection| all(connection, sql, [], read_project)).await
    }

    pub(crate) async fn find_project(&self, id_or_name: &str) -> Result<Option<Project>, Error> {
        let id_or_name = id_or_name.to_owned();
        let sql = "SELECT id, project FROM projects WHERE id = ?1 OR name = ?1";
        self.read(move |connection| optional(connection, sql, params![id_or_name], read_project)).await
    }

    pub(crate) async fn remove_project(&self, id: &ProjectId) -> Result<bool, Error> {
        let id = id.clone();
        let removed = self
            .write(move |transaction| {
                execute(transaction, "DELETE FROM projects WHERE id = ?", params![id.as_str()])
            })
            .await?;
        failpoint("store.remove_project");
        Ok(removed > 0)
    }
}

fn read_project(row: &Row<'_>) -> Result<Project, Error> {
    from_json(&row.get::<_, String>("id")?, "project", &row.get::<_, String>("project")?)
}
