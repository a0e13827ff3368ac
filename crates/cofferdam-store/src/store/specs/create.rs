//! Makes a spec.

use cofferdam_core::{PHASES_VERSION, SpecPlan};
use cofferdam_mandate::Mandate;

use super::versions::write_version;
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::session::{Session, values};
use crate::spec::NewSpec;
use crate::store::{Store, audit};
use crate::stored::{require_text, to_json};

impl Store {
    /// Makes a spec for the mandate's owner, with its first version. The same again changes nothing: whoever did not hear
    /// the answer asks again.
    ///
    /// # Errors
    /// [`Error::SpecExists`] if there is another one of this id, and [`Error::Text`] for a text that cannot be kept.
    pub async fn create_spec(&self, mandate: &Mandate, new: &NewSpec) -> Result<(), Error> {
        require_text("title", &new.title)?;
        require_text("description", &new.description)?;
        let (mandate, new) = (mandate.clone(), new.clone());
        self.write(async move |session| {
            let inserted = session
                .execute(
                    "INSERT INTO specs (id, owner, project, title, description, phases_version, plan, version, \
                     revision, archived, created_at, updated_at) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, 1, ?8, ?9, ?9) ON CONFLICT DO NOTHING",
                    values![
                        &new.id,
                        mandate.owner(),
                        new.project.as_ref(),
                        &new.title,
                        &new.description,
                        PHASES_VERSION,
                        to_json(&SpecPlan::default()),
                        false,
                        mandate.at_ms(),
                    ],
                )
                .await?;
            if inserted == 0 {
                return match is_same(session, &mandate, &new).await? {
                    true => Ok(()),
                    false => Err(Error::SpecExists { spec: new.id.clone() }),
                };
            }
            write_version(session, &mandate, &new.id, 1, &new.title, &new.description, None).await?;
            audit::record(session, &mandate).await
        })
        .await?;
        failpoint("store.create_spec");
        Ok(())
    }
}

/// Whether the spec that is there was made by the same words.
async fn is_same(session: &mut Session<'_>, mandate: &Mandate, new: &NewSpec) -> Result<bool, Error> {
    let sql = "SELECT specs.owner = ?2 AND first.title = ?3 AND first.description = ?4 AS is_same FROM specs \
               JOIN spec_versions AS first ON first.spec = specs.id AND first.number = 1 WHERE specs.id = ?1";
    let values = values![&new.id, mandate.owner(), &new.title, &new.description];
    Ok(session.optional(sql, values, |row| row.first()).await?.unwrap_or(false))
}
