use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn text(place: &Place) -> String {
    io::read_to_string(place.open().unwrap()).unwrap()
}

fn says(result: Result<Place, PlaceError>) -> String {
    match result {
        Ok(place) => place.open().map(|_| String::new()).unwrap_or_else(|error| error.to_string()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn replacing_keeps_the_mode_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sh");
    fs::write(&path, "old and longer").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    Place::anywhere(&path).unwrap().replace(b"new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn other_names_of_a_file_see_the_new_content() {
    let dir = tempfile::tempdir().unwrap();
    let (path, hard, soft) = (dir.path().join("a"), dir.path().join("hard"), dir.path().join("soft"));
    fs::write(&path, "old and longer").unwrap();
    fs::hard_link(&path, &hard).unwrap();
    symlink(&path, &soft).unwrap();
    Place::anywhere(&soft).unwrap().replace(b"new").unwrap();
    assert_eq!(fs::read_to_string(&hard).unwrap(), "new");
    assert!(fs::symlink_metadata(&soft).unwrap().is_symlink());
}

#[test]
fn a_confined_way_takes_no_symbolic_link_at_any_step() {
    let dir = tempfile::tempdir().unwrap();
    let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("secret"), "s").unwrap();
    fs::write(root.join("sub/ok"), "fine").unwrap();
    symlink(&outside, root.join("dir")).unwrap();
    symlink(outside.join("secret"), root.join("file")).unwrap();
    symlink(root.join("sub/ok"), root.join("inner")).unwrap();

    assert_eq!(text(&Place::beneath(&root, Path::new("sub/ok"), "sub/ok").unwrap()), "fine");
    for path in ["dir/secret", "file", "inner"] {
        let refused = format!("Symlink not allowed in sandbox path: {path}");
        assert_eq!(says(Place::beneath(&root, Path::new(path), path)), refused);
        assert_eq!(says(Place::create_beneath(&root, Path::new(path), path)), refused);
    }
}

#[test]
fn a_link_put_in_after_the_check_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (root, secret) = (dir.path().join("root"), dir.path().join("secret"));
    fs::create_dir_all(&root).unwrap();
    fs::write(&secret, "s").unwrap();
    let place = Place::create_beneath(&root, Path::new("note"), "note").unwrap();
    symlink(&secret, root.join("note")).unwrap();
    assert!(place.open().is_err());
    assert!(place.replace(b"x").is_err());
    assert_eq!(fs::read_to_string(&secret).unwrap(), "s");
}

#[test]
fn pipes_and_directories_are_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    assert_eq!(says(Place::anywhere(&pipe)), format!("Not a regular file: {}", pipe.display()));
    assert_eq!(says(Place::anywhere(dir.path())), format!("Not a regular file: {}", dir.path().display()));
}
