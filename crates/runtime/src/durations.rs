//! Durations as people read them.

/// Returns milliseconds in at most two units: `8ms`, `12s`, `1m5s`, `2h3m`, `1d2h`
pub fn compact_duration(ms: i64) -> String {
    let ms = ms.max(0);
    let seconds = ms / 1_000;
    let two = |big: i64, unit: &str, small: i64, smaller: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{smaller}") }
    };
    match seconds {
        0 => format!("{ms}ms"),
        1..=59 => format!("{seconds}s"),
        60..=3_599 => two(seconds / 60, "m", seconds % 60, "s"),
        3_600..=86_399 => two(seconds / 3_600, "h", seconds / 60 % 60, "m"),
        _ => two(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}
