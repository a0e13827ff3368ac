//! What a failure means that comes before there is a session.
//!
//! Nothing was asked of the database yet, so that nothing can be done twice. A server that is killed or restarted can be
//! gone at any byte of the handshake, and what the driver makes of that differs: an end of file where the answer to its
//! wish for TLS should be is a byte 0 to it. So every failure is a lost connection, which is tried again until the
//! operation's deadline, except for what a living server has answered and would answer again.

use std::io;

use rustls::AlertDescription as Alert;

use crate::error::{Error, Trouble, trouble};

/// Classes of SQLSTATE with which a server turns somebody away who has to change something first: another protocol (`0A`),
/// a user or a password (`28`), a database (`3D`), a privilege (`42`).
const FINAL_ANSWERS: [&str; 4] = ["0A", "28", "3D", "42"];

/// What the failure means.
pub(super) fn trouble_connecting(error: &sqlx::Error) -> Trouble {
    match error {
        sqlx::Error::Database(answer) => {
            let code = answer.code().unwrap_or_default();
            let is_final = FINAL_ANSWERS.iter().any(|class| code.starts_with(class));
            match trouble(error) {
                Trouble::Other if !is_final => Trouble::Away,
                trouble => trouble,
            }
        }
        // The address or a file that it names is wrong; the server speaks no TLS, and the address asks for it.
        sqlx::Error::Configuration(_) | sqlx::Error::Tls(_) => Trouble::Other,
        sqlx::Error::Io(error) if is_refused_by_tls(error) => Trouble::Other,
        // We have closed it ourselves.
        sqlx::Error::PoolClosed => Trouble::Other,
        _ => Trouble::Away,
    }
}

impl Error {
    /// The failure of an operation that has no session yet.
    pub(super) fn connecting(error: sqlx::Error) -> Self {
        match trouble_connecting(&error) {
            Trouble::Away => Self::Unavailable(error.into()),
            Trouble::Full => Self::Full(error.into()),
            Trouble::Other => Self::Database(error.into()),
        }
    }
}

/// Whether one of both sides does not want the other: a certificate that is not what it should be, or no way to speak that
/// both know. The driver passes it on as a failure of its socket.
fn is_refused_by_tls(error: &io::Error) -> bool {
    match error.get_ref().and_then(|cause| cause.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::PeerIncompatible(_)) => true,
        // What else comes in the middle of a handshake is what a server says or leaves unsaid that ends.
        Some(rustls::Error::AlertReceived(alert)) => {
            !matches!(alert, Alert::CloseNotify | Alert::InternalError | Alert::UserCanceled)
        }
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_in_the_handshake_is_a_lost_connection() {
        for error in [
            sqlx::Error::Protocol("unexpected response from SSLRequest: 0x00".to_owned()),
            sqlx::Error::Io(io::ErrorKind::UnexpectedEof.into()),
            sqlx::Error::Io(io::Error::other(rustls::Error::DecryptError)),
            sqlx::Error::Io(io::Error::other(rustls::Error::AlertReceived(Alert::InternalError))),
            sqlx::Error::Decode("half a message".into()),
            sqlx::Error::PoolTimedOut,
        ] {
            assert_eq!(trouble_connecting(&error), Trouble::Away, "{error:?}");
            assert!(Error::connecting(error).is_transient());
        }
    }

    #[test]
    fn what_would_be_answered_again_is_told_at_once() {
        for error in [
            sqlx::Error::Configuration("no such file".into()),
            sqlx::Error::Tls("server does not support TLS".into()),
            sqlx::Error::Io(io::Error::other(rustls::Error::InvalidCertificate(
                rustls::CertificateError::UnknownIssuer,
            ))),
            sqlx::Error::Io(io::Error::other(rustls::Error::AlertReceived(Alert::CertificateRequired))),
            sqlx::Error::PoolClosed,
        ] {
            assert_eq!(trouble_connecting(&error), Trouble::Other, "{error:?}");
            assert!(!Error::connecting(error).is_transient());
        }
    }
}
