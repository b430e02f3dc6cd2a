//! A configuration file is read or refused with a place in it, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openclaw_config::{Config, Environment, json5};

fuzz_target!(|text: &str| {
    if json5::parse_value(text).is_ok() {
        let environment = Environment::new([("HOME", "/home/fuzz")], "/");
        let _ = Config::from_json5(text, &environment);
    }
});
