use std::os::unix::fs::symlink;

use super::*;
use crate::tests::golden;

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn found(roots: &Roots) -> Vec<String> {
    roots.scan().files.into_iter().map(|file| file.path).collect()
}

#[test]
fn finds_the_files_of_the_recorded_corpus() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = golden("memory-corpus.json");
    for (path, text) in corpus["files"].as_object().unwrap() {
        write(&dir.path().join(path), text.as_str().unwrap());
    }
    let expect: Vec<&str> = corpus["expected_indexed_files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect();
    let mut found = found(&Roots::new(dir.path(), &["notes".to_owned()]));
    found.sort();
    assert_eq!(found, expect);
}

#[test]
fn follows_no_link_enters_no_ignored_directory_and_finds_each_file_once() {
    let dir = tempfile::tempdir().unwrap();
    let (ws, out) = (dir.path().join("ws"), dir.path().join("team"));
    write(&ws.join("memory/a.md"), "a");
    write(&ws.join("memory/b.MD"), "capital");
    write(&ws.join("memory/.venv/x.md"), "ignored");
    write(&ws.join("memory/node_modules/x.md"), "ignored");
    write(&out.join("team.md"), "team");
    write(&out.join("big.md"), &"x".repeat(usize::try_from(LARGEST_FILE).unwrap() + 1));
    symlink(&out, ws.join("memory/link")).unwrap();
    symlink(out.join("team.md"), ws.join("memory/link.md")).unwrap();
    symlink(&out, dir.path().join("linked-root")).unwrap();
    let extra = ["../team", "./memory", "../linked-root", "../missing", " "].map(str::to_owned);
    let roots = Roots::new(&ws, &extra);
    assert_eq!(found(&roots), ["memory/a.md", "../team/team.md"]);
    let scan = roots.scan();
    assert_eq!(
        scan.issues,
        [
            "../team/big.md is larger than 2 MiB and not indexed",
            "additional memory path missing (../missing)"
        ]
    );
    assert!(scan.is_gone("memory/gone.md"));
}

#[test]
fn a_missing_workspace_deletes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let scan = Roots::new(&dir.path().join("gone"), &[]).scan();
    assert!(scan.files.is_empty() && !scan.is_gone("MEMORY.md"));
}

#[test]
fn a_pipe_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("memory/a.md"), "a");
    let pipe = dir.path().join("memory/pipe.md");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let roots = Roots::new(dir.path(), &[]);
    assert_eq!(found(&roots), ["memory/a.md"]);
    assert_eq!(
        roots.readable("memory/pipe.md").unwrap().open().unwrap_err().kind(),
        io::ErrorKind::InvalidInput
    );
}

#[test]
fn extra_paths_are_resolved_and_deduplicated() {
    let extra = [" notes ", "./notes", "/shared-notes", "/shared-notes", ""].map(str::to_owned);
    let roots = Roots::new(Path::new("/ws"), &extra);
    assert_eq!(roots.extra, [PathBuf::from("/ws/notes"), PathBuf::from("/shared-notes")]);
}

#[test]
fn memory_paths_are_those_recorded() {
    for row in golden("memory-text.json")["is_memory_path"].as_array().unwrap() {
        assert_eq!(is_memory_path(row[0].as_str().unwrap()), row[1].as_bool().unwrap(), "{row}");
    }
}

#[test]
fn twenty_thousand_levels_of_names_are_normalised() {
    let path = format!("memory/{}", "../".repeat(20_000));
    assert_eq!(Roots::new(Path::new("/ws"), &[]).readable(&path), Err(Refusal::NotMemory));
}
