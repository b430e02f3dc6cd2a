//! The mode of new files. In a process of its own: the umask is the whole process's.

use std::os::unix::fs::PermissionsExt;

#[test]
fn what_is_created_is_for_its_owner_alone() {
    openclaw_gateway::keep_files_private();
    let dir = tempfile::tempdir().unwrap();
    let (file, directory) = (dir.path().join("file"), dir.path().join("directory"));
    std::fs::write(&file, "x").unwrap();
    std::fs::create_dir(&directory).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&directory)), (0o600, 0o700));
}
