use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// Makes files, with their directories; a name that ends with a slash is a directory.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if name.ends_with('/') { fs::create_dir_all(path).unwrap() } else { fs::write(path, text).unwrap() }
    }
    dir
}

fn found(dir: &Path) -> Vec<String> {
    let files = scan(dir).files;
    files.iter().map(|file| file.strip_prefix(dir).unwrap().display().to_string()).collect()
}

#[test]
fn files_of_the_root_and_skill_files_below_are_found_in_order() {
    let dir = tree(&[
        ("zeta.md", ""),
        ("notes.txt", ""),
        ("b/SKILL.md", ""),
        ("b/other.md", ""),
        ("b/nested/deep/SKILL.md", ""),
        ("a/skill.md", ""),
        ("a-group/one/SKILL.md", ""),
        ("SKILL.md/SKILL.md", ""),
        (".hidden/SKILL.md", ""),
        (".hidden.md", ""),
        ("node_modules/x/SKILL.md", ""),
        ("b/node_modules/x/SKILL.md", ""),
        ("build/SKILL.md", ""),
    ]);
    assert_eq!(
        found(dir.path()),
        [
            "SKILL.md/SKILL.md",
            "a-group/one/SKILL.md",
            "b/SKILL.md",
            "b/nested/deep/SKILL.md",
            "build/SKILL.md",
            "zeta.md"
        ]
    );
    assert_eq!(found(&dir.path().join("none")), [""; 0]);
    assert_eq!(found(&dir.path().join("zeta.md")), [""; 0], "a file has nothing in it");
}

#[test]
fn what_ignore_files_name_is_left_out() {
    let dir = tree(&[
        (".gitignore", "/drafts/\n*.tmp.md\n# comment\n[bad\n"),
        (".ignore", "private\n!drafts/kept\n"),
        ("drafts/a/SKILL.md", ""),
        ("x/drafts/SKILL.md", ""),
        ("private/SKILL.md", ""),
        ("x/private/SKILL.md", ""),
        ("note.tmp.md", ""),
        ("note.md", ""),
        ("y/.fdignore", "one\n!private\n"),
        ("y/one/SKILL.md", ""),
        ("y/private/SKILL.md", ""),
        ("z/one/SKILL.md", ""),
    ]);
    assert_eq!(found(dir.path()), ["note.md", "x/drafts/SKILL.md", "y/private/SKILL.md", "z/one/SKILL.md"]);
}

#[test]
fn links_are_followed_and_loops_end() {
    let dir = tree(&[("real/SKILL.md", ""), ("real/sub/", "")]);
    let outside = tree(&[("far/SKILL.md", "")]);
    symlink(outside.path().join("far"), dir.path().join("linked")).unwrap();
    symlink(dir.path().join("real/SKILL.md"), dir.path().join("one.md")).unwrap();
    symlink("..", dir.path().join("real/sub/up")).unwrap();
    symlink(dir.path(), dir.path().join("real/sub/top")).unwrap();
    symlink("itself", dir.path().join("itself")).unwrap();
    symlink("nowhere", dir.path().join("nothing.md")).unwrap();
    assert_eq!(found(dir.path()), ["linked/SKILL.md", "one.md", "real/SKILL.md"]);
}

#[test]
fn what_is_no_file_in_a_files_place_is_told() {
    let dir = tree(&[("a/", "")]);
    nix::unistd::mkfifo(&dir.path().join("a/SKILL.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let found = scan(dir.path());
    assert!(found.files.is_empty());
    assert_eq!(
        found.problems,
        [(dir.path().join("a/SKILL.md"), "is not a regular file, left out".to_owned())]
    );
}

#[test]
fn one_huge_tree_hides_no_other() {
    let dir = tree(&[("z/SKILL.md", "")]);
    let huge = dir.path().join("a");
    fs::create_dir(&huge).unwrap();
    for number in 0..MAX_ENTRIES_EACH + 10 {
        fs::File::create(huge.join(number.to_string())).unwrap();
    }
    let found = scan(dir.path());
    assert_eq!(found.files, [dir.path().join("z/SKILL.md")]);
    assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
}

#[test]
fn what_comes_goes_or_changes_is_seen_and_what_programs_write_is_not() {
    let dir = tree(&[("a/SKILL.md", "1"), ("a/venv/SKILL.md", ""), (".gitignore", "")]);
    let look = |change: &dyn Fn()| {
        let seen = scan(dir.path()).seen;
        assert!(seen.still_holds());
        change();
        !seen.still_holds()
    };
    let path = |name: &str| dir.path().join(name);
    assert!(look(&|| fs::write(path("a/SKILL.md"), "22").unwrap()), "a file was written");
    assert!(look(&|| fs::create_dir(path("b")).unwrap()), "a directory came");
    assert!(look(&|| fs::write(path("b/SKILL.md"), "").unwrap()), "a skill came");
    assert!(look(&|| fs::write(path(".gitignore"), "b").unwrap()), "the rules changed");
    assert!(look(&|| fs::remove_file(path("a/SKILL.md")).unwrap()), "a file went");
    assert!(!look(&|| fs::write(path("a/venv/new"), "").unwrap()), "a program wrote");
    let gone = path("later");
    let seen = scan(&gone).seen;
    fs::create_dir(&gone).unwrap();
    assert!(!seen.still_holds(), "the root itself came");
}
