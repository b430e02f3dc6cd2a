use super::*;
use openclaw_protocol::access::{ADMIN, APPROVALS, PAIRING, READ, WRITE};

fn device(is_local: bool, role: Role, scopes: &[&str]) -> ConnectingDevice {
    ConnectingDevice {
        device_id: "dev".to_owned(),
        public_key: "key".to_owned(),
        display_name: None,
        platform: "linux".to_owned(),
        client_id: "cli".to_owned(),
        client_mode: "cli".to_owned(),
        role,
        scopes: strings(scopes),
        remote_ip: None,
        is_local,
    }
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

/// Counts instead of rolling dice: `id-1`, `id-2`, …; tokens lose their dashes.
struct Ids(u32);

impl Ids {
    fn settle(&mut self, book: &mut PairingBook, device: &ConnectingDevice, now: i64) -> PairingDecision {
        book.settle(device, now, &mut || {
            self.0 += 1;
            format!("id-{}", self.0)
        })
    }
}

fn admitted(settled: PairingDecision) -> Admission {
    match settled {
        PairingDecision::Admitted(admission) => admission,
        PairingDecision::PairingRequired { .. } => panic!("pairing required"),
    }
}

fn required(settled: PairingDecision) -> (String, Option<Announcement>) {
    match settled {
        PairingDecision::PairingRequired { request_id, announcement } => (request_id, announcement),
        PairingDecision::Admitted(_) => panic!("admitted"),
    }
}

/// The story of `gw-connect-ok-device`: silent pairing, token login, silent scope upgrade, and what the record holds.
#[test]
fn a_local_device_is_paired_without_asking_and_upgraded_the_same_way() {
    let (mut book, mut ids) = (PairingBook::default(), Ids(0));
    let first = device(true, Role::Operator, &[ADMIN, APPROVALS, PAIRING]);
    let admission = admitted(ids.settle(&mut book, &first, 10));
    let approved = |request_id: &str, ts| Announcement::Approved {
        request_id: request_id.to_owned(),
        device_id: "dev".to_owned(),
        ts,
    };
    assert_eq!(admission.announcement, Some(approved("id-1", 10)));
    assert_eq!((admission.token.token.as_str(), admission.token.issued_at_ms()), ("id2", 10));
    assert_eq!(book.pending, BTreeMap::new());

    let again = admitted(ids.settle(&mut book, &first, 20));
    assert_eq!((again.token.token.as_str(), again.announcement), ("id2", None));
    book.verify_token("dev", Role::Operator, "id2", &strings(&[ADMIN]), 30).unwrap();

    let upgrade = admitted(ids.settle(&mut book, &device(true, Role::Operator, &[ADMIN, READ]), 40));
    assert_eq!(upgrade.announcement, Some(approved("id-3", 40)));
    let record = book.paired.get("dev").unwrap();
    let expect = DeviceToken {
        token: "id4".to_owned(),
        role: "operator".to_owned(),
        scopes: strings(&[ADMIN, READ]),
        created_at_ms: 10,
        rotated_at_ms: Some(40),
        revoked_at_ms: None,
        last_used_at_ms: Some(30),
        extra: Map::new(),
    };
    assert_eq!(record.tokens, BTreeMap::from([("operator".to_owned(), expect)]));
    assert_eq!(record.roles, ["operator"]);
    assert_eq!(record.scopes, [ADMIN, APPROVALS, PAIRING, READ]);
    assert_eq!((record.created_at_ms, record.approved_at_ms), (10, 40));
}

#[test]
fn a_remote_device_waits_for_a_person_and_may_add_to_its_request() {
    let (mut book, mut ids) = (PairingBook::default(), Ids(0));
    let remote = device(false, Role::Operator, &[READ]);
    let (request_id, announcement) = required(ids.settle(&mut book, &remote, 0));
    let pending = book.pending.get(&request_id).unwrap().clone();
    assert!(!pending.silent && !pending.is_repair);
    assert_eq!(announcement, Some(Announcement::Requested(Box::new(pending))));

    assert_eq!(required(ids.settle(&mut book, &remote, 1)), (request_id.clone(), None));
    let more = device(false, Role::Node, &[WRITE]);
    let (same, announcement) = required(ids.settle(&mut book, &more, 2));
    assert_eq!(same, request_id);
    assert!(announcement.is_some());
    let grown = book.pending.get(&request_id).unwrap();
    assert_eq!(
        (grown.roles.clone(), grown.scopes.clone()),
        (strings(&["operator", "node"]), strings(&[READ, WRITE]))
    );
    assert_eq!(grown.ts, 0);

    let (fresh, _) = required(ids.settle(&mut book, &remote, PENDING_TTL_MS + 1));
    assert_ne!(fresh, request_id);
    assert_eq!(book.pending.len(), 1);
}

#[test]
fn a_paired_device_needs_pairing_again_for_a_new_role_a_new_scope_or_another_key() {
    let (mut book, mut ids) = (PairingBook::default(), Ids(0));
    admitted(ids.settle(&mut book, &device(true, Role::Operator, &[ADMIN]), 0));
    let other_key =
        ConnectingDevice { public_key: "other".to_owned(), ..device(false, Role::Operator, &[ADMIN]) };
    let rows = [
        (device(false, Role::Operator, &[ADMIN]), None),
        (device(false, Role::Operator, &[]), None),
        (device(false, Role::Node, &[]), Some(Need::RoleUpgrade)),
        (device(false, Role::Operator, &[READ]), Some(Need::ScopeUpgrade)),
        (other_key, Some(Need::NotPaired)),
    ];
    for (device, expect) in rows {
        assert_eq!(book.need(&device), expect, "{device:?}");
    }
}

#[test]
fn a_revoked_role_comes_back_only_with_a_persons_approval() {
    let (mut book, mut ids) = (PairingBook::default(), Ids(0));
    let local = device(true, Role::Operator, &[ADMIN]);
    admitted(ids.settle(&mut book, &local, 0));
    let token = book.paired.get_mut("dev").unwrap().tokens.get_mut("operator").unwrap();
    token.revoked_at_ms = Some(5);
    let (request_id, _) = required(ids.settle(&mut book, &local, 6));
    assert!(book.pending.contains_key(&request_id));
}

#[test]
fn device_tokens_are_for_one_device_one_role_and_their_scopes() {
    let (mut book, mut ids) = (PairingBook::default(), Ids(0));
    admitted(ids.settle(&mut book, &device(true, Role::Operator, &[READ, WRITE]), 0));
    let mut check = |id: &str, role, token: &str, scopes: &[&str]| {
        book.verify_token(id, role, token, &strings(scopes), 9).map(|token| token.scopes.clone())
    };
    let rows = [
        ("dev", Role::Operator, "id2", &[READ][..], Ok(strings(&[READ, WRITE]))),
        ("dev", Role::Operator, "id2", &[], Ok(strings(&[READ, WRITE]))),
        ("dev", Role::Operator, "id2", &[ADMIN], Err(TokenRefusal::Scopes)),
        ("dev", Role::Operator, "id3", &[], Err(TokenRefusal::Mismatch)),
        ("dev", Role::Node, "id2", &[], Err(TokenRefusal::NoToken)),
        ("ved", Role::Operator, "id2", &[], Err(TokenRefusal::NotPaired)),
    ];
    for (id, role, token, scopes, expect) in rows {
        assert_eq!(check(id, role, token, scopes), expect, "{id} {role:?} {token} {scopes:?}");
    }
}

#[test]
fn a_flood_of_fresh_keys_pushes_out_the_oldest_requests() {
    let (mut book, mut ids) = (PairingBook::default(), Ids(0));
    for n in 0..(MAX_PENDING + 5) {
        let stranger = ConnectingDevice { device_id: format!("dev-{n}"), ..device(false, Role::Node, &[]) };
        required(ids.settle(&mut book, &stranger, n as i64));
    }
    assert!(book.pending.len() <= MAX_PENDING + 1);
    assert!(book.pending.values().all(|request| request.ts >= 4));
}

/// A record of OpenClaw 2026.2.9 with a key of a later version survives.
#[test]
fn unknown_keys_of_the_files_are_kept() {
    let text = r#"{"deviceId":"d","publicKey":"k","role":"node","roles":["node"],"scopes":[],"tokens":{"node":{"token":"t","role":"node","scopes":[],"createdAtMs":1,"later":true}},"createdAtMs":1,"approvedAtMs":2,"remark":"hers"}"#;
    let record: Paired = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&record).unwrap(), text);
}
