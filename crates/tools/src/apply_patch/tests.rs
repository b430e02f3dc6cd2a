use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use openclaw_protocol::message::Block;
use proptest::prelude::*;

use super::*;
use crate::path::Confinement;

/// A workspace with files.
pub(super) struct Workspace(pub(super) tempfile::TempDir);

impl Workspace {
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Self(dir)
    }

    pub(super) fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn resolver(&self) -> Resolver {
        Resolver::new(self.path("home"), self.0.path().to_owned(), Confinement::Host)
    }

    fn confined(&self) -> Resolver {
        let root = self.0.path().to_owned();
        Resolver::new(self.path("home"), root.clone(), Confinement::Within(root))
    }

    /// Lists everything in the directory: names of directories end with `/`, links are shown with
    /// their targets.
    pub(super) fn tree(&self) -> BTreeMap<String, String> {
        let mut tree = BTreeMap::new();
        walk(self.0.path(), "", &mut tree);
        tree
    }
}

fn walk(dir: &Path, prefix: &str, tree: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            walk(&path, &format!("{name}/"), tree);
            tree.insert(format!("{name}/"), String::new());
        } else if metadata.is_symlink() {
            tree.insert(name, format!("-> {}", fs::read_link(&path).unwrap().display()));
        } else {
            let mode = metadata.permissions().mode() & 0o777;
            let content = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            tree.insert(name, format!("{mode:o} {content}"));
        }
    }
}

fn call(body: &str, resolver: &Resolver) -> Result<ToolOutput, String> {
    let input = format!("*** Begin Patch\n{body}\n*** End Patch");
    patch(&input, resolver, &CancellationToken::new()).map_err(|error| error.to_string())
}

/// Lines `A p`, `M p`, `D p` of a result, which has the same paths in its details.
fn reported(result: Result<ToolOutput, String>) -> String {
    let output = result.unwrap();
    let [Block::Text(block)] = output.content.as_slice() else { panic!("{output:?}") };
    let lines = block.text.strip_prefix("Success. Updated the following files:\n").unwrap();
    let paths = |mark: &str| lines.lines().filter_map(|line| line.strip_prefix(mark)).collect::<Vec<_>>();
    let summary = json!({"added": paths("A "), "modified": paths("M "), "deleted": paths("D ")});
    assert_eq!(output.details, Some(json!({"summary": summary})));
    lines.to_owned()
}

/// The table of the reference, and what goes together in one patch.
#[test]
fn a_patch_changes_files_and_reports_them() {
    for (files, body, report, after) in [
        (&[][..], "*** Add File: hello.txt\n+hello", "A hello.txt", &[("hello.txt", "hello\n")][..]),
        (
            &[("source.txt", "foo\nbar\n")],
            "*** Update File: source.txt\n*** Move to: dest.txt\n@@\n foo\n-bar\n+baz",
            "M dest.txt",
            &[("dest.txt", "foo\nbaz\n")],
        ),
        (
            &[("end.txt", "line1\n")],
            "*** Update File: end.txt\n@@\n+line2\n*** End of File",
            "M end.txt",
            &[("end.txt", "line1\nline2\n")],
        ),
        (&[("a.txt", "x\n"), ("b", "y")], "*** Delete File: a.txt", "D a.txt", &[("b", "y")]),
        // A new file in new directories, over an existing file, and an empty one.
        (
            &[("b", "old")],
            "*** Add File: d/e/a\n+x\n*** Add File: @b\n+new\n*** Add File: c",
            "A d/e/a\nA @b\nA c",
            &[("b", "new\n"), ("c", ""), ("d/e/a", "x\n")],
        ),
        // The same file several times, under several names.
        (
            &[("a", "1\n2\n")],
            "*** Update File: a\n-1\n+one\n*** Update File: ./a\n one\n-2\n+two\n*** Update File: d/../a\n*** Move to: b\n@@\n+3",
            "M a\nM b",
            &[("b", "one\ntwo\n3\n")],
        ),
        (&[], "*** Add File: a\n+1\n*** Update File: a\n-1\n+2", "A a\nM a", &[("a", "2\n")]),
        // Away and made again; the freed name taken by another.
        (
            &[("a", "1\n"), ("b", "2\n"), ("c", "3\n")],
            "*** Delete File: a\n*** Update File: b\n*** Move to: a\n 2\n*** Add File: b\n+4\n*** Delete File: c",
            "A b\nM a\nD a\nD c",
            &[("a", "2\n"), ("b", "4\n")],
        ),
        // Moved over a file, and onto itself.
        (&[("a", "1\n"), ("b", "2\n")], "*** Update File: a\n*** Move to: b\n-1\n+3", "M b", &[("b", "3\n")]),
        (&[("a", "1\n")], "*** Update File: a\n*** Move to: ./a\n-1\n+3", "M a", &[("a", "3\n")]),
    ] {
        let workspace = Workspace::with(files);
        assert_eq!(reported(call(body, &workspace.resolver())), report.replace('@', ""), "{body}");
        assert_eq!(workspace.tree(), Workspace::with(after).tree(), "{body}");
        let confined = Workspace::with(files);
        assert_eq!(reported(call(body, &confined.confined())), report.replace('@', ""), "{body}");
        assert_eq!(confined.tree(), workspace.tree(), "{body}");
    }
}

#[test]
fn files_outside_the_workspace_are_reported_in_full() {
    let (workspace, other) = (Workspace::with(&[]), Workspace::with(&[]));
    let path = other.path("a").display().to_string();
    let report = reported(call(&format!("*** Add File: {path}\n+x"), &workspace.resolver()));
    assert_eq!(report, format!("A {path}"));
    assert_eq!(fs::read_to_string(path).unwrap(), "x\n");
}

#[test]
fn a_patch_that_does_not_fit_changes_nothing() {
    let once = |words: &str| format!("{words} by the same patch. Use one hunk for it.");
    for (body, says) in [
        ("", "No files were modified.".to_owned()),
        ("*** Update File: none\n+x", "File not found: none".into()),
        ("*** Update File: none/none\n+x", "File not found: none/none".into()),
        ("*** Delete File: none", "File not found: none".into()),
        ("*** Delete File: d", "Not a regular file: ".into()),
        ("*** Add File: d\n+x", "Not a regular file: ".into()),
        ("*** Update File: d\n+x", "Not a regular file: ".into()),
        ("*** Add File: a/b\n+x", "apply_patch: cannot use a/b: ".into()),
        ("*** Update File: a\n@@\n-no", "Failed to find expected lines in a:\nno".into()),
        ("*** Update File: a\n@@ no\n-1", "Failed to find context 'no' in a".into()),
        ("*** Update File: bytes\n@@\n-no", "bytes is a binary file or not UTF-8 text.".into()),
        ("*** Update File: a\n*** Move to: d\n@@\n-1", "Not a regular file: ".into()),
        ("*** Update File: a\n-1\n*** Delete File: a", once("a is updated and then deleted")),
        ("*** Delete File: a\n*** Update File: a\n-1", once("a is removed and then updated")),
        ("*** Delete File: a\n*** Delete File: ./a", once("./a is removed and then deleted")),
        (
            "*** Update File: b\n-2\n*** Update File: a\n*** Move to: b\n-1",
            once("b is updated and then written"),
        ),
        (
            "*** Update File: b\n-2\n*** Update File: a\n*** Move to: link\n-1",
            once("link is updated and then written"),
        ),
        (
            "*** Update File: a\n*** Move to: c\n-1\n*** Update File: a\n-1",
            once("a is removed and then updated"),
        ),
        ("*** Delete File: link\n*** Add File: link\n+x", once("link is removed and then written")),
        (
            "*** Update File: b\n-2\n*** Update File: link\n*** Move to: c\n@@\n+x",
            once("link is updated and then deleted"),
        ),
        ("*** Add File: c\n+1\n*** Add File: c\n+2", once("c is written and then written")),
        ("what", "Invalid patch hunk at line 4: 'what' is not a valid hunk header.".into()),
    ] {
        let workspace = Workspace::with(&[("a", "1\n"), ("b", "2\n"), ("d/x", "3\n")]);
        fs::write(workspace.path("bytes"), b"\xff\xfe").unwrap();
        symlink("b", workspace.path("link")).unwrap();
        let before = workspace.tree();
        let body =
            if body.is_empty() { String::new() } else { format!("*** Add File: new/dir/file\n+x\n{body}") };
        let input = if body.is_empty() {
            "*** Begin Patch\n*** End Patch".into()
        } else {
            format!("*** Begin Patch\n{body}\n*** End Patch")
        };
        let error = patch(&input, &workspace.resolver(), &CancellationToken::new()).unwrap_err().to_string();
        assert!(error.starts_with(&says), "{body}: {error}");
        assert_eq!(workspace.tree(), before, "{body}");
    }
}

#[test]
fn large_files_and_large_patches_are_refused() {
    let workspace = Workspace::with(&[]);
    let large = fs::File::create(workspace.path("large")).unwrap();
    large.set_len(crate::edit::MAX_FILE + 1).unwrap();
    for (body, says) in [
        ("*** Update File: large\n+x".to_owned(), "large is larger than 32MB. Use exec to change it."),
        ("*** Add File: large\n+x".to_owned(), "large is larger than 32MB. Use exec to change it."),
        (
            (0..201).map(|at| format!("*** Add File: {at}\n")).collect(),
            "The patch changes more than 200 files. Split it.",
        ),
    ] {
        assert_eq!(call(body.trim_end(), &workspace.resolver()), Err(says.to_owned()));
    }
    assert_eq!(fs::read_dir(workspace.0.path()).unwrap().count(), 1);
    // Nothing of it has to be read to delete it.
    assert_eq!(reported(call("*** Delete File: large", &workspace.resolver())), "D large");
    assert_eq!(fs::read_dir(workspace.0.path()).unwrap().count(), 0);
}

#[test]
fn links_are_followed_for_content_and_removed_themselves() {
    let workspace = Workspace::with(&[("a", "1\n"), ("b", "2\n")]);
    for name in ["to_a", "away", "gone"] {
        symlink("a", workspace.path(name)).unwrap();
    }
    let body = "*** Update File: to_a\n-1\n+one";
    assert_eq!(reported(call(body, &workspace.resolver())), "M to_a");
    let body = "*** Delete File: gone\n*** Update File: b\n-2\n+two";
    assert_eq!(reported(call(body, &workspace.resolver())), "M b\nD gone");
    let body = "*** Update File: away\n*** Move to: c\n@@\n+more";
    assert_eq!(reported(call(body, &workspace.resolver())), "M c");
    let expect = Workspace::with(&[("a", "one\n"), ("b", "two\n"), ("c", "one\nmore\n")]);
    symlink("a", expect.path("to_a")).unwrap();
    assert_eq!(workspace.tree(), expect.tree());
}

#[test]
fn a_program_stays_one() {
    let workspace = Workspace::with(&[("a", "1\n"), ("b", "1\n")]);
    for name in ["a", "b"] {
        fs::set_permissions(workspace.path(name), fs::Permissions::from_mode(0o750)).unwrap();
    }
    let body = "*** Update File: a\n-1\n+2\n*** Update File: b\n*** Move to: d/c\n-1\n+2";
    call(body, &workspace.resolver()).unwrap();
    let mode = |name| fs::metadata(workspace.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode("a"), mode("d/c")], [0o750; 2]);
}

#[test]
fn a_confined_patch_cannot_leave_its_directory() {
    let (workspace, outside) = (Workspace::with(&[("a", "1\n")]), Workspace::with(&[("secret", "s\n")]));
    symlink(outside.0.path(), workspace.path("link")).unwrap();
    symlink("a", workspace.path("to_a")).unwrap();
    let root = workspace.0.path().display().to_string();
    let secret = outside.path("secret").display().to_string();
    let escapes = |path: &str| format!("Path escapes sandbox root ({root}): {path}");
    let linked = |path: &str| format!("Symlink not allowed in sandbox path: {path}");
    let before = (workspace.tree(), outside.tree());
    for (body, says) in [
        (format!("*** Add File: {secret}\n+x"), escapes(&secret)),
        (format!("*** Delete File: {secret}"), escapes(&secret)),
        (format!("*** Update File: {secret}\n-s"), escapes(&secret)),
        (format!("*** Update File: a\n*** Move to: {secret}\n-1"), escapes(&secret)),
        ("*** Add File: ../x\n+x".into(), escapes("../x")),
        ("*** Delete File: link/secret".into(), linked("link/secret")),
        ("*** Update File: link/secret\n-s".into(), linked("link/secret")),
        ("*** Add File: link/d/new\n+s".into(), linked("link/d/new")),
        ("*** Update File: a\n*** Move to: link/new\n-1".into(), linked("link/new")),
        ("*** Delete File: to_a".into(), linked("to_a")),
    ] {
        let body = format!("*** Add File: fine\n+x\n{body}");
        assert_eq!(call(&body, &workspace.confined()), Err(says), "{body}");
        assert_eq!((workspace.tree(), outside.tree()), before, "{body}");
    }
}

#[test]
fn a_cancelled_patch_changes_nothing() {
    let workspace = Workspace::with(&[]);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let input = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch";
    assert!(matches!(patch(input, &workspace.resolver(), &cancel), Err(ToolError::Aborted)));
    assert_eq!(workspace.tree(), BTreeMap::new());
}

/// Generates a hunk of a random patch: its action and its files.
fn random_hunk((kind, path, to): (u8, usize, usize)) -> String {
    const NAMES: [&str; 5] = ["a", "b", "d/c", "new/x", "link"];
    let (path, to) = (NAMES[path], NAMES[to]);
    match kind {
        0 => format!("*** Add File: {path}\n+added"),
        1 => format!("*** Delete File: {path}"),
        2 => format!("*** Update File: {path}\n-1\n+2"),
        3 => format!("*** Update File: {path}\n@@\n+more"),
        4 => format!("*** Update File: {path}\n*** Move to: {to}\n@@\n+moved"),
        _ => format!("*** Update File: {path}\n-not there"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 2, ..ProptestConfig::default() })]

    #[test]
    fn a_patch_is_applied_as_a_whole_or_not_at_all(
        hunks in prop::collection::vec((0_u8..6, 0_usize..5, 0_usize..5), 1..5), confined in any::<bool>(),
    ) {
        let workspace = Workspace::with(&[("a", "1\n"), ("b", "0\n1\n"), ("d/c", "1\n")]);
        symlink("a", workspace.path("link")).unwrap();
        let before = workspace.tree();
        let resolver = if confined { workspace.confined() } else { workspace.resolver() };
        let body = hunks.into_iter().map(random_hunk).collect::<Vec<_>>().join("\n");
        match call(&body, &resolver) {
            Ok(_) => prop_assert_ne!(workspace.tree(), before, "{}", body),
            Err(_) => prop_assert_eq!(workspace.tree(), before, "{}", body),
        }
    }
}
