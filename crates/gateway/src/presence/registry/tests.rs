use super::*;
use crate::connection::tests::{client, connection};
use openclaw_protocol::access::{ADMIN, Role};
use openclaw_protocol::params::connect::{ClientId, ClientMode};
use serde_json::{Value, json};

fn registry() -> PresenceRegistry {
    PresenceRegistry::new(PresenceEntry { host: Some("gateway-host".to_owned()), ..PresenceEntry::default() })
}

fn hosts(registry: &mut PresenceRegistry, now: i64) -> Vec<String> {
    let name = |entry: PresenceEntry| entry.host.or(entry.text).unwrap();
    registry.list(now).into_iter().map(name).collect()
}

fn lasting(name: &str, role: Role) -> ConnectionInfo {
    let mut info = connection(role, &[ADMIN]);
    info.client.display_name = Some(NonEmpty(name.to_owned()));
    info.client.instance_id = Some(NonEmpty(name.to_owned()));
    info
}

fn event(value: Value) -> SystemEventParams {
    serde_json::from_value(value).unwrap()
}

/// The row of `gw-connect-ok`, field by field.
#[test]
fn a_connected_client_is_shown_as_recorded() {
    let mut info = connection(Role::Operator, &[ADMIN]);
    info.client.display_name = Some(NonEmpty("golden".to_owned()));
    let mut registry = registry();
    assert!(registry.connected(&info, 1_795_230_037_384));
    let row = registry.list(1_795_230_037_385).remove(1);
    let expect = json!({
        "host": "golden", "version": "1.0.0", "platform": "linux", "mode": "test", "roles": ["operator"],
        "scopes": ["operator.admin"], "reason": "connect", "ts": 1_795_230_037_384_i64, "text": "Node: golden · mode test",
    });
    assert_eq!(serde_json::to_value(row).unwrap(), expect);
}

/// The three events of `gw-health-status-presence`.
#[test]
fn reports_are_merged_into_the_row_of_their_device() {
    let mut registry = registry();
    let first = "Node: Golden-Mac (192.0.2.77) · app 1.2.3 · last input 12s ago · mode ui · reason launch";
    let params = json!({"instanceId": "GOLDEN-Instance-1", "deviceFamily": "Mac", "platform": "macos 26.1", "tags": ["a"]});
    registry.report(&event(params), first, 1);
    let second = "Node: Golden-Mac (192.0.2.77) · app 1.2.3 · last input 3s ago · mode ui · reason periodic";
    let report = registry.report(&event(json!({"instanceId": "golden-instance-1"})), second, 2);
    assert_eq!(report.key, "golden-instance-1");
    let expect = json!({
        "host": "Golden-Mac", "ip": "192.0.2.77", "version": "1.2.3", "lastInputSeconds": 3, "mode": "ui",
        "reason": "periodic", "text": second, "ts": 2, "platform": "macos 26.1", "deviceFamily": "Mac",
        "instanceId": "golden-instance-1",
    });
    assert_eq!(serde_json::to_value(report.after).unwrap(), expect);
    registry.report(&event(json!({})), "plain operator note", 3);
    assert_eq!(hosts(&mut registry, 3), ["gateway-host", "plain operator note", "Golden-Mac"]);
}

#[test]
fn a_report_is_keyed_by_the_first_name_it_has() {
    let beacon = "Node: Mac (192.0.2.77) · app 1 · last input 1s ago · mode ui · reason x";
    let long = "é".repeat(80);
    let cut = "é".repeat(64);
    let rows = [
        (json!({"deviceId": " D ", "instanceId": "i"}), beacon, "d"),
        (json!({"deviceId": " ", "instanceId": "I"}), beacon, "i"),
        (json!({}), beacon, "mac"),
        (json!({}), "A note", "a note"),
        (json!({}), long.as_str(), cut.as_str()),
    ];
    for (params, text, expect) in rows {
        assert_eq!(registry().report(&event(params.clone()), text, 0).key, expect, "{params} {text}");
    }
}

/// KB-26: the reference forgets connected clients after five minutes.
#[test]
fn rows_stay_while_connected_and_five_minutes_longer() {
    let mut registry = registry();
    let info = lasting("Long Lived", Role::Operator);
    registry.connected(&info, 0);
    assert_eq!(hosts(&mut registry, TTL_MS + 1), ["gateway-host", "Long Lived"]);
    assert!(registry.disconnected(&info, TTL_MS + 2));
    assert_eq!(hosts(&mut registry, 2 * TTL_MS + 2), ["gateway-host", "Long Lived"]);
    assert_eq!(hosts(&mut registry, 2 * TTL_MS + 3), ["gateway-host"]);
}

/// KB-41: what has no lasting name is gone when it disconnects.
#[test]
fn nameless_clients_vanish_and_command_lines_never_appear() {
    let mut registry = registry();
    let nameless = connection(Role::Operator, &[ADMIN]);
    registry.connected(&nameless, 0);
    assert!(registry.disconnected(&nameless, 1));
    let mut cli = lasting("cli", Role::Operator);
    cli.client = client(ClientId::Cli, ClientMode::Cli);
    assert!(!registry.connected(&cli, 2) && !registry.disconnected(&cli, 3));
    assert_eq!(hosts(&mut registry, 4), ["gateway-host"]);
}

#[test]
fn a_device_with_two_sockets_has_one_row_with_both_roles() {
    let mut registry = registry();
    let (operator, node) = (lasting("Phone", Role::Operator), lasting("PHONE", Role::Node));
    registry.connected(&operator, 0);
    registry.connected(&node, 1);
    let row = registry.list(2).remove(1);
    assert_eq!(row.roles.unwrap(), ["operator", "node"]);
    registry.disconnected(&node, 3);
    assert_eq!(registry.list(TTL_MS * 2).len(), 2, "one socket is still there");
}

/// Decision 32.
#[test]
fn a_client_and_its_beacons_have_one_row_whichever_comes_first() {
    let mut info = lasting("Mac", Role::Operator);
    info.device_id = Some("Device-1".to_owned());
    let beacon = "Node: Mac (192.0.2.77) · app 2 · last input 1s ago · mode ui · reason periodic";
    let said = [
        json!({"instanceId": "MAC"}),
        json!({"deviceId": "device-1"}),
        json!({"deviceId": "device-1", "instanceId": "mac"}),
    ];
    for params in said {
        for beacon_first in [true, false] {
            let mut registry = registry();
            if beacon_first {
                registry.report(&event(params.clone()), beacon, 1);
                registry.connected(&info, 2);
            } else {
                registry.connected(&info, 1);
                registry.report(&event(params.clone()), beacon, 2);
            }
            let rows = registry.list(3);
            assert_eq!(rows.len(), 2, "{params} {beacon_first}");
            let row = &rows[1];
            assert_eq!(row.device_id.as_deref().map(str::to_lowercase).as_deref(), Some("device-1"));
            assert_eq!(row.instance_id.as_deref().map(str::to_lowercase).as_deref(), Some("mac"));
            assert_eq!((row.version.is_some(), row.last_input_seconds), (true, Some(1)));
            assert_eq!(registry.list(TTL_MS * 2).len(), 2, "it is connected");
            registry.disconnected(&info, TTL_MS * 2);
            assert_eq!(registry.list(TTL_MS * 4).len(), 1);
        }
    }
}

#[test]
fn rows_that_turn_out_to_be_of_one_client_become_one() {
    let mut registry = registry();
    let mut by_device = connection(Role::Operator, &[ADMIN]);
    by_device.device_id = Some("d".to_owned());
    registry.connected(&by_device, 1);
    registry.report(&event(json!({"instanceId": "i"})), "by instance", 2);
    assert_eq!(registry.list(2).len(), 3);
    registry.report(&event(json!({"deviceId": "d", "instanceId": "i"})), "by both", 3);
    assert_eq!(registry.list(3).len(), 2);
    assert_eq!(registry.list(TTL_MS * 2).len(), 2, "its connection counts");
}

/// §16.9.
#[test]
fn the_list_is_capped_and_drops_the_oldest() {
    let mut registry = registry();
    for n in 0..201 {
        registry.report(&event(json!({})), &format!("note {n}"), n);
    }
    let names = hosts(&mut registry, 201);
    assert_eq!(names.len(), 201, "200 and the gateway");
    assert!(!names.contains(&"note 0".to_owned()) && names.contains(&"note 1".to_owned()));
}
