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
use openclaw_config::private_file;
use openclaw_dispatch::{DatabaseState, Salvaged, check_database, is_lost_by, renew_database};
use openclaw_gateway::{InstanceLockError, RunningGateway, StateHold, hold_state, premises, running_gateway};
use openclaw_sessions::backup::Backup;
use openclaw_sessions::checkup::{self, Finding, Premises, Repair, Severity};

use crate::args::DoctorArgs;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};

/// Maximum number of rounds of repairs: repairs bring other problems to light, such as the modes of
/// files that were moved.
const ROUNDS: usize = 4;

/// Flags of OpenClaw's doctor that are about parts which are not here yet.
fn refuse_unknown_parts(args: &DoctorArgs) -> Result<(), CommandFailure> {
    let refused =
        [(args.deep, "--deep", "looking at system services"), (args.force, "--force", "service definitions")];
    match refused.into_iter().find(|(given, _, _)| *given) {
        Some((_, flag, what)) => {
            let text = format!("openclaw doctor {flag}: not implemented yet in this version ({what})");
            Err(CommandFailure::usage(text)
                .hint("Run it without this flag to check and repair the state directory."))
        }
        None => Ok(()),
    }
}

pub(super) fn run(args: &DoctorArgs, context: &CliContext) -> CommandResult {
    refuse_unknown_parts(args)?;
    openclaw_gateway::keep_files_private();
    let is_fix = args.fix || args.repair;
    let mut session = DoctorRun::new(context.reread(), args);
    // Modes first: nothing can be written in a directory that its owner can't write.
    let mut before = if is_fix { session.set_modes() } else { Vec::new() };
    if args.generate_gateway_token {
        session.notes.push(token::generate(&session.context.reread())?);
    }
    if args.remove_unknown {
        session.notes.extend(unknown_keys::remove(&session.context.reread())?);
    }
    // With the config as it is now: a new token may have made one.
    session.reread();
    let found = session.look();
    before.retain(|mended| found.iter().all(|finding| finding.id != mended.id));
    before.extend(found.iter().cloned());
    let mut after = if is_fix { session.repair(found)? } else { found };
    let context = &session.context;
    let mut at_work = at_work::look(context, session.running);
    model_at_work::look(context, session.running, &mut at_work);
    after.extend(at_work.findings);
    after.extend(session.running.and_then(|running| lost_database(context, running)));
    if session.running.is_some() && check_database(&context.paths().database()) == DatabaseState::InUse {
        session.notes.push(
            "The running gateway has its database for itself, so it was not looked at; stop the gateway to have it checked."
                .to_owned(),
        );
    }
    let checked = report::DoctorReport {
        checks: report::checks(&before, &after, &session.failures),
        notes: session.notes,
        facts: at_work.facts,
        running: session.running,
        backup: session.backup.take(),
        is_fix,
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
struct DoctorRun {
    context: CliContext,
    premises: Premises,
    running: Option<RunningGateway>,
    /// Notes on other work done, for people.
    notes: Vec<String>,
    /// Repairs that did not work, and why.
    failures: Vec<(Repair, String)>,
    backup: Option<std::path::PathBuf>,
}

impl DoctorRun {
    fn new(context: CliContext, args: &DoctorArgs) -> Self {
        let premises = Premises {
            archive_orphans: args.archive_orphans,
            now: now_ms(),
            ..premises(&context.config_or_default())
        };
        let running = running_gateway(&context.loaded);
        Self { context, premises, running, notes: Vec::new(), failures: Vec::new(), backup: None }
    }

    /// Reads the files anew that a repair may have changed, or made readable.
    fn reread(&mut self) {
        self.context = self.context.reread();
        let Premises { archive_orphans, now, .. } = self.premises;
        self.premises = Premises { archive_orphans, now, ..premises(&self.context.config_or_default()) };
    }

    /// Collects all findings.
    fn look(&mut self) -> Vec<Finding> {
        let context = &self.context;
        self.premises.is_running = self.running.is_some();
        self.premises.is_configured = context.loaded.config_for_reading().is_ok();
        let mut found: Vec<Finding> = config_findings::of(context).into_iter().collect();
        found.extend(config_findings::warnings(context));
        found.extend(moved_keys::finding(context));
        found.extend(config_findings::fallbacks(context));
        found.extend(config_findings::of_tools(context));
        found.extend(config_findings::hooks(context));
        found.extend(config_findings::of_memory(context));
        found.extend(absent::findings(context));
        found.extend(checkup::check(&self.premises));
        found.extend(database_finding(context));
        found.extend(devices::findings(context));
        found.extend(places::findings(context));
        if self.running.is_some() {
            found.extend(running_channels::findings(context));
        } else {
            found.extend(running_channels::of_configuration(context));
        }
        if !self.context.loaded.snapshot.exists {
            // Setup, which has to be run anyway, makes the directories too.
            found.retain(|finding| !finding.id.ends_with("dir-missing"));
        }
        found
    }

    /// Sets modes, and returns the findings about them.
    fn set_modes(&mut self) -> Vec<Finding> {
        let is_mode = |repair: &Repair| matches!(repair, Repair::Chmod { .. });
        let mut found = self.look();
        found.retain(|finding| finding.repairs.iter().any(is_mode));
        let mut backup = Backup::new(self.context.paths().state_dir(), self.premises.now);
        self.rounds(found.clone(), is_mode, &mut backup);
        found
    }

    /// Makes the repairs that can be made, and returns the findings that are left.
    fn repair(&mut self, mut found: Vec<Finding>) -> Result<Vec<Finding>, CommandFailure> {
        let mut backup = Backup::new(self.context.paths().state_dir(), self.premises.now);
        let aside = places::set_aside(&self.context);
        if !aside.is_empty() {
            self.notes.extend(aside);
            found = self.look();
        }
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
            self.reread();
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
            let done = if repair == set_database_aside(&self.context) {
                self.renew_database(&repair, backup)
            } else if repair == devices::repair_of(&self.context) {
                devices::repair(&self.context).map(|notes| self.notes.extend(notes))
            } else if repair == Repair::MoveOldKeys {
                moved_keys::rewrite(&self.context).map(|note| self.notes.extend(note))
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
    fn hold(&mut self) -> Result<Option<StateHold>, CommandFailure> {
        match hold_state(&self.context.loaded) {
            Ok(hold) => Ok(Some(hold)),
            Err(InstanceLockError::Held { pid, .. }) => {
                self.running = Some(RunningGateway { pid, port: None });
                Ok(None)
            }
            Err(error @ InstanceLockError::Io { .. }) => {
                let is_full =
                    matches!(&error, InstanceLockError::Io { source, .. } if private_file::is_full(source));
                let remedy = if is_full { "Free space on that disk" } else { "Make the directory writable" };
                Err(CommandFailure::new("state-dir", error.to_string())
                    .hint(format!("{remedy}, or set OPENCLAW_STATE_DIR, then run this again.")))
            }
        }
    }
}

/// The gateway's own database.
fn database_finding(context: &CliContext) -> Option<Finding> {
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

/// The database of a running gateway, if it was deleted or moved away.
fn lost_database(context: &CliContext, running: RunningGateway) -> Option<Finding> {
    let path = context.paths().database();
    if !is_lost_by(&path, running.pid?) {
        return None;
    }
    let message = format!(
        "CRITICAL: The database {} was deleted or moved away while the gateway runs: new messages are refused. Stop the \
         gateway, put the file back or begin with a new one, then start it again.",
        path.display()
    );
    Some(Finding { id: "database.gone", severity: Severity::Error, message, repairs: Vec::new() })
}

/// The first step of its repair; [`DoctorRun::renew_database`] does the rest.
fn set_database_aside(context: &CliContext) -> Repair {
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
