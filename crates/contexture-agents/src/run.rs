//! How an agent is pointed at the gateway, and where its own configuration says that requests go.
//!
//! `{url}` is the gateway's address with its key: it is in variables and in files of our own, never in arguments, which
//! every user of the machine can read. `{files}` is a private directory with `files`; both that and `placed` are for this
//! user only and are deleted at the end. `{id}` is unique to the run, and `{program}` is this program, as a shell reads it.
//! All agents accept an address with a path.
//!
//! In the name of a file, `~` is the user's directory, `{NAME|default}` a variable, and a relative name is looked for in
//! the working directory and those above it up to the repository's. In a key, `<...>` is the value of another key, and `*`
//! the first entry of a list or table that has the rest.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::data::{Text, Texts, data};

/// One of the gateway's upstreams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Upstream {
    /// Anthropic's.
    Anthropic,
    /// OpenAI's.
    Openai,
    /// Google's.
    Google,
    /// One address for everything.
    Any,
}

/// In which directories a file with a relative name counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DirectoryReach {
    /// In the working directory alone.
    Here,
    /// And in those above it, up to the repository's.
    #[default]
    Repository,
    /// The same, and outside of a repository in all above it.
    Root,
}

data! {
    /// How an agent is run.
    #[derive(Default)]
    Run {
        /// Its name for the program.
        name: Text,
        /// The command that starts it.
        command: Text,
    } and {
        /// The command that installs it.
        package: Option<Text>,
        /// Variables that it gets.
        set: BTreeMap<String, String>,
        /// Variables that it gets unless the user has set them.
        unless_set: BTreeMap<String, String>,
        /// Arguments that it gets before the user's.
        arguments: Texts,
        /// Files that it is told of by an argument, with what is in them.
        files: BTreeMap<String, String>,
        /// A file in a directory of its own, for an agent that reads settings from nowhere else.
        placed: Option<PlacedFile>,
        /// What it is told besides if its settings beat variables.
        beaten: Beaten,
        /// Where the user may have set an address.
        address: Vec<Address>,
        /// What else decides where its requests go.
        choice: Vec<RouteChoice>,
        /// A variable without which nobody knows where its requests go.
        needs: Option<Text>,
        /// How it asks one question.
        #[serde(rename = "try")]
        trial: Trial,
        /// How its own settings point it at a gateway for good.
        install: Option<Install>,
        /// What to look at if nothing of it is seen.
        hint: Option<Text>,
    }

    /// How an agent's own settings point it at a gateway for good.
    Install {} and {
        /// The file; the first one that is there counts, or the first.
        files: Texts,
        /// The settings, by their names.
        set: BTreeMap<String, String>,
        /// Settings that are written unless the first part of their name is there already, as for a status line.
        unless_there: BTreeMap<String, String>,
        /// Settings that are written unless they are there already.
        unless_set: BTreeMap<String, String>,
        /// What makes other settings count than those that are written, if one of these says yes.
        not_when: Vec<SettingPlace>,
        /// Why it has no such settings.
        cannot: Option<Text>,
        /// What else a user should know.
        note: Option<Text>,
    }

    /// How an agent asks one question and ends.
    #[derive(Default)]
    Trial {} and {
        /// Its arguments.
        arguments: Texts,
        /// Variables that it gets besides, unless the user has set them.
        unless_set: BTreeMap<String, String>,
        /// Arguments that it gets besides, if it has no setting of its own: the first that fits.
        or: Vec<TrialArguments>,
        /// Whether the user has such a setting.
        unless: Vec<SettingPlace>,
    }

    /// Arguments of a trial that need a key.
    TrialArguments {
        /// The variable with the key.
        variable: Text,
        /// The arguments.
        arguments: Texts,
    } and {}

    /// A file of ours in a directory of the agent's.
    PlacedFile {
        /// The directory.
        directory: Text,
        /// Its name there.
        name: Text,
        /// What is in it.
        text: Text,
    } and {}

    /// What beats settings that beat variables.
    #[derive(Default)]
    Beaten {} and {
        /// Arguments.
        arguments: Texts,
        /// Files that they name, with what is in them.
        files: BTreeMap<String, String>,
    }

    /// An address that the user may have set: the gateway passes on to it.
    Address {
        /// What it is the address of.
        upstream: Upstream,
        /// The first one that is set counts.
        from: Vec<SettingPlace>,
    } and {
        /// Where requests go if none is set, for an agent of a provider of its own. `{region|default}` is the first of
        /// `region` that is set, or the default.
        usual: Option<Text>,
        /// Where a region may be set.
        region: Vec<SettingPlace>,
        /// It counts only if one of these says yes; without them always.
        when: Vec<SettingPlace>,
    }

    /// Something that decides where requests go.
    RouteChoice {
        /// Why other values are refused than those that are served.
        why: Text,
        /// The first one that is set counts.
        from: Vec<SettingPlace>,
    } and {
        /// The values with which requests reach the gateway; `x*` is all that begin with x.
        served: Texts,
        /// If one of these is set, every value is served.
        unless: Vec<SettingPlace>,
    }

    /// One place in which something may be configured: exactly one of variable, file, argument, directory and flag.
    SettingPlace {} and {
        /// A variable.
        variable: Option<Text>,
        /// A file, with the key in it.
        file: Option<Text>,
        /// The key.
        key: Text,
        /// Files of which only the first that is there counts, in the working directory or the nearest one above it; those
        /// of the user's directory come last.
        nearest: Texts,
        /// In which directories above the working directory a file with a relative name counts.
        reach: DirectoryReach,
        /// The user's own file, which is none of a project even if that is in the user's directory.
        except: Option<Text>,
        /// A word that no file beneath `file`, which is a directory then, may have.
        word: Option<Text>,
        /// An argument with a value, in all its spellings. With a key, the value is a file of settings, or settings in JSON.
        argument: Option<Texts>,
        /// What the value of the argument begins with, if it counts.
        after: Text,
        /// An argument without a value.
        flag: Option<Text>,
        /// Whether it is the first argument, if that names a directory.
        directory: bool,
        /// Whether it beats variables.
        beats: bool,
    }
}
