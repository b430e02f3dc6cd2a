//! Colour, where it is wanted (spec `cli.md` §1.2).

use std::io::IsTerminal as _;

use openclaw_config::Environment;

/// Sequences that a [`Style`] puts around text: the only control sequences that are printed.
pub(super) const SEQUENCES: &[&str] = &[ACCENT, MUTED, SUCCESS, WARN, ERROR, RESET];

const ACCENT: &str = "\u{1b}[38;2;255;90;45m";
const MUTED: &str = "\u{1b}[38;2;139;127;119m";
const SUCCESS: &str = "\u{1b}[38;2;47;191;113m";
const WARN: &str = "\u{1b}[38;2;255;176;32m";
const ERROR: &str = "\u{1b}[38;2;226;61;45m";
const RESET: &str = "\u{1b}[0m";

/// Style of text: coloured or plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    coloured: bool,
}

impl Style {
    /// Never coloured.
    pub(crate) const PLAIN: Self = Self { coloured: false };

    /// Always coloured.
    #[cfg(test)]
    pub(crate) const COLOURED: Self = Self { coloured: true };

    /// Colours on a terminal, unless `--no-color` or `NO_COLOR` says no; `FORCE_COLOR` says yes.
    pub(crate) fn of(env: &Environment, no_color: bool) -> Self {
        let forced = env.get_nonblank("FORCE_COLOR").is_some_and(|value| value != "0");
        let forbidden = no_color || env.get("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { coloured: !forbidden && (forced || std::io::stdout().is_terminal()) }
    }

    /// Headings.
    pub(crate) fn accent(self, text: &str) -> String {
        self.paint(text, ACCENT)
    }

    /// Less important text.
    pub(crate) fn muted(self, text: &str) -> String {
        self.paint(text, MUTED)
    }

    /// Good news.
    pub(crate) fn success(self, text: &str) -> String {
        self.paint(text, SUCCESS)
    }

    /// Look here.
    pub(crate) fn warn(self, text: &str) -> String {
        self.paint(text, WARN)
    }

    /// Bad news.
    pub(crate) fn error(self, text: &str) -> String {
        self.paint(text, ERROR)
    }

    fn paint(self, text: &str, start: &str) -> String {
        if self.coloured { format!("{start}{text}{RESET}") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_wins_over_force_color() {
        let env = |vars: &[(&str, &str)]| Environment::new(vars.iter().copied(), "/");
        type Row<'a> = (&'a [(&'a str, &'a str)], bool, bool);
        let rows: &[Row<'_>] = &[
            (&[("FORCE_COLOR", "1")], false, true),
            (&[("FORCE_COLOR", "0")], false, false),
            (&[("FORCE_COLOR", "1"), ("NO_COLOR", "1")], false, false),
            (&[("FORCE_COLOR", "1"), ("NO_COLOR", "")], false, true),
            (&[("FORCE_COLOR", "1")], true, false),
        ];
        for (vars, flag, expect) in rows {
            assert_eq!(Style::of(&env(vars), *flag).coloured, *expect, "{vars:?} {flag}");
        }
        assert_eq!(Style::PLAIN.error("x"), "x");
    }
}
