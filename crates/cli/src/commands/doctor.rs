//! `openclaw doctor`: whether the state directory is in order, and `--fix` to put it in order (spec `cli.md` §7).
//!
//! Looking changes nothing. `openclaw_sessions::checkup` finds problems and their repairs; this
//! module decides what may be done now, does it, and reports. A file that can't be parsed is never
//! written.

mod absent;
mod at_work;
mod config_findings;
mod devices;
mod model_at_work;
mod moved_keys;
mod places;
mod report;
mod running_channels;
mod token;
mod unknown_keys;

use openclaw_config::clock::now_ms;
use openclaw_dispatch::{DatabaseState, Salvaged, check_database, renew_database};
use openclaw_gateway::{LockError, Running, StateHold, hold_state, premises, running_gateway};
use openclaw_sessions::backup::Backup;
use openclaw_sessions::checkup::{self, Finding, Premises, Repair, Severity};

use crate::args::DoctorArgs;
use crate::context::Context;
use crate::failure::{Failure, Outcome};

/// Maximum number of rounds of repairs: repairs bring other problems to light, such as the modes of
/// files that were moved.
const ROUNDS: usize = 4;

/// Flags of OpenClaw's doctor that are about parts which are not here yet.
fn refuse_unknown_parts(args: &DoctorArgs) -> Result<(), Failure> {
    let refused =
        [(args.deep, "--deep", "looking at system services"), (args.force, "--force", "service definitions")];
    match refused.into_iter().find(|(given, _, _)| *given) {
        Some((_, flag, what)) => {
            let text = format!("openclaw doctor {flag}: not implemented yet in this version ({what})");
            Err(Failure::usage(text)
                .hint("Run it without this flag to check and repair the state directory."))
        }
        None => Ok(()),
    }
}

pub(super) fn run(args: &DoctorArgs, context: &Context) -> Outcome {
    refuse_unknown_parts(args)?;
    openclaw_gateway::keep_files_private();
    let mut notes = Vec::new();
    if args.generate_gateway_token {
        notes.push(token::generate(context)?);
    }
    if args.fix || args.repair {
        notes.extend(moved_keys::rewrite(&context.reread())?);
        notes.extend(places::set_aside(context));
    }
    if args.remove_unknown {
        notes.extend(unknown_keys::remove(context)?);
    }
    // With the config as it is now: a new token may have made one.
    let context = &context.reread();
    let is_configured = context.loaded.config_for_reading().is_ok();
    let config = context.config_or_default();
    let premises = premises(&config);
    let mut session = Session {
        context,
        premises: Premises {
            is_configured,
            archive_orphans: args.archive_orphans,
            now: now_ms(),
            ..premises
        },
        running: running_gateway(&context.loaded),
        notes,
        failures: Vec::new(),
        backup: None,
    };
    let before = session.look();
    let mut after = if args.fix || args.repair { session.repair(before.clone())? } else { before.clone() };
    let mut at_work = at_work::look(context, session.running);
    model_at_work::look(context, session.running, &mut at_work);
    after.extend(at_work.findings);
    if session.running.is_some() && check_database(&context.paths().database()) == DatabaseState::InUse {
        session.notes.push(
            "The running gateway has its database for itself, so it was not looked at; stop the gateway to have it checked."
                .to_owned(),
        );
    }
    let checked = report::Report {
        checks: report::checks(&before, &after, &session.failures),
        notes: session.notes,
        facts: at_work.facts,
        running: session.running,
        backup: session.backup.take(),
        is_fix: args.fix || args.repair,
        has_failed: !session.failures.is_empty(),
    };
    let exit = checked.exit(args.check);
    if args.json {
        checked.print_json(exit);
    } else {
        checked.print_text(context);
    }
    Ok(exit)
}

/// Run of the doctor.
struct Session<'a> {
    context: &'a Context,
    premises: Premises,
    running: Option<Running>,
    /// Notes on other work done, for people.
    notes: Vec<String>,
    /// Repairs that did not work, and why.
    failures: Vec<(Repair, String)>,
    backup: Option<std::path::PathBuf>,
}

impl Session<'_> {
    /// Collects all findings.
    fn look(&mut self) -> Vec<Finding> {
        self.premises.is_running = self.running.is_some();
        let mut found: Vec<Finding> = config_findings::of(self.context).into_iter().collect();
        found.extend(config_findings::warnings(self.context));
        found.extend(moved_keys::finding(self.context));
        found.extend(config_findings::fallbacks(self.context));
        found.extend(config_findings::of_tools(self.context));
        found.extend(absent::findings(self.context));
        found.extend(checkup::check(&self.premises));
        found.extend(database_finding(self.context));
        found.extend(devices::findings(self.context));
        found.extend(places::findings(self.context));
        if self.running.is_some() {
            found.extend(running_channels::findings(self.context));
        } else {
            found.extend(running_channels::of_configuration(self.context));
        }
        if !self.context.loaded.snapshot.exists {
            // Setup, which has to be run anyway, makes the directories too.
            found.retain(|finding| !finding.id.ends_with("dir-missing"));
        }
        found
    }

    /// Makes the repairs that can be made, and returns the findings that are left.
    fn repair(&mut self, mut found: Vec<Finding>) -> Result<Vec<Finding>, Failure> {
        if found.iter().all(|finding| finding.repairs.is_empty()) {
            return Ok(found);
        }
        let mut backup = Backup::new(self.context.paths().state_dir(), self.premises.now);
        // Modes first: in a directory that can't be written the lock below can't be made either.
        found = self.rounds(found, Repair::is_safe_beside_a_gateway, &mut backup);
        let needs_hold = |repair: &Repair| !repair.is_safe_beside_a_gateway();
        if found.iter().flat_map(|finding| &finding.repairs).any(needs_hold)
            && let Some(_hold) = self.hold()?
        {
            found = self.rounds(found, |_| true, &mut backup);
        }
        self.backup = backup.dir().map(std::path::Path::to_path_buf);
        Ok(found)
    }

    /// Carries out the repairs that may be done now, until none is left that has not failed.
    fn rounds(
        &mut self,
        mut found: Vec<Finding>,
        may: fn(&Repair) -> bool,
        backup: &mut Backup,
    ) -> Vec<Finding> {
        for _ in 0..ROUNDS {
            let todo: Vec<Repair> = found
                .iter()
                .flat_map(|finding| &finding.repairs)
                .filter(|repair| may(repair))
                .filter(|repair| !self.failures.iter().any(|(failed, _)| failed == *repair))
                .cloned()
                .collect();
            if todo.is_empty() {
                break;
            }
            self.carry_out(todo, backup);
            found = self.look();
        }
        found
    }

    fn carry_out(&mut self, todo: Vec<Repair>, backup: &mut Backup) {
        let mut tried: Vec<Repair> = Vec::new();
        for repair in todo {
            if tried.contains(&repair) {
                continue;
            }
            let done = if repair == set_database_aside(self.context) {
                self.renew_database(&repair, backup)
            } else if repair == devices::repair_of(self.context) {
                devices::repair(self.context).map(|notes| self.notes.extend(notes))
            } else {
                checkup::repair(&self.premises, &repair, backup).map_err(|error| error.to_string())
            };
            if let Err(why) = done {
                self.failures.push((repair.clone(), why));
            }
            tried.push(repair);
        }
    }

    /// Moves the damaged database into the backup; a new one with what can be read of it takes its place.
    fn renew_database(&mut self, set_aside: &Repair, backup: &mut Backup) -> Result<(), String> {
        let set_aside = || checkup::repair(&self.premises, set_aside, backup);
        let saved = renew_database(&self.context.paths().database(), set_aside);
        let Salvaged { messages, deliveries, arrivals } = saved.map_err(|error| error.to_string())?;
        self.notes.push(format!(
            "Taken over from the damaged database: {messages} message(s), {deliveries} delivery(ies) and {arrivals} \
             event(s) of chat platforms."
        ));
        Ok(())
    }

    /// Keeps gateways away. `None` if one runs: then only repairs that are safe beside it are made.
    fn hold(&mut self) -> Result<Option<StateHold>, Failure> {
        match hold_state(&self.context.loaded) {
            Ok(hold) => Ok(Some(hold)),
            Err(LockError::Held { pid, .. }) => {
                self.running = Some(Running { pid, port: None });
                Ok(None)
            }
            Err(error @ LockError::Io { .. }) => Err(Failure::new("state-dir", error.to_string())
                .hint("Make the directory writable, or set OPENCLAW_STATE_DIR, then run this again.")),
        }
    }
}

/// The gateway's own database.
fn database_finding(context: &Context) -> Option<Finding> {
    let path = context.paths().database();
    let shown = path.display();
    match check_database(&path) {
        DatabaseState::Absent | DatabaseState::Sound | DatabaseState::InUse => None,
        DatabaseState::Damaged(why) => {
            let message = format!(
                "CRITICAL: The database {shown} is damaged ({why}). What can be read of it can be taken over into a new one; \
                 messages that can't be read will not be answered."
            );
            let repairs = vec![set_database_aside(context)];
            Some(Finding { id: "database.damaged", severity: Severity::Error, message, repairs })
        }
        DatabaseState::Unknown(why) => {
            let message = format!("The database {shown} could not be looked at: {why}.");
            Some(Finding {
                id: "database.unknown",
                severity: Severity::Warning,
                message,
                repairs: Vec::new(),
            })
        }
    }
}

/// The first step of its repair; [`Session::renew_database`] does the rest.
fn set_database_aside(context: &Context) -> Repair {
    let path = context.paths().database();
    let beside = |suffix: &str| {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        std::path::PathBuf::from(name)
    };
    Repair::SetAside(["", "-wal", "-shm"].map(beside).into())
}

#[cfg(test)]
mod tests;
