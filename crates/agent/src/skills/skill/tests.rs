use std::fs;

use super::super::install_option::{Download, Installer};
use super::*;
use crate::skills::testing;

fn fixture(name: &str) -> ReadSkill {
    let path = format!("{}/src/skills/skill/fixtures/{name}.md", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let settings = MarkdownDocument::parse(&text).unwrap().frontmatter;
    let at = format!("/w/skills/{name}/SKILL.md");
    of(Path::new(&at), SkillSource::Workspace, &settings).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Files in the forms that people write them in, each read whole.
#[test]
fn files_in_the_forms_of_the_community_are_read() {
    let text = |text: &str| Some(text.to_owned());
    let emoji = |emoji: &str, skill: Skill| Skill { emoji: Some(emoji.to_owned()), ..skill };
    let described =
        |name: &str, description: &str| Skill { description: description.to_owned(), ..testing::skill(name) };
    let bins = |bins: &[&str]| Requirements { bins: list(bins), ..Requirements::default() };
    let installer = |id: &str, installer: Installer, label: Option<&str>, bins: &[&str]| InstallSpec {
        id: id.to_owned(),
        installer,
        label: label.map(str::to_owned),
        bins: list(bins),
        os: Vec::new(),
    };
    let brew = |formula: &str| Installer::Brew { formula: Some(formula.to_owned()), is_cask: false };
    let archive = |url: &str, strip_components, dir: &str| {
        Installer::Download(Download {
            url: Some(url.to_owned()),
            archive: Some("tar.bz2".to_owned()),
            extract: Some(true),
            strip_components,
            target_dir: Some(dir.to_owned()),
        })
    };
    let github = "Work with GitHub through the `gh` CLI. Use `gh issue`, `gh pr`, `gh run` and `gh api` for issues, PRs and CI runs.";
    let expect = [
        Skill {
            homepage: text("https://wttr.in/:help"),
            requirements: bins(&["curl"]),
            ..emoji(
                "🌤️",
                described(
                    "weather",
                    "Get the current weather and a forecast for a place (no API key needed).",
                ),
            )
        },
        Skill {
            requirements: bins(&["gh"]),
            install: vec![installer("brew", brew("gh"), Some("Install GitHub CLI (brew)"), &["gh"])],
            ..emoji("🐙", described("github", github))
        },
        Skill {
            strictness: Strictness::PlatformOnly,
            requirements: Requirements {
                os: list(&["darwin", "linux"]),
                any_bins: list(&["rg", "grep"]),
                config: list(&["memory.enabled"]),
                ..Requirements::default()
            },
            ..emoji("📝", described("notes-yaml", "Keep short notes in a folder and find them again."))
        },
        Skill {
            homepage: text("https://example.com/images"),
            primary_env: text("IMAGE_API_KEY"),
            requirements: Requirements { env: list(&["IMAGE_API_KEY"]), ..bins(&["python3"]) },
            install: vec![installer(
                "python-brew",
                brew("python"),
                Some("Install Python (brew)"),
                &["python3"],
            )],
            ..emoji("🖼️", described("image-gen", "Draw pictures in batches: prompts, sizes, a gallery page."))
        },
        Skill {
            requirements: Requirements {
                env: list(&["TTS_RUNTIME_DIR", "TTS_MODEL_DIR"]),
                os: list(&["darwin", "linux", "win32"]),
                ..Requirements::default()
            },
            install: vec![
                InstallSpec {
                    os: list(&["linux"]),
                    ..installer(
                        "runtime-linux",
                        archive("https://example.com/v1/runtime-linux-x64.tar.bz2", 1, "runtime"),
                        Some("Download the runtime"),
                        &[],
                    )
                },
                installer(
                    "voice",
                    archive("https://example.com/v1/voice.tar.bz2", 0, "models"),
                    Some("Download a voice"),
                    &[],
                ),
            ],
            ..emoji("🗣️", described("tts-local", "Speak texts on this machine, without a network."))
        },
        Skill {
            key: "open-prose".to_owned(),
            for_model: ForModel::Hidden,
            command: CommandUse::Tool("exec".to_owned()),
            ..described("prose", "Multi-step programs in plain words. Activate on any `prose` command.")
        },
        described("plain", "First line.\nSecond line: with a colon."),
        Skill {
            requirements: bins(&["a", "b"]),
            primary_env: text("KEY"),
            command: CommandUse::None,
            ..described("windows", "Written on Windows.")
        },
        Skill {
            homepage: text("https://example.com"),
            install: vec![installer(
                "node-0",
                Installer::Node { package: text("clawhub") },
                None,
                &["clawhub"],
            )],
            ..emoji("📦", described("quoted", "It's \"quoted\" & <tagged>"))
        },
        Skill {
            requirements: bins(&["a"]),
            ..emoji("🪟", described("opened-on-the-line", "The object begins on the line of its key."))
        },
        Skill {
            requirements: Requirements { env: list(&["PLACES_KEY"]), ..bins(&["goplaces"]) },
            primary_env: text("PLACES_KEY"),
            install: vec![
                installer("brew", brew("a/tap/goplaces"), None, &["goplaces"]),
                installer(
                    "go-1",
                    Installer::Go { module: text("example.com/cmd/goplaces@latest") },
                    None,
                    &["goplaces"],
                ),
            ],
            ..emoji("📍", described("places", "Search for places; ask for details."))
        },
    ];
    for skill in expect {
        let read = fixture(&skill.name);
        assert_eq!(read, ReadSkill { skill, oddities: Vec::new() });
    }
}

#[test]
fn a_skill_with_broken_metadata_is_loaded_without_and_says_so() {
    let read = fixture("broken-metadata");
    assert!(read.skill.requirements.is_empty());
    let [oddity] = read.oddities.as_slice() else { panic!("{:?}", read.oddities) };
    assert!(
        oddity.starts_with("`metadata` can't be read")
            && oddity.ends_with("; the skill is loaded without it"),
        "{oddity}"
    );
}

#[test]
fn names_and_descriptions_against_the_rules_are_odd_and_loaded() {
    let odd = |name: &str, directory: &str, description: &str| oddities(name, directory, description).len();
    assert_eq!(odd("a-1", "a-1", "x"), 0);
    for (name, directory) in
        [("a", "b"), ("A", "A"), ("-a", "-a"), ("a-", "a-"), ("a--b", "a--b"), ("a_b", "a_b")]
    {
        assert_eq!(odd(name, directory, "x"), 1, "{name} in {directory}");
    }
    let long = "a".repeat(65);
    assert_eq!(odd(&long, &long, &"x".repeat(1_025)), 2);
    assert_eq!(odd(&long[1..], &long[1..], &"x".repeat(1_024)), 0);
    assert_eq!(one_line(" a\n\u{7}b \u{2028}c "), "a b c");
}

fn read_text(name: &str, text: &[u8]) -> Result<ReadSkill, NoSkill> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name).join("SKILL.md");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    read(&path, SkillSource::Managed)
}

#[test]
fn files_that_are_no_skills_say_why() {
    for text in [
        "",
        "# Title\n",
        "---\nname: x\n---\n",
        "---\ndescription: \" \"\n---\n",
        "---\ndescription: never ends\n",
    ] {
        assert_eq!(read_text("x", text.as_bytes()), Err(NoSkill::NoDescription), "{text:?}");
    }
    let endless = format!("---\ndescription: x\n{}", "filler: y\n".repeat(20_000));
    let too_long = Err(NoSkill::Frontmatter(FrontmatterError::TooLong));
    assert_eq!(read_text("x", endless.as_bytes()), too_long);
    assert_eq!(read_text("x", format!("{endless}---\n").as_bytes()), too_long);
    let missing = read(Path::new("/nowhere/SKILL.md"), SkillSource::Managed);
    assert!(matches!(missing, Err(NoSkill::Unreadable(_))), "{missing:?}");
    // A bomb of aliases is no YAML to us; the lines of the block still count.
    let mut bomb = "---\ndescription: boom\na: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (next, last) in ('b'..='j').zip('a'..) {
        bomb += &format!(
            "{next}: &{next} [*{last},*{last},*{last},*{last},*{last},*{last},*{last},*{last},*{last}]\n"
        );
    }
    assert_eq!(read_text("x", format!("{bomb}---\n").as_bytes()).unwrap().skill.description, "boom");
}

#[test]
fn strange_bytes_and_huge_files_are_no_obstacle() {
    let skill = read_text("x", b"---\ndescription: caf\xe9 \xff\n---\n").unwrap().skill;
    assert_eq!((skill.name.as_str(), skill.description.as_str()), ("x", "caf\u{fffd} \u{fffd}"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("SKILL.md");
    let file = fs::File::create(&path).unwrap();
    std::io::Write::write_all(&mut &file, b"---\nname: huge\ndescription: Big\n---\n").unwrap();
    file.set_len(50 << 20).unwrap();
    assert_eq!(read(&path, SkillSource::Managed).unwrap().skill.name, "huge");
}

#[test]
fn dispatch_without_a_tool_asks_the_agent() {
    let of = |settings: &str| {
        let text = format!("---\nname: x\ndescription: d\n{settings}\n---\n");
        let read = read_text("x", text.as_bytes()).unwrap();
        (read.skill.command, read.oddities.len())
    };
    assert_eq!(of("command-dispatch: tool"), (CommandUse::Prompt, 1));
    assert_eq!(of("command-dispatch: other\ncommand-tool: exec"), (CommandUse::Prompt, 0));
    assert_eq!(of("command-tool: exec"), (CommandUse::Prompt, 0));
    assert_eq!(of("command-dispatch: Tool\ncommand-tool: exec\nuser-invocable: no"), (CommandUse::None, 0));
}
