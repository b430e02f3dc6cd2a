use std::os::unix::fs::symlink;

use super::*;

/// Owners that match no file here, so that everything in a shared directory is another user's.
const NOBODY: Owners = Owners { us: 4_000_000, root: 4_000_000 };

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn what_lies_in_a_shared_directory_counts_when_it_is_ours() {
    let base = tempfile::tempdir().unwrap();
    let (shared, private) = (base.path().join("shared"), base.path().join("private"));
    fs::create_dir_all(shared.join("theirs/below")).unwrap();
    fs::create_dir_all(private.join("mine/below")).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    symlink("../private/mine", shared.join("link")).unwrap();
    symlink("../shared/theirs", private.join("link")).unwrap();
    symlink("link", private.join("again")).unwrap();
    symlink("circle", private.join("circle")).unwrap();
    let rows = [
        ("shared/theirs", Some("shared/theirs belongs to user")),
        ("shared/theirs/below/x", Some("shared/theirs belongs to user")),
        ("shared/link/below", Some("shared/link belongs to user")),
        ("shared/not-there-yet/x", None),
        // Another user's link counts nowhere.
        ("private/again/below", Some("private/again belongs to user")),
        ("private/mine/../link", Some("private/link belongs to user")),
        ("private/mine/below/x", None),
        ("private/mine/not-there-yet", None),
    ];
    for (path, expect) in rows {
        let walked = walk(NOBODY, base.path().to_owned(), names(Path::new(path)));
        let error = walked.err().map(|error| error.to_string());
        match (&error, expect) {
            (Some(error), Some(expect)) => assert!(error.contains(expect), "{path}: {error}"),
            (error, expect) => assert_eq!((error.as_deref(), expect), (None, None), "{path}"),
        }
        check_way(&base.path().join(path)).unwrap();
    }
    let circle = check_way(&private.join("circle/x")).unwrap_err().to_string();
    assert!(circle.contains("private/circle leads in a circle"), "{circle}");
}

#[test]
fn a_file_of_ours_is_a_file_without_other_names() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let place = dir.path().join("place");
    fs::create_dir(&place).unwrap();
    symlink(&victim, place.join("link")).unwrap();
    symlink("nowhere", place.join("dangling")).unwrap();
    fs::hard_link(&victim, place.join("hard")).unwrap();
    fs::create_dir(place.join("dir")).unwrap();
    nix::unistd::mkfifo(&place.join("pipe"), Mode::S_IRWXU).unwrap();
    fs::set_permissions(&place, Permissions::from_mode(0o777)).unwrap();
    for (name, why) in [
        ("link", "is a symbolic link, not a regular file"),
        ("dangling", "is a symbolic link"),
        ("hard", "has 2 hard links"),
        ("dir", "is a directory"),
        ("pipe", "is a pipe"),
    ] {
        let path = place.join(name);
        let appended = append(&path).unwrap_err().to_string();
        assert!(appended.contains(why) && appended.contains(&path.display().to_string()), "{appended}");
    }
    let own = OwnDir::open(&place).unwrap();
    assert_eq!(mode(&place), 0o777, "looking changes nothing");
    assert_eq!((own.close_to_others().unwrap(), mode(&place)), (Modes::Repaired, 0o700));
    for (name, why) in [
        ("link", "is a symbolic link, not a regular file"),
        ("hard", "has 2 hard links"),
        ("dir", "is a directory"),
        ("pipe", "is a pipe"),
    ] {
        let opened = own.open_file(OsStr::new(name)).unwrap_err().to_string();
        assert!(opened.contains(why) && opened.contains("remove it"), "{opened}");
        assert!(own.read_file(OsStr::new(name)).is_err(), "{name}");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(own.read_file(OsStr::new("new")).is_err());
    drop(own.open_file(OsStr::new("new")).unwrap());
    fs::set_permissions(place.join("new"), Permissions::from_mode(0o666)).unwrap();
    drop(own.open_file(OsStr::new("new")).unwrap());
    assert_eq!(mode(&place.join("new")), 0o600);
    own.check_entries().unwrap();
    assert_eq!(own.close_to_others().unwrap(), Modes::Private);
}

/// Checks that a link is followed where nobody else may write: there it is the owner's choice.
#[test]
fn a_link_in_a_private_directory_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    symlink("elsewhere.log", dir.path().join("gateway.log")).unwrap();
    append(&dir.path().join("gateway.log")).unwrap();
    assert!(dir.path().join("elsewhere.log").is_file());
}

#[test]
fn a_file_of_the_state_is_a_regular_one_of_ours_whatever_the_modes_are() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("dir")).unwrap();
    fs::write(at("file"), "ours").unwrap();
    fs::write(at("dir/theirs"), "theirs").unwrap();
    nix::unistd::mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
    for (link, target) in [("link", "file"), ("to-dir", "dir"), ("to-pipe", "pipe"), ("their-link", "file")] {
        symlink(target, at(link)).unwrap();
    }
    // Giving something away takes root; elsewhere that part is passed over.
    let gave = ["dir/theirs", "their-link"]
        .map(|name| std::os::unix::fs::lchown(at(name), Some(4_000_000), None).is_ok());
    for (name, expect) in [
        ("file", Ok("ours")),
        ("link", Ok("ours")),
        ("pipe", Err("is a pipe, not a regular file")),
        ("to-pipe", Err("is a pipe")),
        ("to-dir", Err("is a directory")),
        ("missing", Err("No such file")),
        ("dir/theirs", Err("theirs belongs to user 4000000")),
        ("to-dir/theirs", Err("theirs belongs to user 4000000")),
        ("their-link", Err("their-link belongs to user 4000000")),
    ] {
        if name.contains("their") && gave != [true, true] {
            continue;
        }
        let read = read_to_string(&at(name)).map_err(|error| error.to_string());
        match (&read, expect) {
            (Ok(text), Ok(expect)) => assert_eq!(text, expect, "{name}"),
            (Err(error), Err(expect)) => assert!(error.contains(expect), "{name}: {error}"),
            _ => panic!("{name}: {read:?}"),
        }
        let appends = open_with(&at(name), OpenOptions::new().append(true)).is_ok();
        assert_eq!(appends, expect.is_ok(), "{name}");
    }
    assert!(append(&at("pipe")).unwrap_err().to_string().contains("is a pipe"), "not waited for");
    assert!(!gave[0] || append(&at("dir/theirs")).is_err());
}
