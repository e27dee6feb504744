//! What an agent writes beside what a person and the model say: around outputs, and as notes of its own.

use serde::Deserialize;

use crate::data::{Text, Texts, data};

/// What a line says that an agent puts after the output of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tells {
    /// The exit status, which follows.
    Exit,
    /// The directory of the shell after the command, which follows.
    Directory,
    /// The directory that the shell was put back into, which follows. A command may have printed the line as well.
    Reset,
}

data! {
    /// A line that an agent puts after the output of a command.
    Trailer {
        /// How it begins.
        starts: Text,
    } and {
        /// What it says that is of use.
        tells: Option<Tells>,
        /// What is before that, if that is not at once.
        then: Option<Text>,
        /// The tools that write it at the very end, always or if a command failed.
        closes: Texts,
    }

    /// What an agent writes into outputs.
    #[derive(Default)]
    OutputMarks {} and {
        /// Lines after the output of a command. Nothing from such a line on counts as output.
        trailers: Vec<Trailer>,
        /// What is written if there was no output.
        nothing: Texts,
        /// How an output begins that was taken away, some with a preview among other text.
        elsewhere: Texts,
        /// Remarks that mean nothing for what was done, whatever words they have. They end with a closing bracket.
        remarks: Texts,
        /// How a tool says that it did nothing because the file is not as the agent saw it.
        stale: Texts,
        /// How the output of a call begins, in lower case, that was refused and did not run.
        denied: Texts,
        /// How one begins, in lower case, that was interrupted, or hides what the call did.
        stopped: Texts,
        /// How one begins, in lower case, of a call that failed.
        failed: Texts,
        /// What one has near its beginning, in lower case, when something else came out than what was asked for.
        different: Texts,
        /// Words and phrases, in lower case, with which something went wrong, or was not done yet.
        wrong: Texts,
        /// Words with which a tool says that it did something.
        done: Texts,
        /// Words with which it says nothing more.
        plain: Texts,
        /// What a short output has, in lower case, that says that the file of the call is not there.
        absent: Texts,
        /// What one has, in lower case, that says that the file is empty.
        empty: Texts,
        /// What is before and after the number of lines that one says the file has, in lower case.
        length: Vec<Around>,
        /// What is before the name of a command or an agent that goes on after its call.
        started: Texts,
        /// What an output has that says that such a one ended.
        ended: Texts,
        /// How a tool says, in lower case, that the text to be replaced is not in the file.
        not_in_file: Texts,
        /// How an output begins of a script that ran to its end; what it printed follows after the line `Output:`.
        scripts: Texts,
        /// Where the report of another agent ends, and a remark on going on with it begins.
        report_end: Texts,
    }

    /// What is before and after something.
    Around {
        /// What is before it.
        before: Text,
        /// What is after it.
        after: Text,
    } and {}

    /// What an agent reminds a model of.
    Reminder {
        /// Words that it has.
        words: Text,
        /// What kind of a note it is.
        kind: Text,
    } and {}

    /// What an agent writes into the conversation on its own account.
    #[derive(Default)]
    HarnessNotes {} and {
        /// What is before and after the name of a file that someone else changed.
        modified: Vec<Around>,
        /// Words that are quickly found, of which each such note has one.
        modified_words: Texts,
        /// Tags of messages that say how a command or another agent fares.
        notices: Texts,
        /// Events after which hooks run: a text that begins with one is what a hook says.
        hooked: Texts,
        /// Phrases, in lower case, that say that files were put back, or that a session went on after a while.
        restored: Texts,
        /// What is before and after a command line that a person ran beside the agent.
        own_commands: Vec<Around>,
        /// What is before and after the directory that it works in, where it says it; the first in lower case.
        directory: Vec<Around>,
        /// What it reminds of by itself. All other reminders are taken for somebody's instructions.
        reminders: Vec<Reminder>,
        /// How a text of the user's role begins that no person typed.
        untyped: Texts,
        /// How it says, in lower case, that a person stopped it.
        interrupted: Texts,
    }

    /// Where in a message of the user's role a person types: in the one block that is not of these.
    Typed {} and {
        /// How blocks begin that the agent puts beside it.
        beside: Texts,
    }

    /// How an agent asks the model to summarise the conversation.
    #[derive(Default)]
    Compaction {} and {
        /// Phrases of the message that asks for it.
        asks: Texts,
        /// Phrases of instructions, if they are other ones then than in the rest of the conversation.
        instructs: Texts,
        /// Headers of such a request, and what is in their values.
        headers: Vec<HeaderMark>,
        /// How many tokens of a model's window are free when it asks for it by itself.
        leaves: Option<u64>,
    }

    /// What an agent asks a model about a conversation, beside it.
    #[derive(Default)]
    AsideQuestions {} and {
        /// Phrases of the instructions of such a request.
        instructs: Texts,
    }

    /// A header, and what is in its value.
    HeaderMark {
        /// Its name.
        name: Text,
        /// A part of its value.
        has: Text,
    } and {}

    /// How an agent names its session in headers of requests.
    #[derive(Default)]
    SessionHeaders {} and {
        /// Those with the session.
        session: Texts,
        /// Those that distinguish a part of it.
        part: Texts,
        /// Those that only requests of sub-agents have.
        sub_agent: Texts,
    }
}
