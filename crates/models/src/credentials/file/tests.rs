use secrecy::ExposeSecret;

use super::*;
use crate::credentials::{Credential, Secret, pasted_secret};
use crate::reference::ProviderId;

fn key(text: &str) -> Credential {
    Credential::new(ProviderId::normalize("groq"), Secret::ApiKey(pasted_secret(text)))
}

fn put(dir: &Path, id: &str) -> Result<Updated<()>, AuthStoreError> {
    AuthStore::update(dir, &Surroundings::default(), OnDamage::SetAside, |store| store.put(id, key("k")))
}

fn ids(dir: &Path) -> Vec<String> {
    AuthStore::load(dir).unwrap().profiles().map(|(id, _)| id.to_owned()).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn damage_is_named_and_absence_is_not_damage() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(ids(dir.path()), [""; 0]);
    for (text, line) in [("{\n\"profiles\": {", 2), ("[]", 0), ("", 1)] {
        std::fs::write(dir.path().join(FILE), text).unwrap();
        match AuthStore::load(dir.path()) {
            Err(AuthStoreError::Damaged { line: found, .. }) => assert_eq!(found, line, "{text:?}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_damaged_file_is_kept_aside_when_a_person_adds_credentials_and_else_left() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(FILE), "{oops").unwrap();
    let refused = AuthStore::update(dir.path(), &Surroundings::default(), OnDamage::Refuse, |_| ());
    assert!(matches!(refused, Err(AuthStoreError::Damaged { .. })));
    assert_eq!(names(dir.path()), [FILE]);
    let aside = put(dir.path(), "a").unwrap().set_aside.unwrap();
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "{oops");
    assert_eq!(ids(dir.path()), ["a"]);
}

#[cfg(unix)]
#[test]
fn the_file_is_its_owners_alone_and_nothing_else_stays() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("agents/main/agent");
    put(&dir, "a").unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&dir.join(FILE))), (0o700, 0o600));
    std::fs::set_permissions(dir.join(FILE), PermissionsExt::from_mode(0o644)).unwrap();
    put(&dir, "b").unwrap();
    assert_eq!(mode(&dir.join(FILE)), 0o600);
    assert_eq!(names(&dir), [FILE]);
}

#[cfg(unix)]
#[test]
fn a_link_to_the_file_stays_one() {
    let dir = tempfile::tempdir().unwrap();
    let shared = dir.path().join("shared.json");
    std::fs::write(&shared, "{}").unwrap();
    std::os::unix::fs::symlink(&shared, dir.path().join(FILE)).unwrap();
    put(dir.path(), "a").unwrap();
    assert!(std::fs::symlink_metadata(dir.path().join(FILE)).unwrap().is_symlink());
    assert!(std::fs::read_to_string(shared).unwrap().contains("\"a\""));
}

#[test]
fn what_changes_nothing_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    AuthStore::update(dir.path(), &Surroundings::default(), OnDamage::Refuse, |_| ()).unwrap();
    assert_eq!(names(dir.path()), [""; 0]);
    // As a person writes it, which we would write otherwise.
    let text = "{\"profiles\":{}}";
    std::fs::write(dir.path().join(FILE), text).unwrap();
    AuthStore::update(dir.path(), &Surroundings::default(), OnDamage::Refuse, |_| ()).unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join(FILE)).unwrap(), text);
}

#[test]
fn many_writers_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let dir = dir.path();
            scope.spawn(move || {
                for n in 0..5 {
                    put(dir, &format!("p{writer}-{n}")).unwrap();
                }
            });
        }
    });
    assert_eq!(ids(dir.path()).len(), 30);
    assert_eq!(names(dir.path()), [FILE]);
}

#[test]
fn a_change_made_without_the_lock_meanwhile_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "ours").unwrap();
    let mut calls = 0;
    AuthStore::update(dir.path(), &Surroundings::default(), OnDamage::Refuse, |store| {
        calls += 1;
        if calls == 1 {
            // An editor saves while the change is being made.
            let mut theirs = store.clone();
            theirs.put("theirs", key("t"));
            std::fs::write(dir.path().join(FILE), theirs.text()).unwrap();
        }
        store.put("late", key("l"));
    })
    .unwrap();
    assert_eq!((calls, ids(dir.path())), (2, ["ours", "theirs", "late"].map(str::to_owned).to_vec()));
}

#[test]
fn an_error_shows_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(FILE), "{\"profiles\": {\"a\": sk-secret").unwrap();
    let error = AuthStore::load(dir.path()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("sk-secret"));
    put(dir.path(), "a").unwrap();
    let Secret::ApiKey(key) = &AuthStore::load(dir.path()).unwrap().get("a").unwrap().secret.clone() else {
        panic!()
    };
    assert_eq!(key.expose_secret(), "k");
}
