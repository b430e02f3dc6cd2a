//! Speed of the machine's disk: a turn waits for it four times, whatever the gateway does.

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;

/// Times of small appends, each synced, in the place where the gateways under test keep their files. Spread over two
/// seconds: what else the machine writes shows in the slowest.
pub(super) fn appends() -> Result<Vec<Duration>> {
    const COUNT: usize = 500;
    const PAUSE: Duration = Duration::from_millis(4);
    let mut file = tempfile::tempfile()?;
    let line = [b'x'; 400];
    let mut times = Vec::with_capacity(COUNT);
    for _ in 0..COUNT {
        let start = Instant::now();
        file.write_all(&line)?;
        file.sync_data()?;
        times.push(start.elapsed());
        std::thread::sleep(PAUSE);
    }
    Ok(times)
}
