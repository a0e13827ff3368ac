//! Runs in containers, through the real binary and a real engine.
//!
//! Another way to run containers is one more line in [`in_every_container_mode`].

mod inspect;
mod open;
mod orphans;
mod output;
mod workspace;

/// One test for each way to run containers.
#[macro_export]
macro_rules! in_every_container_mode {
    ($(fn $name:ident($mode:ident: &'static ContainerMode) $body:block)+) => {
        $crate::in_every_container_mode! { @each docker, DOCKER, $($name $mode $body)+ }
    };
    (@each $module:ident, $constant:ident, $($name:ident $mode:ident $body:block)+) => {
        mod $module {
            use super::*;
            $(#[test]
            fn $name() {
                let $mode = &cofferdam_e2e::containers::$constant;
                $body
            })+
        }
    };
}
