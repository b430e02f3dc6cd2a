//! Whatever command line a model writes: it is refused, or its words are those that a shell reads, and only listed programs run unasked.
#![no_main]

use std::collections::BTreeSet;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use openclaw_tools::exec_approvals::allowlist::{AllowedBy, Rules, Surroundings, evaluate};
use openclaw_tools::exec_approvals::analysis::{analyse, join};
use openclaw_tools::exec_approvals::executable::{Content, Files};
use openclaw_tools::exec_approvals::file::{AllowlistEntry, ApprovalsFile};
use openclaw_tools::exec_approvals::{pattern, safe_bins};

/// Every program is in `/usr/bin`, and every word with an `x` in it is a file.
struct Host;

impl Files for Host {
    fn is_executable(&self, path: &Path) -> bool {
        path.starts_with("/usr/bin")
    }
    fn is_file(&self, path: &Path) -> bool {
        path.to_str().is_none_or(|path| path.contains('x'))
    }
    fn is_directory(&self, path: &Path) -> bool {
        !self.is_file(path)
    }
    fn is_protected(&self, path: &Path) -> bool {
        path.starts_with("/usr/bin")
    }
    fn content(&self, _: &Path) -> Content {
        Content::Unknown
    }
    fn interpreter_words(&self, _: &Path) -> Vec<String> {
        Vec::new()
    }
}

fuzz_target!(|command: &str| {
    let _ = ApprovalsFile::parse(command, &mut String::new);
    let _ = pattern::matches(command, Path::new("/usr/bin/rg"), Path::new("/home/o"));
    let allowlist = [AllowlistEntry { pattern: "/usr/bin/rg".into(), ..AllowlistEntry::default() }];
    let safe_bins: Vec<String> = safe_bins::DEFAULT.iter().map(|bin| (*bin).to_owned()).collect();
    let found = evaluate(
        command,
        Rules { allowlist: &allowlist, safe_bins: &safe_bins, skill_bins: &BTreeSet::new() },
        Surroundings {
            shell: Path::new("/bin/sh"),
            path: "/usr/bin",
            cwd: Path::new("/w"),
            home: Path::new("/home/o"),
            sets_variables: false,
            writable: &[],
            is_root: false,
            files: &Host,
        },
    );
    let Ok(segments) = analyse(command) else {
        assert!(!found.is_satisfied());
        return;
    };
    assert_eq!(analyse(&join(&segments)).as_ref(), Ok(&segments));
    let bare = unquoted(command).replace("&&", "");
    assert!(bare.chars().all(|c| c.is_ascii_alphanumeric() || " \t|;_-./,:@%+=".contains(c)));

    let findings = found.findings.unwrap_or_default();
    assert_eq!(findings.len(), segments.len());
    for (finding, segment) in findings.iter().zip(&segments) {
        let name = segment.program.rsplit('/').next().unwrap_or_default();
        match &finding.allowed_by {
            Some(AllowedBy::Entry { .. }) => assert!(name.eq_ignore_ascii_case("rg")),
            Some(AllowedBy::SafeBin) => {
                assert!(safe_bins::DEFAULT.iter().any(|bin| bin.eq_ignore_ascii_case(name)));
                let names_file =
                    |word: &String| word.starts_with(['/', '~']) || Host.is_file(Path::new(word));
                assert!(!segment.arguments.iter().any(names_file));
            }
            Some(AllowedBy::Skill) => panic!("no skill has programs"),
            None => {}
        }
    }
});

/// What stands outside of quotes and escapes, read in another way than the analysis does.
fn unquoted(command: &str) -> String {
    let mut out = String::new();
    let mut rest = command;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '\\' => &after[after.chars().next().map_or(0, char::len_utf8)..],
            '\'' => after.split_once('\'').map_or("", |(_, rest)| rest),
            '"' => {
                let mut escaped = false;
                let end = after.find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                end.map_or("", |end| &after[end + 1..])
            }
            c => {
                out.push(c);
                after
            }
        };
    }
    out
}
