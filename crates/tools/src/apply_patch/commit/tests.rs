use std::fs;
use std::os::unix::fs::symlink;

use super::super::parse::parse;
use super::super::plan::plan;
use super::super::tests::Workspace;
use super::*;

const UNCHANGED: &str = "The patch was not applied: no file is changed.";
const BODY: &str = "*** Begin Patch
*** Update File: a
-1
+2
*** Add File: b
+new
*** Update File: c
*** Move to: new/dir/c
-3
+4
*** Add File: new/file
+x
*** Delete File: gone
*** Delete File: link
*** Update File: z
-9
+10
*** End Patch";

/// Makes the plan of [`BODY`], lets something else happen, and carries it out.
fn disturbed(disturb: impl FnOnce(&Workspace)) -> (Workspace, Result<(), String>) {
    let workspace = Workspace::with(&[("a", "1\n"), ("b", "old"), ("c", "3\n"), ("gone", "g"), ("z", "9\n")]);
    symlink("elsewhere", workspace.path("link")).unwrap();
    let plan = plan(parse(BODY).unwrap(), &workspace.resolver(), || false).unwrap();
    disturb(&workspace);
    let before = workspace.tree();
    let result = commit(&plan.files, &workspace.resolver()).map_err(|error| error.to_string());
    assert_eq!(workspace.tree() == before, result.is_err());
    (workspace, result)
}

#[test]
fn a_plan_is_carried_out_and_leaves_nothing_behind() {
    let (workspace, result) = disturbed(|_| ());
    assert_eq!(result, Ok(()));
    let expect = [("a", "2\n"), ("b", "new\n"), ("new/dir/c", "4\n"), ("new/file", "x\n"), ("z", "10\n")];
    assert_eq!(workspace.tree(), Workspace::with(&expect).tree());
}

#[test]
fn what_was_changed_is_put_back_when_a_later_file_fails() {
    let meanwhile = |path: &str| format!("{path} was changed by something else meanwhile. Read it again.");
    type Disturb = fn(&Workspace);
    let rows: [(Disturb, String); 7] = [
        (|files| fs::write(files.path("z"), "mine").unwrap(), meanwhile("z")),
        (|files| fs::remove_file(files.path("z")).unwrap(), meanwhile("z")),
        (|files| fs::write(files.path("a"), "1\n1\n").unwrap(), meanwhile("a")),
        (|files| fs::write(files.path("c"), "mine").unwrap(), meanwhile("c")),
        (
            |files| {
                fs::create_dir(files.path("new")).unwrap();
                fs::write(files.path("new/file"), "mine").unwrap();
            },
            meanwhile("new/file"),
        ),
        (
            |files| fs::write(files.path("new"), "a file where a directory has to be").unwrap(),
            "apply_patch: cannot use new/dir/c: ".into(),
        ),
        (
            |files| {
                fs::remove_file(files.path("gone")).unwrap();
                fs::create_dir(files.path("gone")).unwrap();
            },
            "Not a regular file: ".into(),
        ),
    ];
    for (disturb, says) in rows {
        let (_, result) = disturbed(disturb);
        let error = result.unwrap_err();
        assert!(error.starts_with(&says) && error.ends_with(UNCHANGED), "{error}");
    }
}

#[test]
fn what_somebody_else_changed_since_is_not_put_back() {
    let workspace = Workspace::with(&[("a", "1\n"), ("b", "2\n"), ("gone", "g")]);
    let resolver = workspace.resolver();
    let patch = "*** Begin Patch\n*** Update File: a\n-1\n+one\n*** Add File: n\n+x\n*** Delete File: gone\n*** End Patch";
    let plan = plan(parse(patch).unwrap(), &resolver, || false).unwrap();
    let mut done = Vec::new();
    for file in &plan.files {
        assert!(change(file, &resolver, &mut done).is_ok());
    }
    for name in ["a", "n", "gone"] {
        fs::write(workspace.path(name), "mine").unwrap();
    }
    let error = undo_all(&CommitError::Changed, "b", done, &resolver).to_string();
    let kept = workspace.tree().into_keys().find(|name| name.ends_with(".tmp")).unwrap();
    let (first, left) = error.split_once('\n').unwrap();
    assert_eq!(first, "b was changed by something else meanwhile. Read it again.");
    assert_eq!(
        left,
        format!(
            "The patch was not applied, but could not be undone in: n (changed by something else), \
             gone (kept beside it as {kept}: File exists (os error 17)), a (changed by something else)"
        )
    );
    assert_eq!(fs::read_to_string(workspace.path(&kept)).unwrap(), "g");
    for name in ["a", "n", "gone"] {
        assert_eq!(fs::read_to_string(workspace.path(name)).unwrap(), "mine");
    }
}

#[test]
fn a_file_that_was_written_in_part_is_put_back() {
    let workspace = Workspace::with(&[("a", "1\n")]);
    let resolver = workspace.resolver();
    let patch = "*** Begin Patch\n*** Update File: a\n-1\n+one\n*** End Patch";
    let plan = plan(parse(patch).unwrap(), &resolver, || false).unwrap();
    let FileChange::Write { existing: Some(existing), after, .. } = &plan.files[0].change else { panic!() };
    for (is_whole, expect) in [(false, "1\n"), (true, "on")] {
        fs::write(workspace.path("a"), "on").unwrap();
        let undone = undo(UndoStep::Replaced { path: "a", existing, after, is_whole }, &resolver);
        assert_eq!(undone.is_ok(), !is_whole);
        assert_eq!(fs::read_to_string(workspace.path("a")).unwrap(), expect);
    }
}
