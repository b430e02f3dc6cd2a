//! Manual pages as plain text. Reads as much of roff as pages of Debian use for their words.

/// A page without its first section, and what that says the page is for.
#[derive(Debug, Default)]
pub(crate) struct ManualPage {
    pub(crate) text: String,
    pub(crate) purpose: Option<String>,
}

/// Macros whose arguments are set side by side in two fonts.
const ALTERNATING: &[&str] = &["BR", "BI", "IB", "IR", "RB", "RI"];

/// Macros whose arguments are words of the page, beside those of `mdoc`, which begin with a capital.
const WORDS: &[&str] = &["B", "I", "SM", "SB", "SH", "SS", "Sh", "Ss", "IP", "UR", "MT", "HP"];

/// Requests and macros whose arguments are no words.
const SILENT: &[&str] = &[
    "TH", "PP", "LP", "P", "TP", "TQ", "RS", "RE", "TS", "TE", "EX", "EE", "PD", "UE", "ME", "SY", "YS",
    "Dd", "Dt", "Os", "Pp", "Bl", "El", "Bd", "Ed", "Sm", "Bk", "Ek",
];

pub(crate) fn read(roff: &str) -> ManualPage {
    let mut page = ManualPage::default();
    let mut name = String::new();
    let mut sections = 0;
    let mut is_definition = false;
    for line in roff.lines() {
        if is_definition {
            is_definition = !line.starts_with("..");
            continue;
        }
        let Some(request) = line.strip_prefix('.').or_else(|| line.strip_prefix('\'')) else {
            let out = if sections == 1 { &mut name } else { &mut page.text };
            out.push_str(&unescaped(line));
            out.push('\n');
            continue;
        };
        let (request, arguments) =
            request.trim_start().split_once(char::is_whitespace).unwrap_or((request.trim(), ""));
        if matches!(request, "de" | "ig" | "am") {
            is_definition = true;
            continue;
        }
        let is_heading = matches!(request, "SH" | "Sh");
        sections += usize::from(is_heading);
        let is_mdoc = request.len() == 2 && request.starts_with(|letter: char| letter.is_ascii_uppercase());
        let arguments = words(arguments);
        let line = if SILENT.contains(&request) {
            String::new()
        } else if ALTERNATING.contains(&request) {
            arguments.concat()
        } else if request == "Nd" {
            format!("- {}", arguments.join(" "))
        } else if is_mdoc || WORDS.contains(&request) {
            arguments.join(" ")
        } else {
            continue;
        };
        match sections {
            1 if is_heading => {}
            1 => name.push_str(&format!("{line}\n")),
            _ if is_heading => page.text.push_str(&format!("\n## {line}\n")),
            _ => page.text.push_str(&format!("{line}\n")),
        }
    }
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let purpose =
        [" - ", " — ", " – ", " -- ", "－", " -", "- "].iter().find_map(|dash| name.split_once(dash));
    page.purpose = purpose
        .map(|(_, purpose)| {
            purpose.trim_matches(|letter: char| letter == '-' || letter.is_whitespace()).to_owned()
        })
        .filter(|purpose| !purpose.is_empty());
    page
}

/// Splits arguments at blanks outside quotation marks.
fn words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut is_quoted = false;
    let mut letters = arguments.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&'"') => break,
            '\\' => {
                word.push(letter);
                word.extend(letters.next());
            }
            '"' => is_quoted = !is_quoted,
            ' ' | '\t' if !is_quoted => {
                if !word.is_empty() {
                    words.push(unescaped(&std::mem::take(&mut word)));
                }
            }
            _ => word.push(letter),
        }
    }
    if !word.is_empty() {
        words.push(unescaped(&word));
    }
    words
}

/// Returns a text without the escapes of roff.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('-') => out.push('-'),
            Some('e' | '\\') => out.push('\\'),
            Some(' ' | '~' | '0') => out.push(' '),
            Some('"') | None => break,
            Some('f' | '*' | 'n' | 'k' | 'F' | 'm' | 'g') => {
                named(&mut letters);
            }
            Some('s') => {
                letters.next_if(|sign| matches!(sign, '+' | '-'));
                named(&mut letters);
            }
            Some('(') => {
                let name: String = letters.by_ref().take(2).collect();
                out.push_str(symbol(&name));
            }
            Some('[') => {
                let name: String = letters.by_ref().take_while(|letter| *letter != ']').collect();
                out.push_str(symbol(&name));
            }
            Some('h' | 'v' | 'w' | 'o' | 'z' | 'l' | 'D') => {
                if letters.next_if_eq(&'\'').is_some() {
                    letters.by_ref().take_while(|letter| *letter != '\'').for_each(drop);
                }
            }
            Some('\'') => out.push('\''),
            Some(_) => {}
        }
    }
    out
}

/// Passes over a name: one letter, two after a parenthesis, or those in brackets.
fn named(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match letters.next() {
        Some('(') => letters.by_ref().take(2).for_each(drop),
        Some('[') => letters.by_ref().take_while(|letter| *letter != ']').for_each(drop),
        _ => {}
    }
}

fn symbol(name: &str) -> &'static str {
    match name {
        "em" | "en" => "—",
        "aq" | "cq" => "'",
        "dq" | "lq" | "rq" => "\"",
        "ti" | "ha" | "ga" => "~",
        "mi" | "hy" => "-",
        "rs" => "\\",
        _ => " ",
    }
}
