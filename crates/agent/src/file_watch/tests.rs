use std::fs;

use tokio::time::timeout;

use super::*;

/// Long, so that a busy machine fails nothing.
const DEADLINE: Duration = Duration::from_secs(30);

fn place() -> (tempfile::TempDir, FileWatch) {
    let dir = tempfile::tempdir().unwrap();
    let watch = FileWatch::new();
    (dir, watch)
}

async fn told(watch: &mut FileWatch) {
    timeout(DEADLINE, watch.changed()).await.expect("word of a change");
}

/// True if there is word that has not been taken.
fn has_word(watch: &mut FileWatch) -> bool {
    let mut waiting = std::pin::pin!(watch.changed());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    waiting.as_mut().poll(&mut context).is_ready()
}

#[tokio::test]
async fn every_way_to_edit_a_file_is_told() {
    let (dir, mut watch) = place();
    let file = dir.path().join("sub/openclaw.json");
    let beside = dir.path().join("sub/new.tmp");
    let edits: [(&str, &dyn Fn()); 6] = [
        ("its directory comes", &|| fs::create_dir(dir.path().join("sub")).unwrap()),
        ("it comes", &|| fs::write(&file, "1").unwrap()),
        ("it is written to", &|| fs::write(&file, "2").unwrap()),
        ("it is replaced", &|| {
            fs::write(&beside, "3").unwrap();
            fs::rename(&beside, &file).unwrap();
        }),
        ("it goes", &|| fs::remove_file(&file).unwrap()),
        ("it comes as a link", &|| std::os::unix::fs::symlink("elsewhere", &file).unwrap()),
    ];
    for (name, edit) in edits {
        watch.set(std::slice::from_ref(&file));
        assert!(watch.hears_all && !has_word(&mut watch), "before {name}");
        edit();
        told(&mut watch).await;
        while has_word(&mut watch) {}
    }
}

#[tokio::test]
async fn what_a_link_leads_to_is_watched() {
    let (dir, mut watch) = place();
    let (file, real) = (dir.path().join("openclaw.json"), dir.path().join("elsewhere"));
    fs::create_dir(&real).unwrap();
    let real = real.join("real.json");
    fs::write(&real, "1").unwrap();
    std::os::unix::fs::symlink(&real, &file).unwrap();
    watch.set(std::slice::from_ref(&file));
    fs::write(&real, "2").unwrap();
    told(&mut watch).await;
}

#[tokio::test]
async fn what_happens_beside_it_wakes_nobody() {
    let (dir, mut watch) = place();
    let file = dir.path().join("openclaw.json");
    fs::write(&file, "1").unwrap();
    watch.set(std::slice::from_ref(&file));
    let mut open = fs::File::create(dir.path().join("other")).unwrap();
    std::io::Write::write_all(&mut open, b"more").unwrap();
    drop(open);
    fs::read(&file).unwrap();
    assert!(!has_word(&mut watch));
    fs::write(&file, "2").unwrap();
    told(&mut watch).await;
}

#[tokio::test]
async fn a_watched_directory_tells_of_its_entries_and_one_no_longer_watched_does_not() {
    let (dir, mut watch) = place();
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&other).unwrap();
    watch.set(&[one.clone(), other.clone()]);
    fs::write(one.join("SKILL.md"), "").unwrap();
    told(&mut watch).await;
    while has_word(&mut watch) {}
    watch.set(std::slice::from_ref(&other));
    fs::write(one.join("SKILL.md"), "more").unwrap();
    assert!(!has_word(&mut watch));
    fs::write(other.join("SKILL.md"), "").unwrap();
    told(&mut watch).await;
}

#[tokio::test(start_paused = true)]
async fn where_the_kernel_tells_nothing_there_is_word_now_and_then() {
    let mut watch = FileWatch { kernel: None, hears_all: false };
    watch.set(&[PathBuf::from("/nowhere/at/all")]);
    let begun = tokio::time::Instant::now();
    watch.changed().await;
    assert_eq!(begun.elapsed(), NOW_AND_THEN);
}
