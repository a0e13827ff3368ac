//! Registered repositories.

use cofferdam_core::{Project, ProjectId};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Sqlite, from_json, int, to_json};
use crate::error::Error;
use crate::failpoint::failpoint;

impl Sqlite {
    pub(crate) async fn create_project(&self, project: &Project, now_ms: u64) -> Result<bool, Error> {
        let created = sqlx::query(
            "INSERT INTO projects (id, name, project, max_concurrency, created_at) VALUES (?, ?, ?, ?, ?) \
             ON CONFLICT DO NOTHING",
        )
        .bind(project.id.as_str())
        .bind(project.name.as_str())
        .bind(to_json(project))
        .bind(project.max_concurrency.map(|most| i64::from(most.get())))
        .bind(int(now_ms))
        .execute(&mut *self.writer().await)
        .await?;
        failpoint("store.create_project");
        Ok(created.rows_affected() > 0)
    }

    pub(crate) async fn projects(&self) -> Result<Vec<Project>, Error> {
        let rows =
            sqlx::query("SELECT id, project FROM projects ORDER BY name").fetch_all(self.readers()).await?;
        rows.iter().map(read_project).collect()
    }

    pub(crate) async fn find_project(&self, id_or_name: &str) -> Result<Option<Project>, Error> {
        let row = sqlx::query("SELECT id, project FROM projects WHERE id = ?1 OR name = ?1")
            .bind(id_or_name)
            .fetch_optional(self.readers())
            .await?;
        row.as_ref().map(read_project).transpose()
    }

    pub(crate) async fn remove_project(&self, id: &ProjectId) -> Result<bool, Error> {
        let removed = sqlx::query("DELETE FROM projects WHERE id = ?")
            .bind(id.as_str())
            .execute(&mut *self.writer().await)
            .await?;
        failpoint("store.remove_project");
        Ok(removed.rows_affected() > 0)
    }
}

fn read_project(row: &SqliteRow) -> Result<Project, Error> {
    from_json(row.try_get("id")?, "project", row.try_get("project")?)
}
