//! Capabilities: kept for the next stage, and given up for ever.

use rustix::io;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits,
};

/// Capabilities that the stages inside need: for mounts, giving up capabilities, and the loopback
/// device.
const NEEDED: [CapabilitySet; 3] =
    [CapabilitySet::SYS_ADMIN, CapabilitySet::SETPCAP, CapabilitySet::NET_ADMIN];

/// Lets what is executed next have them.
pub(super) fn keep_for_next() -> io::Result<()> {
    let needed = NEEDED.into_iter().collect();
    let own = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: needed, ..own })?;
    NEEDED.into_iter().try_for_each(|each| configure_capability_in_ambient_set(each, true))
}

/// Gives up all, also those that a program could bring.
pub(super) fn give_up_all() -> io::Result<()> {
    if capabilities(None)?.effective.contains(CapabilitySet::SETPCAP) {
        for number in 0..64 {
            match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
                Ok(()) => {}
                // The kernel knows no more.
                Err(io::Errno::INVAL) => break,
                Err(error) => return Err(error),
            }
        }
        set_capabilities_secure_bits(
            CapabilitiesSecureBits::NO_ROOT
                | CapabilitiesSecureBits::NO_ROOT_LOCKED
                | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
                | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
        )?;
    }
    give_up_own()
}

/// Gives up those of this process.
pub(super) fn give_up_own() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}
