//! Places outside of runs where hooks are told: the gateway's start and stop ([`gateway`]), sessions
//! that clients begin anew or delete ([`session`]). Those of runs are in [`openclaw_runs::hooks`].

mod gateway;
mod session;

#[cfg(test)]
mod tests;
