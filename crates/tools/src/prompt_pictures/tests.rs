use std::io::Cursor;
use std::path::Path;

use image::{ImageFormat, RgbImage};
use nix::sys::stat::Mode;

use super::*;

fn png(width: u32) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    RgbImage::new(width, 4).write_to(&mut out, ImageFormat::Png).unwrap();
    out.into_inner()
}

async fn load(workspace: &Path, paths: &[String], present: &[Block]) -> Vec<Block> {
    let pictures = PromptPictures::new(&Default::default(), workspace.to_owned(), None);
    pictures.load(paths, present, &CancellationToken::new()).await
}

fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

#[tokio::test]
async fn what_is_no_picture_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let with = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
    with("a.png", &png(5));
    with("copy.png", &png(5));
    with("b.png", &png(6));
    with("text.png", b"words");
    with("broken.png", b"\x89PNG\r\n\x1a\n and then nothing of the kind");
    with("empty.png", b"");
    std::fs::create_dir(dir.path().join("directory.png")).unwrap();
    nix::unistd::mkfifo(&dir.path().join("pipe.png"), Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("zero.png")).unwrap();
    let all = [
        "./a.png",
        "./copy.png",
        "./none.png",
        "./text.png",
        "./broken.png",
        "./empty.png",
        "./directory.png",
    ];
    let rest = ["./pipe.png", "./zero.png", "/\0.png", "./b.png"];
    let loaded = load(dir.path(), &owned(&[&all[..], &rest].concat()), &[]).await;
    assert_eq!(loaded.len(), 2, "a copy of what is shown is not shown again");
    let again = load(dir.path(), &owned(&["./a.png", "./b.png"]), &loaded[..1]).await;
    assert_eq!(again, loaded[1..]);
}

#[tokio::test]
async fn no_more_than_eight_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<String> = (1..=10).map(|width| format!("./{width}.png")).collect();
    for (path, width) in paths.iter().zip(1..) {
        std::fs::write(dir.path().join(path), png(width)).unwrap();
    }
    let loaded = load(dir.path(), &paths, &[]).await;
    assert_eq!(loaded.len(), MOST);
    let more = load(dir.path(), &paths[8..], &loaded[..7]).await;
    assert_eq!(more.len(), 1);
}

#[tokio::test]
async fn a_cancelled_run_waits_for_none() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.png"), png(5)).unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let pictures = PromptPictures::new(&Default::default(), dir.path().to_owned(), None);
    assert_eq!(pictures.load(&owned(&["./a.png"]), &[], &cancel).await, []);
}
