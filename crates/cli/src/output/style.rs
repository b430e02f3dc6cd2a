//! Colour, where it is wanted (spec `cli.md` §1.2).

use std::io::IsTerminal as _;

use openclaw_config::Environment;

/// Whether and how text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    coloured: bool,
}

impl Style {
    /// Never coloured.
    pub(crate) const PLAIN: Self = Self { coloured: false };

    /// On a terminal, unless `--no-color` or `NO_COLOR` says no; `FORCE_COLOR` says yes.
    pub(crate) fn of(env: &Environment, no_color: bool) -> Self {
        let forced = env.get_nonblank("FORCE_COLOR").is_some_and(|value| value != "0");
        let forbidden = no_color || env.get("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { coloured: !forbidden && (forced || std::io::stdout().is_terminal()) }
    }

    /// Headings.
    pub(crate) fn accent(self, text: &str) -> String {
        self.paint(text, "38;2;255;90;45")
    }

    /// Less important text.
    pub(crate) fn muted(self, text: &str) -> String {
        self.paint(text, "38;2;139;127;119")
    }

    /// Good news.
    pub(crate) fn success(self, text: &str) -> String {
        self.paint(text, "38;2;47;191;113")
    }

    /// Look here.
    pub(crate) fn warn(self, text: &str) -> String {
        self.paint(text, "38;2;255;176;32")
    }

    /// Bad news.
    pub(crate) fn error(self, text: &str) -> String {
        self.paint(text, "38;2;226;61;45")
    }

    fn paint(self, text: &str, code: &str) -> String {
        if self.coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
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
