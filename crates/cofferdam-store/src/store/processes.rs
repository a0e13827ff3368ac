//! The services that keep processes, and what is wanted of those.

use cofferdam_core::{DesiredState, NodeId, ProcessName};
use cofferdam_mandate::Mandate;

use super::{Store, audit};
use crate::error::Error;
use crate::failpoint::failpoint;
use crate::process_record::{ProcessRecord, ProcessReport, ServiceRecord};
use crate::session::{Row, values};
use crate::stored::{parse, to_json};

impl Store {
    /// Writes down what a service tells of itself, over what it told before.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn report_service(&self, service: &ServiceRecord) -> Result<(), Error> {
        let service = service.clone();
        self.write_ledger(async move |session| {
            session.may_repeat();
            let ServiceRecord { id, place, started_at_ms, seen_at_ms, report } = &service;
            session
                .execute(
                    "INSERT INTO services (id, place, started_at, seen_at, report) VALUES (?1, ?2, ?3, ?4, ?5) \
                     ON CONFLICT (id) DO UPDATE SET place = excluded.place, started_at = excluded.started_at, \
                     seen_at = excluded.seen_at, report = excluded.report",
                    values![id, place, *started_at_ms, *seen_at_ms, to_json(report)],
                )
                .await
        })
        .await?;
        Ok(())
    }

    /// Forgets a service that has ended, and not what is wanted of its processes.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn remove_service(&self, service: &NodeId) -> Result<(), Error> {
        let service = service.clone();
        self.write_ledger(async move |session| {
            session.may_repeat();
            session.execute("DELETE FROM services WHERE id = ?1", values![&service]).await
        })
        .await?;
        Ok(())
    }

    /// Every service that has told of itself and was not forgotten.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn services(&self) -> Result<Vec<ServiceRecord>, Error> {
        const SQL: &str = "SELECT id, place, started_at, seen_at, report FROM services ORDER BY id";
        self.read(async move |session| session.all(SQL, &[], read_service).await).await
    }

    /// The processes of a service that are on record.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn processes(&self, service: &NodeId) -> Result<Vec<ProcessRecord>, Error> {
        const SQL: &str =
            "SELECT service, name, desired, asked, report FROM processes WHERE service = ?1 ORDER BY name";
        let service = service.clone();
        self.read(async move |session| session.all(SQL, values![&service], read_process).await).await
    }

    /// Puts a process on record as one that is to run, unless it is there.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn add_process(&self, service: &NodeId, name: ProcessName) -> Result<(), Error> {
        let service = service.clone();
        self.write_ledger(async move |session| {
            session.may_repeat();
            let sql = "INSERT INTO processes (service, name, desired) VALUES (?1, ?2, 'running') \
                       ON CONFLICT DO NOTHING";
            session.execute(sql, values![&service, name.to_string()]).await
        })
        .await?;
        Ok(())
    }

    /// Writes down what a supervisor tells of a process that is on record.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn report_process(
        &self,
        service: &NodeId,
        name: ProcessName,
        report: &ProcessReport,
    ) -> Result<(), Error> {
        let (service, report) = (service.clone(), report.clone());
        self.write_ledger(async move |session| {
            session.may_repeat();
            let sql = "UPDATE processes SET report = ?3 WHERE service = ?1 AND name = ?2";
            session.execute(sql, values![&service, name.to_string(), to_json(&report)]).await
        })
        .await?;
        Ok(())
    }

    /// Changes what is wanted of processes. True if something was changed.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn set_desired(
        &self,
        mandate: &Mandate,
        service: &NodeId,
        wanted: &[(ProcessName, DesiredState)],
    ) -> Result<bool, Error> {
        const SQL: &str = "INSERT INTO processes (service, name, desired, asked) VALUES (?1, ?2, ?3, 1) \
             ON CONFLICT (service, name) DO UPDATE SET desired = excluded.desired, asked = processes.asked + 1 \
             WHERE processes.desired <> excluded.desired";
        let (mandate, service, mut wanted) = (mandate.clone(), service.clone(), wanted.to_vec());
        // In one order, so that two who change several rows do not wait for each other.
        wanted.sort_by_key(|(name, _)| name.to_string());
        let is_changed = self
            .write(async move |session| {
                let mut changed = 0;
                for (name, desired) in &wanted {
                    changed +=
                        session.execute(SQL, values![&service, name.to_string(), desired.as_str()]).await?;
                }
                if changed > 0 {
                    audit::record(session, &mandate).await?;
                }
                Ok(changed > 0)
            })
            .await?;
        failpoint("store.set_desired");
        Ok(is_changed)
    }
}

fn read_service(row: Row<'_>) -> Result<ServiceRecord, Error> {
    let id: String = row.get("id")?;
    Ok(ServiceRecord {
        id: parse(&id, "service", &id)?,
        place: row.parse(&id, "place", "place")?,
        started_at_ms: row.get("started_at")?,
        seen_at_ms: row.get("seen_at")?,
        report: row.json(&id, "report", "report")?,
    })
}

fn read_process(row: Row<'_>) -> Result<ProcessRecord, Error> {
    let name: String = row.get("name")?;
    Ok(ProcessRecord {
        service: row.parse(&name, "service", "service")?,
        desired: row.parse(&name, "desired state", "desired")?,
        asked: row.get("asked")?,
        report: row.json_some(&name, "report", "report")?,
        name: parse(&name, "process", &name)?,
    })
}
