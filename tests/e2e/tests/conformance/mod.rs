//! What every backend promises, tested on every backend with the real binary as the worker.
//!
//! Another backend is one more line in [`on_every_backend`], and in [`on_every_container`] if it runs containers.

mod container;
mod ending;
mod output;
mod promises;
mod stage;
mod strangers;

/// One test for each backend. An engine holds the limits of its containers itself, so that these have no mark.
#[macro_export]
macro_rules! on_every_backend {
    ($(async fn $name:ident($stage:ident: Stage) $body:block)+) => {
        $crate::on_every_backend! {
            @each [cofferdam_test_marks::limits] host, $crate::conformance::stage::HOST, $($name $stage $body)+
        }
        $crate::on_every_backend! {
            @each [cofferdam_test_marks::limits] native, $crate::conformance::stage::NATIVE, $($name $stage $body)+
        }
        $crate::on_every_backend! { @each [cfg(test)] docker, $crate::conformance::stage::DOCKER, $($name $stage $body)+ }
        $crate::on_every_backend! { @each [cfg(test)] apple_podman, $crate::conformance::stage::APPLE_PODMAN, $($name $stage $body)+ }
        $crate::on_every_backend! { @each [cfg(test)] apple_docker, $crate::conformance::stage::APPLE_DOCKER, $($name $stage $body)+ }
    };
    (@each [$mark:meta] $backend:ident, $kind:expr, $($name:ident $stage:ident $body:block)+) => {
        mod $backend {
            use super::*;
            $(#[$mark]
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                let Some($stage) = $crate::conformance::stage::Stage::new($kind) else { return };
                $body
            })+
        }
    };
}

/// One test for each backend that runs containers.
#[macro_export]
macro_rules! on_every_container {
    ($(async fn $name:ident($stage:ident: Stage) $body:block)+) => {
        $crate::on_every_backend! { @each [cfg(test)] docker, $crate::conformance::stage::DOCKER, $($name $stage $body)+ }
        $crate::on_every_backend! { @each [cfg(test)] apple_podman, $crate::conformance::stage::APPLE_PODMAN, $($name $stage $body)+ }
        $crate::on_every_backend! { @each [cfg(test)] apple_docker, $crate::conformance::stage::APPLE_DOCKER, $($name $stage $body)+ }
    };
}

/// One test for the backend that speaks to an engine itself: it has a watcher, labels and volumes.
#[macro_export]
macro_rules! on_the_engine {
    ($(async fn $name:ident($stage:ident: Stage) $body:block)+) => {
        $crate::on_every_backend! { @each [cfg(test)] engine, $crate::conformance::stage::DOCKER, $($name $stage $body)+ }
    };
}
