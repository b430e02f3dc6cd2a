//! The doctor on directories of its own.

use std::path::PathBuf;

use openclaw_config::Environment;

use super::*;
use report::{DoctorCheck, DoctorReport};

fn at(home: &std::path::Path) -> CliContext {
    let home = home.to_str().unwrap();
    CliContext::new(&Environment::new([("HOME", home), ("TMPDIR", home)], home), true)
}

fn finding(id: &'static str, severity: Severity, repairs: Vec<Repair>) -> Finding {
    Finding { id, severity, message: format!("{id} is odd."), repairs }
}

fn report(checks: Vec<DoctorCheck>) -> DoctorReport {
    DoctorReport {
        checks,
        notes: Vec::new(),
        facts: Vec::new(),
        running: None,
        backup: None,
        is_fix: false,
        has_failed: false,
    }
}

#[test]
fn the_report_says_what_was_fixed_what_is_left_and_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let context = at(home.path());
    let tidy = Repair::RemoveLock(PathBuf::from("/l"));
    let before = [
        finding("lock.stale", Severity::Warning, vec![tidy.clone()]),
        finding("state.permissions", Severity::Warning, Vec::new()),
        finding("store.damaged", Severity::Error, vec![tidy.clone()]),
    ];
    let checks = report::checks(&before, &before[1..], &[(tidy, "no".to_owned())]);
    let mut report = report(checks);
    report.running = Some(RunningGateway { pid: Some(7), port: None });
    report.backup = Some(context.paths().state_dir().join("backups/x"));
    let expect = "OpenClaw doctor\n\nState integrity\n- state.permissions is odd.\n\nSession stores\n- store.damaged is odd. \
                  Could not be repaired: no.\n\nLeft behind\n- lock.stale is odd. Fixed.\n\nWhat was changed is kept in \
                  ~/.openclaw/backups/x (manifest.jsonl says what was where).\nA gateway (pid 7) has this state directory: stop \
                  it, then run \"openclaw doctor --fix\" to repair the rest.\nDoctor complete.";
    assert_eq!(report.lines(&context).join("\n"), expect);
    assert_eq!((report.exit(false), report.exit(true)), (0, 1));
    let document = report.document(1);
    assert_eq!(document["checks"][0]["fixed"], true);
    assert_eq!(document["checks"][2]["fixable"], true);
    assert_eq!((&document["gateway"]["pid"], &document["exit"]), (&7.into(), &1.into()));
}

#[test]
fn only_unresolved_errors_count_for_a_check() {
    let check = |severity, is_fixed| DoctorCheck {
        finding: finding("x", severity, Vec::new()),
        is_fixed,
        failure: None,
    };
    let rows = [
        (vec![], 0),
        (vec![check(Severity::Warning, false)], 0),
        (vec![check(Severity::Error, true)], 0),
        (vec![check(Severity::Error, false)], 1),
    ];
    for (checks, exit) in rows {
        let report = report(checks);
        assert_eq!((report.exit(true), report.exit(false)), (exit, 0), "{report:?}");
    }
}

#[test]
fn parts_that_are_not_here_are_refused() {
    let home = tempfile::tempdir().unwrap();
    for args in [
        DoctorArgs { deep: true, ..DoctorArgs::default() },
        DoctorArgs { force: true, ..DoctorArgs::default() },
    ] {
        let failure = run(&args, &at(home.path())).unwrap_err();
        assert!(failure.message.contains("not implemented yet"), "{failure:?}");
    }
    assert!(!home.path().join(".openclaw").exists());
}

#[test]
fn a_config_that_cannot_be_parsed_is_never_written() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".openclaw/openclaw.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "{ oops").unwrap();
    let fix = DoctorArgs { fix: true, json: true, check: true, ..DoctorArgs::default() };
    assert_eq!(run(&fix, &at(home.path())).unwrap(), 1, "the error remains");
    let token = DoctorArgs { generate_gateway_token: true, ..DoctorArgs::default() };
    assert_eq!(run(&token, &at(home.path())).unwrap_err().code, "config-invalid");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ oops");
}

#[test]
fn a_damaged_database_is_kept_in_the_backup_and_a_new_one_put_in_its_place() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join(".openclaw/openclaw.json");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "{ gateway: { mode: 'local', auth: { token: 't' } } }").unwrap();
    let context = at(home.path());
    let path = context.paths().database();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let garbage = "this is no database, whatever its name says";
    std::fs::write(&path, garbage).unwrap();
    let fix = DoctorArgs { fix: true, json: true, check: true, ..DoctorArgs::default() };
    assert_eq!(run(&fix, &context).unwrap(), 0);
    assert_eq!(check_database(&path), DatabaseState::Sound);
    let backups = std::fs::read_dir(context.paths().state_dir().join("backups")).unwrap();
    let [backup] = backups.map(|dir| dir.unwrap().path()).collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(std::fs::read_to_string(backup.join("gateway.sqlite")).unwrap(), garbage);
}

#[test]
fn a_token_is_generated_once() {
    let home = tempfile::tempdir().unwrap();
    let args = DoctorArgs { generate_gateway_token: true, json: true, ..DoctorArgs::default() };
    let token = || at(home.path()).loaded.snapshot.parsed.pointer("/gateway/auth/token").cloned();
    run(&args, &at(home.path())).unwrap();
    let first = token().unwrap();
    assert_eq!(first.as_str().map(str::len), Some(48));
    run(&args, &at(home.path())).unwrap();
    assert_eq!(token(), Some(first));
}
