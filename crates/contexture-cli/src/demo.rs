//! `contexture demo`: a recorded session, played through a gateway on this machine against a provider of its own.

mod client;
mod provider;
mod windows;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use contexture::clock::Clock;
use contexture::fold::Prices;
use contexture::transcript::Transcript;
use contexture::wire::{Format, encode};
use contexture_gateway::account::record::RequestRecord;
use contexture_gateway::simulate::played::ASSUMED_MODEL;
use contexture_gateway::simulate::recorded::RecordedSession;
use contexture_gateway::{DEFAULT_BUDGET, Gateway, Options, Receipt, Upstreams, Watcher};
use contexture_inspect::inspector_of_gateway;
use contexture_measure::judge::Measures;
use contexture_measure::plot::short_count;
use contexture_measure::recorded::RecordedSession as MeasuredSession;
use contexture_terminal::harmless::on_one_line;
use contexture_terminal::progress::ProgressCounter;
use contexture_terminal::screen::{Screen, TextStyle};
use contexture_terminal::table::{Align, TextTable};
use contexture_text::numbers::counted;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::gateway::start::cannot_start;
use crate::replay::example;
use crate::replay::summary::drawn;
use client::RecordedClock;
use provider::RecordedProvider;
use windows::{DemoRequest, SentWindows, folded_lines, shortened_output, still_known};

/// How long the gateway may work on a request: on a busy machine, too, each is decided as on a quiet one.
const PATIENCE: Duration = Duration::from_secs(20);

/// The instructions of the agent, in place of those that a real one has.
const INSTRUCTIONS: &str = "You are a coding agent.";

/// Characters of an output that are shown.
const SHOWN_CHARS: usize = 150;

/// Time between two requests of which the recording does not say when they were, in milliseconds.
const PAUSE_MS: u64 = 20_000;

/// Show in a minute what happens to a long session, without a key, an agent or a network
///
/// A recording that is part of the program is sent through a gateway on this machine to a provider of this process, which
/// refuses what the real one would refuse and bills by a simulated cache. Nothing is asked and nothing is stored.
#[derive(Args)]
pub struct Demo {
    /// Show it on a page in the browser afterwards, until Ctrl-C
    #[arg(long)]
    inspect: bool,
    /// Play the first requests only
    #[arg(long, hide = true, value_name = "COUNT")]
    requests: Option<usize>,
}

/// What became of the session.
struct PlayedDemo {
    records: Vec<RequestRecord>,
    receipt: Receipt,
    measures: Measures,
    /// The first request that was folded: its number, and how it came and was sent.
    fold: Option<(usize, String, String)>,
}

/// Carries out the command.
///
/// # Errors
/// There is no free port on this machine, or the provider has refused a request.
pub fn run(demo: &Demo, screen: Screen) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(show(demo, screen));
    runtime.shutdown_background();
    done
}

async fn show(demo: &Demo, screen: Screen) -> Result<(), Failure> {
    let (transcript, _) = example::transcript();
    let inspector = match demo.inspect {
        true => Some(inspector_of_gateway(None).await.map_err(cannot_start)?),
        false => None,
    };
    let watchers = inspector.iter().map(|server| server.inspector().clone() as Arc<dyn Watcher>).collect();
    let count = demo.requests.unwrap_or(usize::MAX);
    let played = play(&transcript, count, Options { watchers, ..Options::default() }).await?;
    io::stdout().write_all(played.render(&transcript, screen).as_bytes())?;
    if let Some(server) = inspector {
        println!("\nthe inspector is at {}", server.inspector().url());
        println!("Ctrl-C ends it");
        tokio::signal::ctrl_c().await?;
    }
    Ok(())
}

/// Sends every request of the recording through a gateway.
async fn play(transcript: &Transcript, count: usize, options: Options) -> Result<PlayedDemo, Failure> {
    let session = RecordedSession::new(Format::Messages, &transcript.records).as_recorded();
    let measured = MeasuredSession::new(transcript);
    let mut windows = SentWindows::new(&measured, Prices::ANTHROPIC);
    let clock = Arc::new(RecordedClock::default());
    let provider = RecordedProvider::start(clock.clone()).await?;
    let agent = contexture_agents::agents().iter().find(|agent| agent.name() == example::AGENT);
    let options = Options {
        upstreams: Upstreams::one(&provider.url()),
        clock: clock.clone(),
        own_work: PATIENCE,
        leaves: agent.and_then(|agent| agent.compaction().leaves()).copied().unwrap_or(0),
        ..options
    };
    let gateway = Gateway::start("127.0.0.1:0", options).await.map_err(cannot_start)?;
    let url = gateway.url();
    let path = url.split_once("//").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..])).unwrap_or_default();
    let path = format!("{path}/v1/messages");
    let messages = session.raw_messages();
    let count = count.min(session.len());
    let progress = ProgressCounter::new("request", count);
    let mut fold = None;
    for number in 0..count {
        clock.set(session.time_ms(number).unwrap_or(clock.now().as_millis() as u64 + PAUSE_MS));
        provider.answer_with(answer_to(&session, number));
        let came = request(&messages[..session.messages_of(number)]);
        let (status, response) = client::post(gateway.address(), &path, &came).await?;
        if status != 200 {
            return Err(Failure::work(format!("request {} of the recording was refused: {response}", number + 1)));
        }
        // What it cost is known before the next request is decided, as with an agent that takes its time.
        while gateway.records().len() <= number {
            tokio::task::yield_now().await;
        }
        let sent = provider.accepted();
        windows.take(&sent);
        if fold.is_none() && is_shorter(&came, &sent) {
            fold = Some((number + 1, came, sent));
        }
        progress.advance();
    }
    let records = gateway.stop().await;
    Ok(PlayedDemo { receipt: Receipt::of(&records), records, measures: windows.measures(DEFAULT_BUDGET), fold })
}

/// A request as an agent would write it.
#[derive(Serialize)]
struct RequestBody<'a> {
    model: &'a str,
    max_tokens: u32,
    system: Value,
    messages: Vec<&'a RawValue>,
}

/// A request with these messages, and with a cache mark on its last block.
fn request(messages: &[Box<RawValue>]) -> String {
    let (last, before) = messages.split_last().expect("a request has a message");
    let mut message: Value = serde_json::from_str(last.get()).expect("it was written as JSON");
    let mark = json!({"type": "ephemeral"});
    if let Some(block) = message["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
        block["cache_control"] = mark.clone();
    }
    let last = to_raw_value(&message).expect("a value can be written");
    let body = RequestBody {
        model: ASSUMED_MODEL,
        max_tokens: 8_000,
        system: json!([{"type": "text", "text": INSTRUCTIONS, "cache_control": mark}]),
        messages: before.iter().map(|message| &**message).chain([&*last]).collect(),
    };
    serde_json::to_string(&body).expect("values can be written")
}

/// The content of the answer to a request, as recorded.
fn answer_to(session: &RecordedSession, number: usize) -> Value {
    let messages = encode::verbatim(Format::Messages, &session.response_to(number), []);
    messages.into_iter().next().map(|mut message| message["content"].take()).unwrap_or_default()
}

/// Whether a fold has made a request much shorter.
fn is_shorter(came: &str, sent: &str) -> bool {
    sent.len() * 10 < came.len() * 9
}

impl PlayedDemo {
    fn render(&self, transcript: &Transcript, screen: Screen) -> String {
        let count = counted(self.records.len(), "request");
        let budget = short_count(DEFAULT_BUDGET);
        let whole = self.records.iter().filter_map(|record| record.bill).map(|bill| bill.came).max().unwrap_or(0);
        let mut text = screen.wrap(
            &format!(
                "A session of work on this program's own page: {count}, {} tokens at its end. It went through a \
                 gateway with the default budget of {budget} to a provider in this process, which keeps to the rules \
                 that Anthropic publishes and bills by a simulated cache. Its figures are those of one sample.",
                short_count(whole)
            ),
            0,
        );
        text.push_str("\n\n");
        text.push_str(&drawn(&self.records, screen));
        text.push_str(&self.render_fold(screen));
        text.push_str(&self.render_known(transcript, screen));
        text.push_str(&screen.wrap(&format!("\n{}", self.receipt.told(false)), 2));
        text.push('\n');
        let next = "`contexture demo --inspect` shows every request on a page, `contexture replay ~/.claude/projects` plays \
                    your own sessions, `contexture run claude` runs your agent";
        text + &screen.next(next)
    }

    /// The first fold: what there was of each kind before and after it, and one output.
    fn render_fold(&self, screen: Screen) -> String {
        let Some((number, came, sent)) = &self.fold else { return "\nnothing was folded\n".to_owned() };
        let folds = counted(self.receipt.folds.len() + self.receipt.more_folds, "fold");
        let title = format!("The first of {folds}, at request {number}");
        let request = DemoRequest { came, sent };
        let columns = [("", Align::Left), ("came", Align::Right), ("tokens", Align::Right)];
        let mut table = TextTable::new(columns.into_iter().chain([("sent", Align::Right), ("tokens", Align::Right)]));
        for line in folded_lines(request) {
            let cells = [line.came, line.sent].map(|(count, tokens)| [count.to_string(), short_count(tokens as u64)]);
            table.row([line.name.to_owned()].into_iter().chain(cells.into_iter().flatten()));
        }
        let mut text = format!("\n{}\n{}", screen.paint(TextStyle::Bold, &title), table.fit(screen));
        if let Some([before, after]) = shortened_output(request) {
            let before = format!("an output as it came ({}): {}", counted(before.len(), "byte"), start_of(&before));
            text.push_str(&format!("{}\n", screen.wrap(&before, 2)));
            text.push_str(&format!("{}\n", screen.wrap(&format!("and as it was sent: {}", start_of(&after)), 2)));
        }
        text
    }

    fn render_known(&self, transcript: &Transcript, screen: Screen) -> String {
        let mut text = format!("\n{}\n", screen.paint(TextStyle::Bold, "What the model still knew"));
        for line in still_known(&self.measures, transcript) {
            text.push_str(&format!("{}\n", screen.wrap(&format!("  {line}"), 4)));
        }
        text
    }
}

/// The start of a text, on one line.
fn start_of(text: &str) -> String {
    let start: String = text.chars().take(SHOWN_CHARS).collect();
    let more = if start.len() < text.len() { " …" } else { "" };
    format!("{}{more}", on_one_line(&start))
}
