//! What every backend promises, tested on every backend with the real binary as the worker.
//!
//! Another backend is one more line in [`on_every_backend`].

mod ending;
mod promises;
mod stage;

/// One test for each backend.
#[macro_export]
macro_rules! on_every_backend {
    ($(async fn $name:ident($stage:ident: Stage) $body:block)+) => {
        $crate::on_every_backend! { @each host, $crate::stage::HOST, $($name $stage $body)+ }
        $crate::on_every_backend! { @each native, $crate::stage::NATIVE, $($name $stage $body)+ }
    };
    (@each $backend:ident, $kind:expr, $($name:ident $stage:ident $body:block)+) => {
        mod $backend {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let $stage = $crate::stage::Stage::new($kind);
                $body
            })+
        }
    };
}
