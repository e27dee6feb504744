//! The commands in groups, as the help lists them.

use contexture_terminal::screen::{Screen, TextStyle};

/// The groups with their commands, what most people need first.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Run your agent", &["demo", "run", "doctor", "receipts", "status", "inspect", "pause", "resume"]),
    ("Keep a gateway", &["install", "uninstall", "serve", "show", "forget", "models"]),
    ("Look at recorded sessions", &["replay", "compare", "import", "window"]),
    ("Talk, and remember", &["chat", "memory", "mcp", "layers"]),
    ("Set up", &["config", "store", "completions"]),
];

/// The column at which descriptions begin.
const INDENT: usize = 15;

/// Lists the commands of the program in groups.
pub(crate) fn grouped(program: clap::Command, screen: Screen) -> clap::Command {
    let mut listed = String::new();
    for (heading, names) in GROUPS {
        listed.push_str(&format!("{}\n", screen.paint(TextStyle::Bold, &format!("{heading}:"))));
        for name in names {
            // On some systems a command is missing.
            let Some(command) = program.find_subcommand(name).filter(|command| !command.is_hide_set()) else {
                continue;
            };
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            listed.push_str(&format!("{}\n", screen.wrap(&format!("  {name:<12} {about}"), INDENT)));
        }
        listed.push('\n');
    }
    let more = screen.wrap("`contexture help COMMAND` explains a command.", 0);
    program.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listed}{}\n{{options}}\n\n{more}",
        screen.paint(TextStyle::Bold, "Options:")
    ))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::CommandLine;

    #[test]
    fn every_command_is_in_one_group() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let program = CommandLine::command();
        let mut commands: Vec<&str> =
            program.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name).collect();
        listed.sort_unstable();
        commands.sort_unstable();
        assert_eq!(listed, commands);
    }
}
