//! Limit on open files of the process, and the share of it that strangers get.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::places::{ConnectionLimits, PlaceLimits};

/// Files we want: sockets of clients are files too. Most systems start programs with 1,024.
const WANTED: u64 = 16_384;

/// HTTP connections. A browser needs six, a proxy some more.
const HTTP: ConnectionLimits = ConnectionLimits { per_address: 256, remote: 1_792, all: 2_048 };
/// WebSockets before their `hello-ok` (KB-40). Many clients of this host may start at once.
const HANDSHAKES: ConnectionLimits = ConnectionLimits { per_address: 64, remote: 512, all: 1_536 };

/// Raises the limit of the process as far as it goes.
pub(super) fn raise() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < WANTED.min(hard)
    {
        // With fewer files fewer clients fit, and that is all.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, WANTED.min(hard), hard);
    }
}

/// The places for HTTP connections and for handshakes: together at most half of the files.
pub(super) fn places() -> PlaceLimits {
    let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(WANTED, |(soft, _)| soft);
    share(usize::try_from(files).unwrap_or(usize::MAX))
}

fn share(files: usize) -> PlaceLimits {
    let quarter = files / 4;
    let within = |most: ConnectionLimits| {
        let all = most.all.min(quarter).max(1);
        let of_all = |part: usize| (part * all / most.all).max(1);
        ConnectionLimits {
            all,
            remote: of_all(most.remote),
            per_address: most.per_address.min(of_all(most.remote)),
        }
    };
    PlaceLimits { connections: within(HTTP), handshakes: within(HANDSHAKES) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_get_at_most_half_of_the_files_and_this_host_always_some() {
        let whole = PlaceLimits { connections: HTTP, handshakes: HANDSHAKES };
        assert_eq!((share(16_384), share(usize::MAX)), (whole, whole));
        let PlaceLimits { connections, handshakes } = share(1_024);
        assert_eq!(connections, ConnectionLimits { per_address: 224, remote: 224, all: 256 });
        assert_eq!(handshakes, ConnectionLimits { per_address: 64, remote: 85, all: 256 });
        for limits in [share(256).connections, share(256).handshakes] {
            assert!(limits.remote < limits.all, "{limits:?}");
        }
    }
}
