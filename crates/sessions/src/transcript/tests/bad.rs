//! Files that no program should have written, and people who write into ours.

use serde_json::json;

use super::*;
use crate::history;

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n";

fn entry(id: &str, parent: &Value, text: &str) -> String {
    let line = json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t",
        "message": {"role": "user", "content": text, "timestamp": 1}});
    line.to_string()
}

fn two() -> String {
    format!("{HEADER}{}\n{}\n", entry("a", &Value::Null, "one"), entry("b", &json!("a"), "two"))
}

/// Opens, says `next`, reads.
fn go_on(path: &Path) -> Vec<String> {
    let mut file = OpenTranscript::open_or_create_file(path, &new()).unwrap();
    say(&mut file, user("next"));
    texts(&OpenTranscript::open_file(path).unwrap().context().unwrap())
}

#[test]
fn odd_files_lose_nothing_that_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let (a, b) = (entry("a", &Value::Null, "one"), entry("b", &json!("a"), "two"));
    let garbage: Vec<u8> =
        (0..5000_u32).flat_map(|n| (n.wrapping_mul(2_654_435_761)).to_le_bytes()).collect();
    let rows: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("lines end as on Windows", two().replace('\n', "\r\n").into(), &["one", "two", "next"]),
        ("a byte order mark", format!("\u{feff}{}", two()).into(), &["one", "two", "next"]),
        ("no newline at the end", two().trim_end().into(), &["one", "two", "next"]),
        ("blanks at the end", format!("{}  ", two()).into(), &["one", "two", "next"]),
        ("no header", format!("{a}\n{b}\n").into(), &["one", "two", "next"]),
        ("no header, and torn", format!("{a}\n{b}\n{{\"ty").into(), &["one", "two", "next"]),
        ("a second header", format!("{HEADER}{a}\n{HEADER}{b}\n").into(), &["one", "two", "next"]),
        ("torn in a character", [two().as_bytes(), b"{\"type\":\"message\",\"x\":\"\xf0\x9f"].concat(), &["one", "two", "next"]),
        ("zeros", [two().as_bytes(), &[0; 5000]].concat(), &["one", "two", "next"]),
        ("zeros between", [HEADER.as_bytes(), a.as_bytes(), b"\n", &[0; 5000], b"\n", b.as_bytes(), b"\n"].concat(), &["one", "two", "next"]),
        ("garbage", garbage.clone(), &["next"]),
        ("garbage after the header", [HEADER.as_bytes(), &garbage].concat(), &["next"]),
        ("nothing", Vec::new(), &["next"]),
        ("an array", b"[]\n".to_vec(), &["next"]),
        ("a compaction without a summary", format!("{HEADER}{a}\n{{\"type\":\"compaction\",\"id\":\"c\",\"parentId\":\"a\",\"summary\":5}}\n").into(), &["one", "next"]),
        ("odd fields in a message", format!("{HEADER}{}\n", json!({"type": "message", "id": "a", "parentId": null, "message":
            {"role": "assistant", "content": "one", "usage": "much", "stopReason": "weather", "timestamp": "noon"}})).into(), &["one", "next"]),
        ("nested too deep", format!("{HEADER}{a}\n{{\"type\":\"x\",\"id\":\"d\",\"deep\":{}1{}}}\n{b}\n", "[".repeat(5000), "]".repeat(5000)).into(), &["one", "two", "next"]),
    ];
    for (name, bytes, expect) in rows {
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(go_on(&path), expect, "{name}");
        let shown = history::read(&TranscriptReader::of_file(&path), 10).unwrap();
        assert_eq!(shown.len(), expect.len(), "{name}");
        for backup in backups(dir.path()) {
            std::fs::remove_file(backup).unwrap();
        }
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_file_that_lacks_only_its_header_is_shown_and_given_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let text = format!("{}\n", entry("b", &json!("gone"), "two"));
    std::fs::write(&path, &text).unwrap();
    assert_eq!(history::read(&TranscriptReader::of_file(&path), 10).unwrap().len(), 1);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "reading changes nothing");
    assert_eq!(go_on(&path), ["two", "next"]);
    assert_eq!(std::fs::read_to_string(&backups(dir.path())[0]).unwrap(), text);
    assert_eq!(lines(&path)[0]["id"], "s");
}

#[test]
fn what_is_no_file_is_a_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::create_dir(&path).unwrap();
    let error = OpenTranscript::open_or_create_file(&path, &new()).unwrap_err().to_string();
    let expect =
        format!("cannot open the transcript {0}: {0} is a directory, not a regular file", path.display());
    assert!(error.starts_with(&expect), "{error}");
    assert!(
        history::read(&TranscriptReader::of_file(&path), 5).is_err()
            && history::first_user_text(&TranscriptReader::of_file(&path)).is_err()
    );
    #[cfg(unix)]
    {
        // Reading a pipe that nobody writes into would never end.
        std::fs::remove_dir(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(OpenTranscript::open_or_create_file(&path, &new()).is_err());
        assert!(history::read(&TranscriptReader::of_file(&path), 5).is_err());
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_a_clear_error() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, two()).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    // For root there is no such file.
    if std::fs::File::open(&path).is_err() {
        let error = OpenTranscript::open_or_create_file(&path, &new()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot open the transcript {}: ", path.display())), "{error}");
        assert!(history::read(&TranscriptReader::of_file(&path), 5).is_err());
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), two());
}

#[test]
fn a_file_that_is_changed_under_our_hands_is_read_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let other = format!("{HEADER}{}\n", entry("z", &Value::Null, "quite another text than before"));
    type Change<'a> = (&'a str, Box<dyn Fn() + 'a>, &'a [&'a str]);
    let changes: Vec<Change<'_>> = vec![
        (
            "emptied and filled",
            Box::new(|| std::fs::write(&path, &other).unwrap()),
            &["quite another text than before", "next"],
        ),
        (
            "made longer",
            Box::new(|| std::fs::write(&path, other.repeat(9)).unwrap()),
            &["quite another text than before", "next"],
        ),
        (
            "cut in a line",
            Box::new(|| {
                let file = std::fs::File::options().write(true).open(&path).unwrap();
                file.set_len(two().len() as u64 - 5).unwrap();
            }),
            &["one", "next"],
        ),
        (
            "replaced",
            Box::new(|| {
                std::fs::write(dir.path().join("new"), &other).unwrap();
                std::fs::rename(dir.path().join("new"), &path).unwrap();
            }),
            &["quite another text than before", "next"],
        ),
    ];
    for (name, change, expect) in changes {
        std::fs::write(&path, two()).unwrap();
        let mut held = OpenTranscript::open_file(&path).unwrap();
        held.sync().unwrap();
        change();
        assert!(!held.is_untouched(), "{name}");
        say(&mut held, user("next"));
        let shown = texts(&held.context().unwrap());
        assert_eq!(shown, expect, "{name}");
        assert_eq!(texts(&OpenTranscript::open_file(&path).unwrap().context().unwrap()), expect, "{name}");
    }
    // As long as before, and not synced since: found out when it is read.
    std::fs::write(&path, two()).unwrap();
    let mut held = OpenTranscript::open_file(&path).unwrap();
    std::fs::write(&path, two().replace("\"a\"", "\"q\"").replace("one", "1st")).unwrap();
    assert_eq!(texts(&held.context().unwrap()), ["1st", "two"]);
    std::fs::write(&path, "").unwrap();
    assert!(matches!(held.refresh(), Err(TranscriptError::NotATranscript(_))));
    std::fs::remove_file(&path).unwrap();
    let gone = held.refresh();
    assert!(matches!(gone, Err(TranscriptError::Missing(_))), "{gone:?}");
    assert!(!path.exists(), "what somebody removed stays away");
}

#[test]
fn a_line_of_fifty_megabytes_costs_neither_the_line_nor_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let huge = "x".repeat(50 * 1024 * 1024);
    std::fs::write(&path, format!("{}{}\n", two(), entry("c", &json!("b"), &huge))).unwrap();
    let shown = go_on(&path);
    assert_eq!(shown.iter().map(String::len).collect::<Vec<_>>(), [3, 3, huge.len(), 4]);
    assert_eq!(history::last_text(&TranscriptReader::of_file(&path), 10).unwrap().as_deref(), Some("next"));
    // The huge line is out of the reach of previews, and a marker stands for it in a history.
    assert_eq!(history::preview(&TranscriptReader::of_file(&path), 10, 100).unwrap().len(), 1);
    let read = history::read(&TranscriptReader::of_file(&path), 10).unwrap();
    let marked: Vec<bool> = read.iter().map(|message| message.get().contains("\"omitted\"")).collect();
    assert_eq!(marked, [false, false, true, false]);
}

/// Longer than any line that is read: it stays where it is, and so does what is around it.
#[test]
fn a_line_that_is_too_long_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let huge = "x".repeat(scan::MAX_LINE_BYTES + 5);
    let text = format!("{}{}\n{}\n", two(), entry("c", &json!("b"), &huge), entry("d", &json!("c"), "three"));
    std::fs::write(&path, &text).unwrap();
    assert_eq!(go_on(&path), ["one", "two", "three", "next"]);
    assert_eq!(history::read(&TranscriptReader::of_file(&path), 10).unwrap().len(), 4);
    assert!(std::fs::metadata(&path).unwrap().len() > text.len() as u64);
    assert!(backups(dir.path()).is_empty());
}
