//! Tests of the copies of files that are sent.

use std::fs::File;
use std::path::PathBuf;

use super::super::files::FOLDER;
use super::*;

/// Makes a copy, named as copies are.
fn copy(dir: &Path, number: u8) -> PathBuf {
    let path = dir.join(FOLDER).join(format!("{number:08x}-5e55-4000-8000-000000000000.png"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "content").unwrap();
    path
}

fn with_copy(id: &str, path: &Path) -> Delivery {
    let mut delivery = picture(id, "x");
    if let Content::Media { path: to, .. } = &mut delivery.part.content {
        path.clone_into(to);
    }
    delivery
}

fn rig(dir: &Path) -> Rig {
    let rig = Rig::open(dir);
    rig.outbox.keep_files_in(dir.join(FOLDER));
    rig
}

/// Waits until a copy is removed, which happens a little behind the end of its row.
async fn is_removed(path: &Path) -> bool {
    for _ in 0..1000 {
        if !path.exists() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn a_copy_is_kept_as_long_as_its_row_may_need_it() {
    let dir = tempfile::tempdir().unwrap();
    let rig = rig(dir.path());
    let ids = ["sent", "noted", "failed", "waits"];
    let copies: Vec<PathBuf> = (0..4).map(|number| copy(dir.path(), number)).collect();
    for (id, copy) in ids.iter().zip(&copies).take(3) {
        assert_eq!(rig.outbox.accept(with_copy(id, copy)).await, Ok(Enqueued::New));
    }
    assert!(copies.iter().all(|copy| copy.exists()), "nothing is on its way yet");
    // One is taken, one is replaced by its words, one is refused.
    let platform = Platform::new(Knows::Nothing, [Reply::Take, no_file(), Reply::Take, gone()]);
    rig.serve(&platform);
    rig.over("failed").await;
    assert!(is_removed(&copies[0]).await && is_removed(&copies[1]).await);
    assert!(copies[2].exists(), "it may be tried again");
    assert_eq!(rig.outbox.sweep_files(Duration::ZERO).await, Ok(1), "the one without a row goes");
    assert!(copies[2].exists() && !copies[3].exists());
    // A delivery that is thrown away needs no file any more, whether it was given up or waits.
    assert!(rig.outbox.discard("failed", Duration::ZERO).await.unwrap());
    assert!(is_removed(&copies[2]).await);
    rig.outbox.unregister("fake", "default");
    let waits = copy(dir.path(), 3);
    assert_eq!(rig.outbox.accept(with_copy("waits", &waits)).await, Ok(Enqueued::New));
    assert_eq!(rig.outbox.sweep_files(Duration::ZERO).await, Ok(0));
    assert!(rig.outbox.discard("waits", Duration::ZERO).await.unwrap());
    assert!(is_removed(&waits).await);
    rig.end().await;
}

/// The process ended between the copy and its row, or between the end of the row and the copy.
#[tokio::test]
async fn what_a_crash_leaves_is_swept_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let rig = rig(dir.path());
    let [named, orphan, young] = [0, 1, 2].map(|number| copy(dir.path(), number));
    assert_eq!(rig.outbox.accept(with_copy("a", &named)).await, Ok(Enqueued::New));
    let foreign = dir.path().join(FOLDER).join("notes.txt");
    std::fs::write(&foreign, "mine").unwrap();
    let hours_ago = std::time::SystemTime::now() - Duration::from_secs(7200);
    for old in [&named, &orphan, &foreign] {
        File::options().write(true).open(old).unwrap().set_modified(hours_ago).unwrap();
    }
    assert_eq!(rig.outbox.sweep_files(Duration::from_secs(3600)).await, Ok(1));
    assert!(!orphan.exists() && young.exists() && named.exists() && foreign.exists());
    assert_eq!(rig.outbox.sweep_files(Duration::ZERO).await, Ok(1));
    assert!(!young.exists() && named.exists() && foreign.exists());
    rig.end().await;
    let without = Rig::open(dir.path());
    assert_eq!(without.outbox.sweep_files(Duration::ZERO).await, Ok(0), "it knows of no directory");
    without.end().await;
}

/// Checks that a file of somebody's own is never removed as a copy, whatever a row says.
#[tokio::test(start_paused = true)]
async fn no_other_file_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let rig = rig(dir.path());
    rig.serve(&Platform::new(Knows::Nothing, []));
    let beside = dir.path().join("00000000-5e55-4000-8000-000000000000.png");
    std::fs::write(&beside, "mine").unwrap();
    for (id, path) in [("a", &beside), ("b", &dir.path().join(FOLDER).join("x.png"))] {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "mine").unwrap();
        assert_eq!(rig.outbox.accept(with_copy(id, path)).await, Ok(Enqueued::New));
        assert_eq!(rig.over(id).await.state, DeliveryState::Sent);
    }
    rig.end().await;
    assert!(beside.exists() && dir.path().join(FOLDER).join("x.png").exists());
}
