//! The names of the arguments of tools, by what they hold. Agents agree on them only loosely.

use crate::data::{Texts, data};

data! {
    /// The names that agents commonly use for arguments, the likeliest first.
    ArgumentNames {
        /// The path of a file or a directory.
        path: Texts,
        /// A file's text.
        content: Texts,
        /// Arguments that say nothing about what a tool does to a file.
        idle: Texts,
        /// Whether a file is replaced or added to.
        mode: Texts,
        /// The file that is moved.
        from: Texts,
        /// Where it is moved.
        to: Texts,
        /// What is inserted.
        insert: Texts,
        /// A patch.
        patch: Texts,
        /// The piece that is replaced.
        old: Texts,
        /// What replaces it.
        replacement: Texts,
        /// Several replacements.
        edits: Texts,
        /// Whether all such pieces are replaced.
        all: Texts,
        /// Whether nothing is changed.
        rehearsal: Texts,
        /// A command line, or a program with its arguments.
        command: Texts,
        /// How many lines are passed over.
        offset: Texts,
        /// The first line.
        start: Texts,
        /// How many lines, or the last one.
        limit: Texts,
        /// The first and the last line.
        range: Texts,
        /// The directory that a command runs in.
        workdir: Texts,
        /// Several command lines.
        command_list: Texts,
        /// The words after a program.
        word: Texts,
    } and {}
}
