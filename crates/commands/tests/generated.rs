//! `docs/commands.md`, made from the table of commands. `cargo xtask generate` writes it.

use expect_test::expect_file;

#[test]
fn the_page_of_commands_is_up_to_date() {
    expect_file!["../../../docs/commands.md"].assert_eq(&openclaw_commands::reference());
}
