//! The decisions of pairing, on values: no files, no clock, no randomness.

use std::collections::BTreeMap;

use openclaw_protocol::access::Role;
use serde_json::Map;

use super::record::{DeviceToken, Paired, Pending};
use crate::secret_digest::SecretDigest;

/// A request is forgotten this long after it was made.
const PENDING_TTL_MS: i64 = 300_000;
/// Requests kept at once; a flood of fresh device keys pushes out the oldest.
const MAX_PENDING: usize = 200;

/// Both files, as values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairingBook {
    /// Pending requests by request id.
    pub pending: BTreeMap<String, Pending>,
    /// Paired devices by device id.
    pub paired: BTreeMap<String, Paired>,
}

/// A device with a verified identity and an authorised connection, about to be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectingDevice {
    /// Hex SHA-256 of the public key.
    pub device_id: String,
    /// base64url of the 32 raw bytes.
    pub public_key: String,
    /// Name for people.
    pub display_name: Option<String>,
    /// Such as `ios 26.0`.
    pub platform: String,
    /// `connect.client.id`
    pub client_id: String,
    /// `connect.client.mode`
    pub client_mode: String,
    /// The role it wants.
    pub role: Role,
    /// The scopes it wants.
    pub scopes: Vec<String>,
    /// Address that it connects from, if that may be stored.
    pub remote_ip: Option<String>,
    /// True if it is on this host: then no person is asked.
    pub is_local: bool,
}

/// Decision on a connecting device.
#[derive(Debug, Clone, PartialEq)]
pub enum PairingDecision {
    /// The device may come in.
    Admitted(Admission),
    /// A person has to approve the request first.
    PairingRequired {
        /// Value of `details.requestId`.
        request_id: String,
        /// Announcement to operators who may approve; absent when they have been told before.
        announcement: Option<Announcement>,
    },
}

/// A device that is let in.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    /// Token for `hello-ok.auth`.
    pub token: DeviceToken,
    /// Set when the device was paired just now, without asking.
    pub announcement: Option<Announcement>,
}

/// Announcement to operators with the pairing scope.
#[derive(Debug, Clone, PartialEq)]
pub enum Announcement {
    /// Event `device.pair.requested`.
    Requested(Box<Pending>),
    /// Event `device.pair.resolved` with decision `approved`.
    Approved {
        /// The request.
        request_id: String,
        /// The device.
        device_id: String,
        /// Unix milliseconds.
        ts: i64,
    },
}

/// Reason why a device token was not accepted. For the log; the client is told what it would be
/// told without a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRefusal {
    /// The device is not paired.
    NotPaired,
    /// The device has no token for the role.
    NoToken,
    /// The token was revoked.
    Revoked,
    /// The token differs from the device's.
    Mismatch,
    /// The token does not allow every scope asked for.
    Scopes,
}

/// Reason why a device has to be paired (again).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    NotPaired,
    RoleUpgrade,
    ScopeUpgrade,
    /// The device's token for the role was revoked: only a person gives it a new one (KB-8).
    Revoked,
}

impl PairingBook {
    /// Checks `auth.token` as a device token and notes its use.
    ///
    /// # Errors
    /// Says why it was not accepted.
    pub fn verify_token(
        &mut self,
        device_id: &str,
        role: Role,
        token: &str,
        scopes: &[String],
        now: i64,
    ) -> Result<&DeviceToken, TokenRefusal> {
        let device = self.paired.get_mut(device_id).ok_or(TokenRefusal::NotPaired)?;
        let held = device.tokens.get_mut(role.as_str()).ok_or(TokenRefusal::NoToken)?;
        if held.revoked_at_ms.is_some() {
            return Err(TokenRefusal::Revoked);
        }
        if !SecretDigest::of(&held.token).matches(token) {
            return Err(TokenRefusal::Mismatch);
        }
        if !is_subset(scopes, &held.scopes) {
            return Err(TokenRefusal::Scopes);
        }
        held.last_used_at_ms = Some(now);
        Ok(held)
    }

    /// Lets a device in, pairs it without asking when it is local, or records that it wants to be paired.
    /// `mint` makes random UUIDs.
    pub fn settle(
        &mut self,
        device: &ConnectingDevice,
        now: i64,
        mint: &mut dyn FnMut() -> String,
    ) -> PairingDecision {
        self.prune(now);
        match self.need(device) {
            None => PairingDecision::Admitted(Admission {
                token: self.admit(device, now, mint),
                announcement: None,
            }),
            Some(need) if device.is_local && need != Need::Revoked => self.pair_silently(device, now, mint),
            Some(_) => self.request(device, now, mint),
        }
    }

    fn prune(&mut self, now: i64) {
        self.pending.retain(|_, request| now.saturating_sub(request.ts) <= PENDING_TTL_MS);
        while self.pending.len() > MAX_PENDING {
            let oldest = self
                .pending
                .values()
                .min_by_key(|request| request.ts)
                .map(|request| request.request_id.clone());
            let Some(oldest) = oldest else { break };
            self.pending.remove(&oldest);
        }
    }

    fn need(&self, device: &ConnectingDevice) -> Option<Need> {
        let role = device.role.as_str();
        let record =
            self.paired.get(&device.device_id).filter(|record| record.public_key == device.public_key);
        let Some(record) = record else { return Some(Need::NotPaired) };
        if record.tokens.get(role).is_some_and(|token| token.revoked_at_ms.is_some()) {
            return Some(Need::Revoked);
        }
        if !record.roles.iter().any(|own| own == role) {
            return Some(Need::RoleUpgrade);
        }
        (!is_subset(&device.scopes, &record.scopes)).then_some(Need::ScopeUpgrade)
    }

    /// Refreshes the record of a paired device and makes sure that it has a token.
    fn admit(
        &mut self,
        device: &ConnectingDevice,
        now: i64,
        mint: &mut dyn FnMut() -> String,
    ) -> DeviceToken {
        let role = device.role.as_str();
        let held = self.paired.get_mut(&device.device_id).and_then(|record| {
            if device.display_name.is_some() {
                record.display_name.clone_from(&device.display_name);
            }
            record.platform = Some(device.platform.clone());
            record.client_id = Some(device.client_id.clone());
            record.client_mode = Some(device.client_mode.clone());
            record.role = Some(role.to_owned());
            if device.remote_ip.is_some() {
                record.remote_ip.clone_from(&device.remote_ip);
            }
            record.tokens.get(role).filter(|token| is_subset(&device.scopes, &token.scopes)).cloned()
        });
        held.unwrap_or_else(|| self.issue(&device.device_id, role, &device.scopes, now, mint))
    }

    /// A new token for a role of a device, replacing the one it had.
    fn issue(
        &mut self,
        device_id: &str,
        role: &str,
        scopes: &[String],
        now: i64,
        mint: &mut dyn FnMut() -> String,
    ) -> DeviceToken {
        let mut scopes = scopes.to_vec();
        scopes.sort_unstable();
        scopes.dedup();
        let before = self.paired.get(device_id).and_then(|record| record.tokens.get(role));
        let token = DeviceToken {
            token: mint().replace('-', ""),
            role: role.to_owned(),
            scopes,
            created_at_ms: before.map_or(now, |token| token.created_at_ms),
            rotated_at_ms: before.map(|_| now),
            revoked_at_ms: None,
            last_used_at_ms: before.and_then(|token| token.last_used_at_ms),
            extra: before.map(|token| token.extra.clone()).unwrap_or_default(),
        };
        if let Some(record) = self.paired.get_mut(device_id) {
            record.tokens.insert(role.to_owned(), token.clone());
        }
        token
    }

    fn pair_silently(
        &mut self,
        device: &ConnectingDevice,
        now: i64,
        mint: &mut dyn FnMut() -> String,
    ) -> PairingDecision {
        let request = self.pending_of(device, mint(), now);
        let token = self.approve(&request, now, mint);
        let announcement =
            Announcement::Approved { request_id: request.request_id, device_id: request.device_id, ts: now };
        PairingDecision::Admitted(Admission { token, announcement: Some(announcement) })
    }

    /// Pairs a device as it asked: roles and scopes are added to those it has, its token allows what it asked for.
    fn approve(&mut self, request: &Pending, now: i64, mint: &mut dyn FnMut() -> String) -> DeviceToken {
        let before =
            self.paired.remove(&request.device_id).filter(|record| record.public_key == request.public_key);
        let (roles, scopes, tokens, created_at_ms, extra) = match before {
            Some(record) => (record.roles, record.scopes, record.tokens, record.created_at_ms, record.extra),
            None => (Vec::new(), Vec::new(), BTreeMap::new(), now, Map::new()),
        };
        let record = Paired {
            device_id: request.device_id.clone(),
            public_key: request.public_key.clone(),
            display_name: request.display_name.clone(),
            platform: request.platform.clone(),
            client_id: request.client_id.clone(),
            client_mode: request.client_mode.clone(),
            role: request.role.clone(),
            roles: union(roles, &request.roles),
            scopes: union(scopes, &request.scopes),
            remote_ip: request.remote_ip.clone(),
            tokens,
            created_at_ms,
            approved_at_ms: now,
            extra,
        };
        self.paired.insert(request.device_id.clone(), record);
        self.pending.remove(&request.request_id);
        let role = request.role.as_deref().unwrap_or(Role::Operator.as_str());
        self.issue(&request.device_id, role, &request.scopes, now, mint)
    }

    /// Records that a device wants to be paired; what it asks for is added to a request it made before (KB-8).
    fn request(
        &mut self,
        device: &ConnectingDevice,
        now: i64,
        mint: &mut dyn FnMut() -> String,
    ) -> PairingDecision {
        let same = |request: &&mut Pending| {
            request.device_id == device.device_id && request.public_key == device.public_key
        };
        let Some(request) = self.pending.values_mut().find(same) else {
            let request = self.pending_of(device, mint(), now);
            let request_id = request.request_id.clone();
            self.pending.insert(request_id.clone(), request.clone());
            let announcement = Some(Announcement::Requested(Box::new(request)));
            return PairingDecision::PairingRequired { request_id, announcement };
        };
        let before = (request.roles.len(), request.scopes.len());
        request.role = Some(device.role.as_str().to_owned());
        request.roles = union(std::mem::take(&mut request.roles), &[device.role.as_str().to_owned()]);
        request.scopes = union(std::mem::take(&mut request.scopes), &device.scopes);
        let has_grown = before != (request.roles.len(), request.scopes.len());
        PairingDecision::PairingRequired {
            request_id: request.request_id.clone(),
            announcement: has_grown.then(|| Announcement::Requested(Box::new(request.clone()))),
        }
    }

    fn pending_of(&self, device: &ConnectingDevice, request_id: String, now: i64) -> Pending {
        let role = device.role.as_str().to_owned();
        Pending {
            request_id,
            device_id: device.device_id.clone(),
            public_key: device.public_key.clone(),
            display_name: device.display_name.clone(),
            platform: Some(device.platform.clone()),
            client_id: Some(device.client_id.clone()),
            client_mode: Some(device.client_mode.clone()),
            role: Some(role.clone()),
            roles: vec![role],
            scopes: device.scopes.clone(),
            remote_ip: device.remote_ip.clone(),
            silent: device.is_local,
            is_repair: self.paired.contains_key(&device.device_id),
            ts: now,
            extra: Map::new(),
        }
    }
}

fn is_subset(wanted: &[String], held: &[String]) -> bool {
    wanted.iter().all(|scope| held.contains(scope))
}

fn union(mut held: Vec<String>, more: &[String]) -> Vec<String> {
    for scope in more {
        if !held.contains(scope) {
            held.push(scope.clone());
        }
    }
    held
}

#[cfg(test)]
mod tests;
