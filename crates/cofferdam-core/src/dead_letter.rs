//! A run that failed for good, as it is kept for people and for a replay.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error_class::ErrorClass;

/// What is kept of a run that failed for good. It holds no secret: whoever makes one has redacted it. The run's own
/// record has the request as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// When it failed, such as `2026-11-16T05:14:19.250Z`.
    pub failed_at: String,
    /// Whose fault it was.
    pub error_class: ErrorClass,
    /// What went wrong, for people.
    pub error_message: String,
    /// The number of its last attempt.
    pub attempt: u32,
    /// How many it might have had.
    pub max_attempts: u32,
    /// The request, without its secrets.
    pub payload: Value,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_those_that_others_read() {
        let letter = DeadLetter {
            failed_at: crate::iso_time(0),
            error_class: ErrorClass::Quota,
            error_message: "no more for now".to_owned(),
            attempt: 2,
            max_attempts: 2,
            payload: Value::Null,
        };
        let value = serde_json::to_value(&letter).unwrap();
        let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = ["attempt", "errorClass", "errorMessage", "failedAt", "maxAttempts", "payload"];
        assert_eq!(keys, expected);
        assert_eq!(value["errorClass"], "quota");
    }
}
