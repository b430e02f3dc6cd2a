use super::super::executable::Files;
use super::*;

mod hostile;

/// A host with these files: programs are executable, those below `/usr` nobody but root can change.
struct Host;

const PROGRAMS: &[&str] = &[
    "/usr/bin/rg",
    "/usr/bin/wc",
    "/usr/bin/jq",
    "/usr/bin/grep",
    "/usr/bin/cut",
    "/usr/bin/sort",
    "/usr/bin/uniq",
    "/usr/bin/head",
    "/usr/bin/tail",
    "/usr/bin/tr",
    "/usr/bin/rm",
    "/usr/bin/echo",
    "/usr/bin/env",
    "/usr/bin/sudo",
    "/usr/bin/xargs",
    "/usr/bin/sh",
    "/usr/bin/bash",
    "/usr/bin/python3.11",
    "/usr/bin/find",
    "/usr/bin/cat",
    "/usr/bin/command",
    "/usr/bin/printf",
    "/usr/bin/test",
    "/usr/bin/nice",
    "/usr/bin/timeout",
    "/usr/bin/ssh",
    "/usr/bin/tee",
    "/usr/bin/[",
    "/usr/bin/doas",
    "/usr/bin/nohup",
    "/usr/bin/time",
    "/usr/bin/-n",
    "/home/o/bin/tool",
    "/home/o/bin/wc",
    "/home/o/bin/sub/deep",
    "/w/wc",
    "/w/rg",
    "/w/node_modules/.bin/skill",
    "/usr/local/bin/summarize",
    "/opt/loose/head",
];

impl Files for Host {
    fn is_executable(&self, path: &Path) -> bool {
        let path = openclaw_config::without_dots(path);
        PROGRAMS.iter().any(|program| path == Path::new(program))
    }
    fn is_file(&self, path: &Path) -> bool {
        self.is_executable(path) || path == Path::new("/w/notes.txt") || path == Path::new("/w/dir/x")
    }
    fn is_directory(&self, _: &Path) -> bool {
        false
    }
    fn interpreter_words(&self, path: &Path) -> Vec<String> {
        let words: &[&str] = match path.to_str() {
            Some("/w/node_modules/.bin/skill") => &["/usr/bin/env", "tool"],
            Some("/home/o/bin/sub/deep") => &["/usr/bin/sh"],
            _ => &[],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
    fn is_protected(&self, path: &Path) -> bool {
        path.starts_with("/usr")
    }
    fn content(&self, path: &Path) -> Content {
        match path.to_str() {
            Some("/w/wc") => Content::Unknown,
            Some(path) => Content::Sha256(format!("of {path}")),
            None => Content::Nothing,
        }
    }
}

const PATH: &str = "/usr/local/bin:/usr/bin";

struct Setup {
    patterns: &'static [&'static str],
    safe_bins: &'static [&'static str],
    skills: &'static [&'static str],
    path: &'static str,
    shell: &'static str,
    sets_variables: bool,
}

const PLAIN: Setup = Setup {
    patterns: &["/usr/bin/rg", "~/bin/*"],
    safe_bins: safe_bins::DEFAULT,
    skills: &[],
    path: PATH,
    shell: "/bin/sh",
    sets_variables: false,
};

fn judged(setup: &Setup, command: &str) -> Evaluation {
    let allowlist: Vec<AllowlistEntry> = setup
        .patterns
        .iter()
        .map(|pattern| AllowlistEntry {
            id: format!("id of {pattern}"),
            pattern: (*pattern).to_owned(),
            ..AllowlistEntry::default()
        })
        .collect();
    let safe_bins: Vec<String> = setup.safe_bins.iter().map(|bin| (*bin).to_owned()).collect();
    let skill_bins = setup.skills.iter().map(|bin| (*bin).to_owned()).collect();
    evaluate(
        command,
        Rules { allowlist: &allowlist, safe_bins: &safe_bins, skill_bins: &skill_bins },
        surroundings(setup),
    )
}

fn surroundings(setup: &Setup) -> Surroundings<'_> {
    Surroundings {
        shell: Path::new(setup.shell),
        path: setup.path,
        cwd: Path::new("/w"),
        home: Path::new("/home/o"),
        sets_variables: setup.sets_variables,
        writable: &[],
        is_root: false,
        files: &Host,
    }
}

fn satisfied(setup: &Setup, command: &str) -> bool {
    judged(setup, command).is_satisfied()
}

#[test]
fn the_table_of_the_specification_holds() {
    for (command, is_analysable, is_satisfied) in [
        ("/usr/bin/rg x", true, true),
        ("rg x", true, true),
        ("rg x | wc -l", true, true),
        ("rg x && rm y", true, false),
        (r#"echo "a && b""#, true, false),
        (r#"echo "$(id)""#, false, false),
        ("a > b", false, false),
        ("foo &&", false, false),
        ("head -n 5 notes.txt", true, false),
        ("jq . -", true, true),
        ("~/bin/tool", false, false),
        ("/home/o/bin/tool x", true, true),
        ("/home/o/bin/sub/deep", true, false),
    ] {
        let found = judged(&PLAIN, command);
        assert_eq!(found.findings.is_ok(), is_analysable, "{command}");
        assert_eq!(found.is_satisfied(), is_satisfied, "{command}");
    }
}

#[test]
fn each_program_has_its_finding() {
    let setup = Setup { skills: &["summarize"], ..PLAIN };
    let found = judged(&setup, "rg x | wc -l && summarize notes.txt ; rm y || nowhere ; rm z; env rm");
    let finding = |resolved: Option<&str>, allowed_by| Finding {
        resolved: resolved.map(PathBuf::from),
        allowed_by,
        extent: Extent::Path,
    };
    let pattern = "/usr/bin/rg".to_owned();
    let rg = AllowedBy::Entry { id: format!("id of {pattern}"), pattern };
    assert_eq!(
        found.findings.as_deref(),
        Ok([
            finding(Some("/usr/bin/rg"), Some(rg)),
            finding(Some("/usr/bin/wc"), Some(AllowedBy::SafeBin)),
            finding(Some("/usr/local/bin/summarize"), Some(AllowedBy::Skill)),
            finding(Some("/usr/bin/rm"), None),
            finding(None, None),
            finding(Some("/usr/bin/rm"), None),
            finding(Some("/usr/bin/env"), None),
        ]
        .as_slice())
    );
    assert_eq!(found.first_resolved(), Some(Path::new("/usr/bin/rg")));
    let rm = Remembered { pattern: "/usr/bin/rm", sha256: None };
    assert_eq!(found.to_allow_always(), [rm], "once, and none that runs others");
    assert_eq!(found.used_entries(), [("/usr/bin/rg", Path::new("/usr/bin/rg"))]);
    let refused = judged(&setup, "a $b");
    assert!(refused.first_resolved().is_none() && refused.to_allow_always().is_empty());
}

#[test]
fn a_program_that_tools_can_change_is_remembered_by_its_content() {
    let none = Setup { patterns: &[], ..PLAIN };
    for (command, expect) in [
        ("./rg x", vec![("/w/rg", Some("of /w/rg"))]),
        ("/home/o/bin/tool", vec![("/home/o/bin/tool", Some("of /home/o/bin/tool"))]),
        ("/opt/loose/head", vec![("/opt/loose/head", Some("of /opt/loose/head"))]),
        ("rg x", vec![("/usr/bin/rg", None)]),
        // The content of the file is unknown.
        ("./wc", vec![]),
    ] {
        let found = judged(&none, command);
        let remembered = found.to_allow_always().into_iter().map(|found| (found.pattern, found.sha256));
        assert_eq!(remembered.collect::<Vec<_>>(), expect, "{command}");
    }
}

#[test]
fn behind_a_change_of_directory_nothing_is_remembered_that_depends_on_it() {
    let none = Setup { patterns: &[], ..PLAIN };
    for (command, path, expect) in [
        ("cd sub && ./rg x", PATH, vec![]),
        ("pushd sub; ./rg x", PATH, vec![]),
        ("cd sub; popd; ./rg x", PATH, vec![]),
        ("command cd sub && ./rg x", PATH, vec![]),
        (". ./env && ./rg x", PATH, vec![]),
        ("cd sub && rg x", "/usr/bin:.", vec![]),
        ("env -C sub ./rg x", PATH, vec![]),
        ("(cd sub && ./rg x)", PATH, vec![]),
        ("sh -c 'cd sub && ./rg x'", PATH, vec![]),
        ("./rg x && cd sub", PATH, vec!["/w/rg"]),
        ("test -e y && ./rg x", PATH, vec!["/w/rg"]),
        ("cd sub && rg x && /opt/loose/head", PATH, vec!["/usr/bin/rg", "/opt/loose/head"]),
    ] {
        let found = judged(&Setup { path, ..none }, command);
        let remembered = found.to_allow_always().into_iter().map(|found| found.pattern);
        assert_eq!(remembered.collect::<Vec<_>>(), expect, "{command}");
    }
}

#[test]
fn an_interpreter_that_tools_can_change_is_part_of_the_content() {
    let setup = Setup { path: "/usr/bin:/home/o/bin", ..PLAIN };
    let of = |path: &str| Content::Sha256(format!("of {path}"));
    let (script, other) = ("/w/node_modules/.bin/skill", "/home/o/bin/sub/deep");
    let with = |path: &str| surroundings(&setup).content_of(Path::new(path));
    assert_eq!(with(script), of(script).with(of("/home/o/bin/tool")));
    assert_ne!(with(script), of(script).with(of("/home/o/bin/wc")));
    assert_eq!(with(other), of(other), "root alone can change its interpreter");
    assert_eq!(of(script).with(Content::Unknown), Content::Unknown);
}

#[test]
fn as_root_every_program_is_remembered_by_its_content() {
    let rules = Rules { allowlist: &[], safe_bins: &[], skill_bins: &Default::default() };
    let found = evaluate("rg x", rules, Surroundings { is_root: true, ..surroundings(&PLAIN) });
    assert_eq!(
        found.to_allow_always(),
        [Remembered { pattern: "/usr/bin/rg", sha256: Some("of /usr/bin/rg") }]
    );
}

#[test]
fn an_entry_with_a_content_allows_nothing_else() {
    let of = |sha256: Option<&str>| {
        let sha256 = sha256.map(str::to_owned);
        let allowlist = [AllowlistEntry { pattern: "/w/rg".to_owned(), sha256, ..AllowlistEntry::default() }];
        let rules = Rules { allowlist: &allowlist, safe_bins: &[], skill_bins: &Default::default() };
        evaluate("./rg x", rules, surroundings(&PLAIN)).is_satisfied()
    };
    assert_eq!([None, Some("of /w/rg"), Some("of another")].map(of), [true, true, false]);
}

#[test]
fn safe_bins_work_on_what_is_piped_into_them() {
    for command in [
        "jq .",
        "jq .a.b",
        "jq -r '.[] | select(.a != 1) | .b'",
        "jq -rc --arg x y '.[$x]'",
        "jq --indent 2 . -",
        "jq -n --argjson a 1 '$a'",
        "jq .environment",
        "grep x",
        "grep -in x",
        "grep -v -e a -e b",
        "grep -ea -A2 -B 3",
        "grep --regexp=a --color=never",
        "grep --max-count 3 x",
        "grep x -",
        "grep -- -x",
        "cut -d, -f1",
        "cut -d , -f 1,2 --output-delimiter=:",
        "cut -c1-5 -",
        "sort",
        "sort -rnk2 -t,",
        "sort -k 2,2n -u",
        "sort --reverse --key=2",
        "uniq -c",
        "uniq -f 1 -w5",
        "uniq --all-repeated=separate",
        "head",
        "head -5",
        "head -n 5",
        "head -n5 -",
        "head --lines=5",
        "tail -n +3",
        "tail -20",
        "tail -c 100",
        "tr a b",
        "tr -d '\\n'",
        "tr -cs '[:alnum:]' ' '",
        "wc",
        "wc -lw",
        "wc -l -",
        "/usr/bin/wc -l",
        "wc -l | sort -n && rg x ; head -1",
    ] {
        assert!(satisfied(&PLAIN, command), "{command}");
    }
}

#[test]
fn the_owner_lists_what_runs_others() {
    let setup = Setup { patterns: &["/usr/bin/env", "/usr/bin/ba*"], ..PLAIN };
    assert!(satisfied(&setup, "env rm x"));
    assert!(satisfied(&setup, "bash -c 'rm x'"));
    assert!(!satisfied(&setup, "sudo env"));
}

#[test]
fn configured_safe_bins_take_the_place_of_the_others() {
    let setup = Setup { safe_bins: &["cat", " WC "], ..PLAIN };
    assert!(satisfied(&setup, "cat"));
    assert!(satisfied(&setup, "cat | wc -l"));
    for command in ["cat -n", "cat x", "cat -", "head", "sort"] {
        assert!(!satisfied(&setup, command), "{command}");
    }
    let setup = Setup { safe_bins: &["sh", "env", "xargs", "bash", "python3.11", "tee", "sudo"], ..PLAIN };
    for command in ["sh", "env", "xargs", "bash", "python3.11", "tee", "sudo"] {
        assert!(!satisfied(&setup, command), "{command} runs what it is given");
    }
}

#[test]
fn programs_of_skills_count_by_their_bare_name() {
    let setup = Setup {
        skills: &["summarize", "skill", "env", "python3.11"],
        path: "/usr/local/bin:/usr/bin:/w/node_modules/.bin",
        ..PLAIN
    };
    assert!(satisfied(&setup, "summarize notes.txt"));
    for command in ["/usr/local/bin/summarize x", "skill x", "env rm", "python3.11 x", "Summarize x"] {
        assert!(!satisfied(&setup, command), "{command}");
    }
    assert!(!satisfied(&PLAIN, "summarize notes.txt"));
}
