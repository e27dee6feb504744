//! Flags that select the configuration files, and flags that set a key, which are derived from the table of keys.

use std::marker::PhantomData;
use std::path::PathBuf;

use crate::settings::{Command, Flag, SettingRow, ValueKind, keys};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, value_parser};
use serde_json::Value;

/// The configuration flags of a command: `--config`, `--no-config`, and one for every key of the command that has a
/// flag. The type `C` is the command.
#[derive(Clone, Debug)]
pub struct ConfigFlags<C> {
    pub(super) files: FileFlags,
    pub(super) values: Vec<Flag>,
    command: PhantomData<C>,
}

/// Which files are read.
#[derive(Clone, Debug)]
pub(super) struct FileFlags {
    /// Used instead of the project's file.
    pub(super) file: Option<PathBuf>,
    /// Whether no file is read.
    pub(super) are_ignored: bool,
}

/// Selects the flags of a command: those of the keys that these commands use.
pub trait FlagsOf {
    /// The commands.
    const COMMANDS: &'static [Command];
}

/// The flags of `contexture config window`.
#[derive(Clone, Copy, Debug)]
pub struct OfWindow;

/// The flags of `contexture replay`.
#[derive(Clone, Copy, Debug)]
pub struct OfReplay;

/// The flags of `contexture run` and `contexture serve`.
#[derive(Clone, Copy, Debug)]
pub struct OfGateway;

/// The flags of `contexture chat`.
#[derive(Clone, Copy, Debug)]
pub struct OfChat;

/// The flags of all commands.
#[derive(Clone, Copy, Debug)]
pub struct Everything;

impl FlagsOf for OfWindow {
    const COMMANDS: &'static [Command] = &[Command::Window];
}

impl FlagsOf for OfReplay {
    const COMMANDS: &'static [Command] = &[Command::Replay];
}

impl FlagsOf for OfGateway {
    const COMMANDS: &'static [Command] = &[Command::Run, Command::Serve];
}

impl FlagsOf for OfChat {
    const COMMANDS: &'static [Command] = &[Command::Chat];
}

impl FlagsOf for Everything {
    const COMMANDS: &'static [Command] = &Command::ALL;
}

impl ConfigFlags<Everything> {
    /// The usual files, and no flags.
    pub(crate) fn none() -> Self {
        let files = FileFlags { file: None, are_ignored: false };
        Self { files, values: Vec::new(), command: PhantomData }
    }
}

/// The keys that have a flag in a command.
fn rows<C: FlagsOf>() -> impl Iterator<Item = &'static SettingRow> {
    let is_used = |row: &SettingRow| row.used_by.iter().any(|command| C::COMMANDS.contains(command));
    keys::ALL.iter().filter(move |row| row.has_flag && is_used(row))
}

impl<C: FlagsOf> Args for ConfigFlags<C> {
    fn augment_args(command: clap::Command) -> clap::Command {
        let file = Arg::new("config").long("config").value_name("FILE").value_parser(value_parser!(PathBuf));
        let file = file.help("A configuration file (TOML) that is used instead of the project's contexture.toml");
        let none = Arg::new("no-config").long("no-config").action(ArgAction::SetTrue).conflicts_with("config");
        let is_everything = C::COMMANDS.len() == Command::ALL.len();
        // One command explains it.
        let none = none.help("Ignore the configuration files of the project and of the user").hide(!is_everything);
        command.args(rows::<C>().map(argument::<C>)).arg(file).arg(none)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<C: FlagsOf> FromArgMatches for ConfigFlags<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let value = |row: &'static SettingRow| Some(Flag::new(row, matches.get_one::<Value>(row.name)?.clone()));
        let files = FileFlags {
            file: matches.get_one::<PathBuf>("config").cloned(),
            are_ignored: matches.get_flag("no-config"),
        };
        Ok(Self { files, values: rows::<C>().filter_map(value).collect(), command: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flag of a key.
fn argument<C: FlagsOf>(row: &'static SettingRow) -> Arg {
    let flag = row.flag().unwrap_or_default();
    let value_name = match row.kind {
        ValueKind::Whole { .. } => "N".to_owned(),
        _ => row.place().1.to_uppercase(),
    };
    let says = row.says.trim_end_matches('.');
    let help = match C::COMMANDS {
        [_] => format!("{says} [default: {}]", in_words(&(row.default)())),
        _ => says.to_owned(),
    };
    // The other keys are set in files and in variables.
    let is_seldom = row.name != "budget" || C::COMMANDS.len() == Command::ALL.len();
    let argument = Arg::new(row.name).long(flag.trim_start_matches('-').to_owned()).hide(is_seldom);
    let is_number = matches!(row.kind, ValueKind::Whole { .. });
    // So that the error for a negative number is about the number, not about an unknown flag.
    argument.allow_negative_numbers(is_number).value_name(value_name).value_parser(reader(row)).help(help)
}

fn reader(row: &'static SettingRow) -> ValueParser {
    let choices = row.kind.choices();
    if choices.is_empty() {
        return ValueParser::new(move |text: &str| row.read_flag(text));
    }
    let choices = choices.iter().map(|choice| PossibleValue::new(choice.name).help(choice.says));
    ValueParser::new(PossibleValuesParser::new(choices).map(Value::String))
}

/// A value as it is written after a flag.
fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "not set".to_owned(),
        value => value.to_string(),
    }
}
