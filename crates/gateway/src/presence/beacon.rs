//! The beacon line of companion apps: `Node: <host> (<ip>) · app <version> · last input <n>s ago · mode <mode> ·
//! reason <reason>`.

use std::sync::LazyLock;

use regex::Regex;

/// Fields of a beacon line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beacon {
    /// Host name.
    pub host: Option<String>,
    /// Address.
    pub ip: Option<String>,
    /// App version.
    pub version: Option<String>,
    /// Seconds since the last input.
    pub last_input_seconds: Option<u64>,
    /// Client mode.
    pub mode: Option<String>,
    /// Reason for the report.
    pub reason: Option<String>,
}

impl Beacon {
    /// Reads a line; any other text says nothing.
    pub fn parse(text: &str) -> Self {
        static LINE: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(concat!(
                r"^Node:\s*([^(]+?)\s*\(([^)]+)\)\s*·\s*app\s+([^·]+?)",
                r"\s*·\s*last input\s+(\d+)s ago\s*·\s*mode\s+([^·]+?)\s*·\s*reason\s+(.+)$",
            ))
            .ok()
        });
        let Some(found) = LINE.as_ref().and_then(|line| line.captures(text.trim())) else {
            return Self::default();
        };
        let part = |index| found.get(index).map(|part| part.as_str().trim().to_owned());
        Self {
            host: part(1),
            ip: part(2),
            version: part(3),
            last_input_seconds: part(4).and_then(|seconds| seconds.parse().ok()),
            mode: part(5),
            reason: part(6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beacon_lines_are_read_and_other_texts_say_nothing() {
        let full = Beacon {
            host: Some("Golden-Mac".to_owned()),
            ip: Some("192.0.2.77".to_owned()),
            version: Some("1.2.3".to_owned()),
            last_input_seconds: Some(12),
            mode: Some("ui".to_owned()),
            reason: Some("launch".to_owned()),
        };
        let rows = [
            (
                "Node: Golden-Mac (192.0.2.77) · app 1.2.3 · last input 12s ago · mode ui · reason launch",
                full.clone(),
            ),
            ("Node: Golden-Mac (192.0.2.77)·app 1.2.3·last input 12s ago·mode ui·reason launch", full),
            ("plain operator note", Beacon::default()),
            ("Node: half (1.2.3.4) · app 1", Beacon::default()),
            ("", Beacon::default()),
        ];
        for (text, expect) in rows {
            assert_eq!(Beacon::parse(text), expect, "{text}");
        }
    }
}
