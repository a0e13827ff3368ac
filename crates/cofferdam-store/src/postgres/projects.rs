//! Registered repositories.

use cofferdam_core::{Project, ProjectId};
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::{Postgres, from_json, int, to_json};
use crate::error::Error;
use crate::failpoint::failpoint;

impl Postgres {
    pub(crate) async fn create_project(&self, project: &Project, now_ms: u64) -> Result<bool, Error> {
        let created = self
            .write(|mut session| async move {
                let created = session
                    .query(
                        "INSERT INTO projects (id, name, project, max_concurrency, created_at) \
                         VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
                    )
                    .bind(project.id.as_str())
                    .bind(project.name.as_str())
                    .bind(to_json(project))
                    .bind(project.max_concurrency.map(|most| i64::from(most.get())))
                    .bind(int(now_ms))
                    .execute(session.connection())
                    .await?;
                session.done(created.rows_affected() > 0)
            })
            .await?;
        failpoint("store.create_project");
        Ok(created)
    }

    pub(crate) async fn projects(&self) -> Result<Vec<Project>, Error> {
        let rows = self
            .read(|mut session| async move {
                Ok(session
                    .query("SELECT id, project FROM projects ORDER BY name")
                    .fetch_all(session.connection())
                    .await?)
            })
            .await?;
        rows.iter().map(read_project).collect()
    }

    pub(crate) async fn find_project(&self, id_or_name: &str) -> Result<Option<Project>, Error> {
        let row = self
            .read(|mut session| async move {
                Ok(session
                    .query("SELECT id, project FROM projects WHERE id = $1 OR name = $1")
                    .bind(id_or_name)
                    .fetch_optional(session.connection())
                    .await?)
            })
            .await?;
        row.as_ref().map(read_project).transpose()
    }

    pub(crate) async fn remove_project(&self, id: &ProjectId) -> Result<bool, Error> {
        let removed = self
            .write(|mut session| async move {
                let removed = session
                    .query("DELETE FROM projects WHERE id = $1")
                    .bind(id.as_str())
                    .execute(session.connection())
                    .await?;
                session.done(removed.rows_affected() > 0)
            })
            .await?;
        failpoint("store.remove_project");
        Ok(removed)
    }
}

fn read_project(row: &PgRow) -> Result<Project, Error> {
    from_json(row.try_get("id")?, "project", row.try_get("project")?)
}
