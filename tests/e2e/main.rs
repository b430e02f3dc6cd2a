//! End-to-end tests: the real binary, as a user would start it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is test code; the lints' exception for tests knows only functions marked as tests"
)]

mod abort;
mod abort_anywhere;
mod absent_features;
mod advice;
mod agents;
mod approvals;
mod approvals_command;
mod at_rest;
mod audit;
mod background_commands;
mod bad_answers;
mod bad_commands;
mod bad_config;
mod bad_disk;
mod bad_frames;
mod bad_load;
mod bad_model;
mod bad_start;
mod bad_stop;
mod bad_store;
mod bad_transcript;
mod bash_command;
mod behind_proxies;
mod beside_openclaw;
mod careless_servers;
mod channel_switches;
mod channel_troubles;
mod channels_commands;
mod chat_commands;
mod client_scopes;
mod compaction;
mod config_paths;
mod connect_model;
mod context_command;
mod control_frames;
mod crowds;
mod direct_history;
mod direct_spelling;
mod directives;
mod disk_faults;
mod doctor;
mod doors;
mod dotenv;
mod edited_between_turns;
mod endless;
mod errors_in_chats;
mod expected_answers;
mod exposure;
mod failover;
mod floods;
mod frame_limits;
mod full_inbox;
mod gateway_tool;
mod given_up;
mod golden_chat;
mod golden_connect;
mod golden_methods;
mod google_bedrock;
mod heartbeat;
mod heavy_requests;
mod held_locks;
mod hooks;
mod hooks_install;
mod hooks_that_hang;
mod http2;
mod image_tool;
mod interleaved;
mod kills;
mod left_behind;
mod lifecycle;
mod listeners;
mod local_models;
mod logins;
mod main_key;
mod memory;
mod memory_batch;
mod memory_crowd;
mod memory_kills;
mod memory_qmd;
mod message_tool;
mod missing_commands;
mod model_directive;
mod model_retries;
mod models_commands;
mod models_probes;
mod nesting;
mod newcomer;
mod odd_frames;
mod off_limits;
mod offline;
mod orphans;
mod outages;
mod pauses;
mod pictures;
mod pipelined;
mod power_cuts;
mod process_scopes;
mod promises;
mod prompt_cache;
mod prompt_pictures;
mod prompt_sections;
mod protections;
mod proxy;
mod queue_modes;
mod readme;
mod reference_state;
mod refused_files;
mod refused_once;
mod repeated_keys;
mod responses;
mod restart_drain;
mod rights;
mod sandbox;
mod sandbox_containers;
mod sandbox_escape;
mod session_files;
mod session_tools;
mod session_tools_rows;
mod sessions_methods;
mod sessions_send;
mod sessions_send_policy;
mod setup;
mod several_accounts;
mod shared_places;
mod signals;
mod skills;
mod skills_commands;
mod skills_methods;
mod slow_consumer;
mod slow_readers;
mod state_upkeep;
mod steered_tools;
mod steering;
mod stops;
mod strange_pages;
mod strange_words;
mod subagents;
mod subagents_rows;
mod subagents_strain;
mod support;
mod telegram;
mod telegram_access;
mod telegram_bad_input;
mod telegram_blocks;
mod telegram_buttons;
mod telegram_groups;
mod telegram_hardships;
mod telegram_identity;
mod telegram_kinds;
mod telegram_strangers;
mod terminal_flood;
mod tool_secrets;
mod tools;
mod tools_explain;
mod tools_invoke;
mod torture;
mod true_advice;
mod tui_pause;
mod two_gateways;
mod undelivered;
mod unsent_answers;
mod usage_commands;
mod web_chat;
mod what_is_told;
mod workspace_files;
mod wrong_clock;

use openclaw_testkit::GatewaySetup;

/// A gateway of the binary under test: the one that was built with the tests, or that `OPENCLAW_TEST_BINARY` names.
fn gateway() -> GatewaySetup {
    GatewaySetup::new(program())
}

fn program() -> std::path::PathBuf {
    let named = std::env::var_os("OPENCLAW_TEST_BINARY");
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_openclaw").into()).into()
}
