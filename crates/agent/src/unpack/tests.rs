use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// Entry of a test archive: a path and its content.
enum Item<'a> {
    File(&'a str, &'a str, u32),
    Dir(&'a str),
    Link(&'a str, &'a str),
    Pipe(&'a str),
}

use Item::{Dir, File as Text, Link, Pipe};

/// Paths are written as they are, `..` and all.
fn tar_of(items: &[Item<'_>]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for item in items {
        let mut header = tar::Header::new_gnu();
        let (path, kind, data, mode) = match item {
            Text(path, text, mode) => (path, EntryType::Regular, text.as_bytes(), *mode),
            Dir(path) => (path, EntryType::Directory, &b""[..], 0o755),
            Link(path, _) => (path, EntryType::Symlink, &b""[..], 0o777),
            Pipe(path) => (path, EntryType::Fifo, &b""[..], 0o644),
        };
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        if let Link(_, target) = item {
            header.as_mut_bytes()[157..157 + target.len()].copy_from_slice(target.as_bytes());
        }
        header.set_entry_type(kind);
        header.set_size(data.len() as u64);
        header.set_mode(mode);
        header.set_cksum();
        builder.append(&header, data).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip_of(items: &[Item<'_>]) -> Vec<u8> {
    use zip::write::SimpleFileOptions;
    let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for item in items {
        match item {
            Text(path, text, mode) => {
                writer.start_file(*path, SimpleFileOptions::default().unix_permissions(*mode)).unwrap();
                writer.write_all(text.as_bytes()).unwrap();
            }
            Dir(path) => writer.add_directory(*path, SimpleFileOptions::default()).unwrap(),
            Link(path, target) => writer.add_symlink(*path, *target, SimpleFileOptions::default()).unwrap(),
            Pipe(_) => {}
        }
    }
    writer.finish().unwrap().into_inner()
}

fn unpacked(bytes: &[u8], archive: Archive, into: &Path, strip: usize) -> Result<usize, UnpackError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    unpack(file, archive, into, strip)
}

#[test]
fn files_directories_and_links_come_out_as_they_were() {
    let items = [
        Dir("top"),
        Dir("top/empty"),
        Text("top/bin/tool", "#!/bin/sh", 0o755),
        Text("./top/lib/a.so.1", "library", 0o644),
        Link("top/lib/a.so", "a.so.1"),
        Link("top/bin/lib", "../lib"),
        Text("readme", "cut away", 0o644),
    ];
    for (bytes, archive) in [
        (gz(&tar_of(&items)), Archive::TarGz),
        (tar_of(&items), Archive::Tar),
        (zip_of(&items), Archive::Zip),
    ] {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            assert_eq!(unpacked(&bytes, archive, dir.path(), 1).unwrap(), 2, "also over an earlier one");
        }
        let path = |name: &str| dir.path().join(name);
        assert!(path("empty").is_dir() && !path("readme").exists() && !path("top").exists());
        assert_eq!(fs::read_to_string(path("bin/lib/a.so")).unwrap(), "library");
        assert!(path("lib/a.so").is_symlink());
        let mode = |name: &str| path(name).metadata().unwrap().permissions().mode() & 0o111;
        assert!(mode("bin/tool") != 0 && mode("lib/a.so.1") == 0);
    }
}

#[test]
fn nothing_leads_out_of_the_directory() {
    let attacks: &[(&str, &[Item<'_>])] = &[
        ("up", &[Text("../evil", "x", 0o644)]),
        ("up in the middle", &[Text("a/../../evil", "x", 0o644)]),
        ("absolute", &[Text("/tmp/openclaw-evil", "x", 0o644)]),
        ("link up", &[Link("a", "..")]),
        ("link far up", &[Dir("d"), Link("d/a", "../../x")]),
        ("absolute link", &[Link("a", "/etc")]),
        ("up behind a part", &[Link("a", "b/../../x")]),
        ("through a link", &[Dir("d"), Link("a", "d"), Text("a/evil", "x", 0o644)]),
        ("a pipe", &[Pipe("a")]),
    ];
    for (what, items) in attacks {
        let dir = tempfile::tempdir().unwrap();
        let into = dir.path().join("deep/into");
        fs::create_dir_all(&into).unwrap();
        assert!(unpacked(&gz(&tar_of(items)), Archive::TarGz, &into, 0).is_err(), "{what} in a tar");
        if !matches!(items, [Pipe(_)]) {
            assert!(unpacked(&zip_of(items), Archive::Zip, &into, 0).is_err(), "{what} in a zip");
        }
        let around: Vec<_> =
            fs::read_dir(dir.path().join("deep")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!((around, fs::read_dir(dir.path()).unwrap().count()), (vec!["into".into()], 1), "{what}");
    }
}

#[test]
fn a_link_that_was_there_before_is_replaced_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (into, outside) = (dir.path().join("into"), dir.path().join("outside"));
    for dir in [&into, &outside] {
        fs::create_dir(dir).unwrap();
    }
    fs::write(outside.join("file"), "mine").unwrap();
    std::os::unix::fs::symlink(outside.join("file"), into.join("file")).unwrap();
    std::os::unix::fs::symlink(&outside, into.join("d")).unwrap();
    unpacked(&gz(&tar_of(&[Text("file", "theirs", 0o644)])), Archive::TarGz, &into, 0).unwrap();
    assert_eq!(fs::read_to_string(into.join("file")).unwrap(), "theirs");
    assert!(unpacked(&gz(&tar_of(&[Text("d/file", "x", 0o644)])), Archive::TarGz, &into, 0).is_err());
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "mine");
}

#[test]
fn damage_is_told_and_too_much_ends() {
    let dir = tempfile::tempdir().unwrap();
    let good = gz(&tar_of(&[Text("a", &"x".repeat(10_000), 0o644)]));
    for archive in [Archive::TarGz, Archive::TarBz2, Archive::Zip] {
        assert!(unpacked(b"no archive", archive, dir.path(), 0).is_err(), "{archive:?}");
    }
    assert!(unpacked(&good[..good.len() / 2], Archive::TarGz, dir.path(), 0).is_err());
    let mut unpacker = Unpacker { into: dir.path(), strip: 0, entries: 0, files: 0, left: 5 };
    let text = |text: &str| io::Cursor::new(text.as_bytes().to_vec());
    unpacker.file(Path::new("ok"), 0, &mut text("12345")).unwrap();
    assert!(matches!(unpacker.file(Path::new("more"), 0, &mut text("1")), Err(UnpackError::TooLarge)));
    unpacker.entries = MAX_ENTRIES;
    assert!(matches!(unpacker.begin(Path::new("a")), Err(UnpackError::TooMany)));
}

#[test]
fn a_bzip2_archive_is_opened() {
    // `a` with the text `hi` and a line feed, made with GNU tar and bzip2.
    let bytes = include_bytes!("hi.tar.bz2");
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(unpacked(bytes, Archive::TarBz2, dir.path(), 0).unwrap(), 1);
    assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "hi\n");
}

#[test]
fn the_kind_is_told_by_the_name() {
    let rows = [
        ("https://x/a.tar.gz", Some(Archive::TarGz)),
        ("https://x/a.TGZ?sig=1", Some(Archive::TarGz)),
        ("https://x/a.tar.bz2#x", Some(Archive::TarBz2)),
        ("https://x/a.zip", Some(Archive::Zip)),
        ("https://x/azip", None),
        ("https://x/a.exe", None),
    ];
    for (name, expect) in rows {
        assert_eq!(Archive::of_name(name), expect, "{name}");
    }
}
