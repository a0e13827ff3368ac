//! A network of a test's own, with public addresses that are this machine's.

use std::process::Command;

/// Says to a test that it was started again in such a network.
const IS_THERE: &str = "COFFERDAM_TEST_OWN_NETWORK";

/// Whether this test is in a network of its own, where the loopback is up and nothing else is there. If not, it is started
/// again in one, and `false` is for whoever started it.
pub(crate) fn in_own_network(test: &str) -> bool {
    if std::env::var_os(IS_THERE).is_some() {
        return true;
    }
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "sh", "-c"])
        .args(["ip link set lo up || exit 77; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().expect("this test is a program"))
        .args(["--exact", test, "--nocapture"])
        .env(IS_THERE, "1")
        .output()
        .expect("unshare is everywhere");
    let told = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || told.starts_with("unshare: ") {
        assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{told}");
        eprintln!("skipped: no network can be made here: {told}");
        return false;
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed} {told}");
    false
}

/// Changes this network, such as `ip(&["address", "add", …])`.
pub(crate) fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().expect("ip is installed");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Waits until the kernel knows a way to an address: that of a new address of version 6 is made a moment after it was added.
pub(crate) async fn until_routed(address: &str) {
    let is_routed = || {
        Command::new("ip").args(["route", "get", address]).output().is_ok_and(|told| told.status.success())
    };
    let routed = async {
        while !is_routed() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(10), routed).await;
    waited.unwrap_or_else(|_| panic!("there is no way to {address}"));
}
