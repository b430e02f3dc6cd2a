//! Memory of the gateway.

use openclaw_testkit::GatewayUnderTest;

/// Memory that the gateway may need for all of it, in bytes.
pub(crate) const GROWTH: usize = 50_000_000;

/// The most memory the process has had so far, in bytes.
pub(crate) fn resident_at_most(gateway: &GatewayUnderTest) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid().unwrap())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}
