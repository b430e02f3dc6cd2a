//! Allowed arguments of each safe bin. Arguments that name a file, follow one, write or run
//! something are left out.

/// Kind of value that an option takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Takes {
    Nothing,
    /// As `--name=value` or `--name value`.
    Value,
    /// As `--name=value` only.
    Optional,
    /// The next two arguments.
    Two,
}

use Takes::{Nothing, Optional, Two, Value};

/// The options of one program.
#[derive(Debug)]
pub(super) struct Options {
    name: &'static str,
    /// Letters without a value.
    pub(super) flags: &'static str,
    /// Letters with one.
    pub(super) valued: &'static str,
    pub(super) long: &'static [(&'static str, Takes)],
    /// First operands that are text, not files.
    pub(super) operands: usize,
    /// Options that stand for the text operand: with them every operand is a file.
    pub(super) pattern_options: &'static [&'static str],
    /// True if `-5` means a number of lines.
    pub(super) digits: bool,
    /// True if `--` ends the options.
    pub(super) ends_options: bool,
    /// Check of a text operand that is a program itself.
    pub(super) program: Option<fn(&str) -> bool>,
}

impl Options {
    const NONE: Self = Self {
        name: "",
        flags: "",
        valued: "",
        long: &[],
        operands: 0,
        pattern_options: &[],
        digits: false,
        ends_options: true,
        program: None,
    };
}

pub(super) fn options(name: &str) -> Option<&'static Options> {
    TABLE.iter().find(|options| options.name == name)
}

const TABLE: &[Options] = &[
    Options {
        name: "jq",
        flags: "nrjascCMSeR",
        long: &[
            ("null-input", Nothing),
            ("raw-output", Nothing),
            ("join-output", Nothing),
            ("ascii-output", Nothing),
            ("slurp", Nothing),
            ("compact-output", Nothing),
            ("color-output", Nothing),
            ("monochrome-output", Nothing),
            ("sort-keys", Nothing),
            ("exit-status", Nothing),
            ("raw-input", Nothing),
            ("tab", Nothing),
            ("indent", Value),
            ("stream", Nothing),
            ("seq", Nothing),
            ("unbuffered", Nothing),
            ("arg", Two),
            ("argjson", Two),
        ],
        operands: 1,
        ends_options: false,
        program: Some(is_harmless_filter),
        ..Options::NONE
    },
    Options {
        name: "grep",
        flags: "EFGivwxcoqsbnhHLlaIUzyZ",
        valued: "emABC",
        long: &[
            ("extended-regexp", Nothing),
            ("fixed-strings", Nothing),
            ("basic-regexp", Nothing),
            ("regexp", Value),
            ("ignore-case", Nothing),
            ("no-ignore-case", Nothing),
            ("invert-match", Nothing),
            ("word-regexp", Nothing),
            ("line-regexp", Nothing),
            ("count", Nothing),
            ("color", Optional),
            ("colour", Optional),
            ("max-count", Value),
            ("only-matching", Nothing),
            ("quiet", Nothing),
            ("silent", Nothing),
            ("no-messages", Nothing),
            ("byte-offset", Nothing),
            ("line-number", Nothing),
            ("no-filename", Nothing),
            ("with-filename", Nothing),
            ("null", Nothing),
            ("null-data", Nothing),
            ("text", Nothing),
            ("line-buffered", Nothing),
            ("after-context", Value),
            ("before-context", Value),
            ("context", Value),
        ],
        operands: 1,
        pattern_options: &["e", "regexp"],
        ..Options::NONE
    },
    Options {
        name: "cut",
        flags: "snz",
        valued: "bcdf",
        long: &[
            ("bytes", Value),
            ("characters", Value),
            ("delimiter", Value),
            ("fields", Value),
            ("complement", Nothing),
            ("only-delimited", Nothing),
            ("output-delimiter", Value),
            ("zero-terminated", Nothing),
        ],
        ..Options::NONE
    },
    Options {
        name: "sort",
        flags: "bdfgiMhnRrVcCsuz",
        valued: "kt",
        long: &[
            ("ignore-leading-blanks", Nothing),
            ("dictionary-order", Nothing),
            ("ignore-case", Nothing),
            ("general-numeric-sort", Nothing),
            ("ignore-nonprinting", Nothing),
            ("month-sort", Nothing),
            ("human-numeric-sort", Nothing),
            ("numeric-sort", Nothing),
            ("random-sort", Nothing),
            ("reverse", Nothing),
            ("version-sort", Nothing),
            ("check", Optional),
            ("key", Value),
            ("field-separator", Value),
            ("stable", Nothing),
            ("unique", Nothing),
            ("zero-terminated", Nothing),
        ],
        ..Options::NONE
    },
    Options {
        name: "uniq",
        flags: "cdDiuz",
        valued: "fsw",
        long: &[
            ("count", Nothing),
            ("repeated", Nothing),
            ("all-repeated", Optional),
            ("group", Optional),
            ("ignore-case", Nothing),
            ("unique", Nothing),
            ("zero-terminated", Nothing),
            ("skip-fields", Value),
            ("skip-chars", Value),
            ("check-chars", Value),
        ],
        ..Options::NONE
    },
    Options { name: "head", flags: "qvz", valued: "nc", long: ENDS, digits: true, ..Options::NONE },
    Options { name: "tail", flags: "qvz", valued: "nc", long: ENDS, digits: true, ..Options::NONE },
    Options {
        name: "tr",
        flags: "cCdst",
        long: &[
            ("complement", Nothing),
            ("delete", Nothing),
            ("squeeze-repeats", Nothing),
            ("truncate-set1", Nothing),
        ],
        operands: 2,
        ..Options::NONE
    },
    Options {
        name: "wc",
        flags: "cmlwL",
        long: &[
            ("bytes", Nothing),
            ("chars", Nothing),
            ("lines", Nothing),
            ("words", Nothing),
            ("max-line-length", Nothing),
        ],
        ..Options::NONE
    },
];

/// Of `head` and `tail`.
const ENDS: &[(&str, Takes)] = &[
    ("lines", Value),
    ("bytes", Value),
    ("quiet", Nothing),
    ("silent", Nothing),
    ("verbose", Nothing),
    ("zero-terminated", Nothing),
];

/// A jq filter that neither loads modules and data files nor shows variables of the environment.
fn is_harmless_filter(filter: &str) -> bool {
    const FORBIDDEN: &[&str] = &[
        "import",
        "include",
        "modulemeta",
        "env",
        "ENV",
        "input_filename",
        "get_search_list",
        "__prog_args",
    ];
    let mut names = filter.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    !names.any(|name| FORBIDDEN.contains(&name))
}
