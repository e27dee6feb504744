//! The commands in groups, as the help lists them.

use contexture_terminal::screen::{Screen, TextStyle};

/// The groups with their commands, what most people need first.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Run your agent", &["demo", "run", "doctor", "receipts", "status", "inspect", "pause"]),
    ("Keep a gateway", &["install", "uninstall", "serve", "show", "forget"]),
    ("Look at recorded sessions", &["replay"]),
    ("Talk, and remember", &["chat", "memory", "mcp"]),
    ("Set up", &["config", "store"]),
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
    let more =
        "`contexture help COMMAND` explains a command, and `contexture completions SHELL` prints completions of all.";
    let more = screen.wrap(more, 0);
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

    /// The most commands, and the most options of all of them and of what is beneath them: who adds one more looks first
    /// for one that can go.
    const MAX_COMMANDS: usize = 18;
    const MAX_OPTIONS: usize = 120;

    /// What the help lists of a command.
    fn listed(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
        command.get_subcommands().filter(|command| !command.is_hide_set())
    }

    /// The options in the help of a command and of all commands beneath it, without `--help`.
    fn options(command: &clap::Command) -> usize {
        let own = command.get_arguments().filter(|argument| !argument.is_positional() && !argument.is_hide_set());
        own.count() + listed(command).map(options).sum::<usize>()
    }

    #[test]
    fn every_command_is_in_one_group() {
        let groups: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let program = CommandLine::command();
        for command in listed(&program) {
            let count = groups.iter().filter(|name| **name == command.get_name()).count();
            assert_eq!(count, 1, "{} is in {count} groups", command.get_name());
        }
    }

    #[test]
    fn there_are_few_commands_and_options() {
        let program = CommandLine::command();
        let (commands, options) = (listed(&program).count(), listed(&program).map(options).sum::<usize>());
        println!("{commands} commands, {options} options");
        assert!(commands <= MAX_COMMANDS && options <= MAX_OPTIONS, "{commands} commands, {options} options");
    }
}
