//! Sends recorded sessions through the gateway: `cargo run --release -p contexture-bench -- gateway DIR`.
//!
//! Every recording is sent request by request over real connections to a gateway, and from there to a provider that
//! simulates its prefix cache exactly. Each request is checked against the provider's rules, and the bill is compared
//! with that of pass-through after every request; with `--texts`, also with what `contexture replay` says. With
//! `--windows`, what is sent is compared with the windows of a folder that gets the recording directly, as
//! `contexture replay` does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Response;
use clap::{Args, ValueEnum};
use contexture::transcript::Transcript;
use contexture::wire::Format;
use contexture_bench::twin::{Twin, WindowLikeness, own_count, text_tokens};
use contexture_cli::failure::Failure;
use contexture_cli::source;
use contexture_gateway::models::{Caching, Models};
use contexture_gateway::simulate::played::Played;
use contexture_gateway::testing::cache::{Cache, Took};
use contexture_gateway::testing::recorded::RecordedSession;
use contexture_gateway::testing::rules;
use contexture_gateway::{Gateway, Options, Receipt, Upstreams};
use serde_json::json;

/// How far unforced folds may exceed the bill of pass-through, as a share of it.
const MOST_EXCESS: f64 = 0.10;

/// How far what `contexture replay` says may be from the bill, as a share of it, to agree with it.
const NEAR: f64 = 0.02;

/// The time that the gateway has for a request: long, so that decisions do not depend on the load of the machine.
const MUCH_TIME: Duration = Duration::from_secs(60);

/// Send recorded work through the gateway, and check what is sent.
#[derive(Args)]
pub struct PlayCommand {
    /// Files or directories with recordings
    #[arg(required = true)]
    paths: Vec<std::path::PathBuf>,
    /// The most tokens of a request
    #[arg(long, default_value_t = 64_000)]
    budget: u64,
    /// How requests are written
    #[arg(long, value_enum, default_value_t = PlayedFormat::Messages)]
    format: PlayedFormat,
    /// Take every n-th recording only
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Print every request
    #[arg(long)]
    each: bool,
    /// Compare what is sent with the windows of a folder that is given the recording directly
    #[arg(long)]
    windows: bool,
    /// Count tokens as `contexture replay` does, and compare with what it says
    #[arg(long)]
    texts: bool,
    /// Leave out recordings with fewer bytes in their last request
    #[arg(long, default_value_t = 100_000)]
    least: usize,
}

/// The formats by the names of the command line.
#[derive(Clone, Copy, ValueEnum)]
enum PlayedFormat {
    Messages,
    Chat,
    Responses,
    Gemini,
}

impl From<PlayedFormat> for Format {
    fn from(format: PlayedFormat) -> Self {
        match format {
            PlayedFormat::Messages => Self::Messages,
            PlayedFormat::Chat => Self::Chat,
            PlayedFormat::Responses => Self::Responses,
            PlayedFormat::Gemini => Self::Gemini,
        }
    }
}

/// The state of the provider, and what it received.
struct ScriptedProvider {
    format: Format,
    cache: Cache,
    last: String,
    took: Took,
    /// Whether it counts tokens as the gateway does.
    counts_alike: bool,
}

/// The result of one recording.
#[derive(Default)]
struct RecordingResult {
    requests: usize,
    billed: f64,
    passed_through: f64,
    /// What `contexture replay` says for both.
    replayed: [f64; 2],
    /// The largest excess of the bill over that of pass-through after any request, as a share of it.
    worst: f64,
    refused: Vec<String>,
    /// Requests that have exactly the texts of the window, that contain them, and that lack one.
    windows: [usize; 3],
    receipt: Receipt,
}

impl RecordingResult {
    /// The number of unforced folds, and of those forced by the budget.
    fn folds(&self) -> (usize, usize) {
        let forced = self.receipt.folds.iter().filter(|fold| fold.is_forced).count();
        (self.receipt.folds.len() - forced, forced)
    }

    /// Guarantees about the bill that do not hold.
    fn broken(&self) -> Vec<String> {
        let (unforced, forced) = self.folds();
        let mut broken = Vec::new();
        if unforced > 0 && self.billed > self.passed_through {
            let share = self.billed / self.passed_through;
            broken
                .push(format!("billed {share:.3} of pass-through after {unforced} unforced and {forced} forced folds"));
        }
        if forced == 0 && self.worst > MOST_EXCESS {
            broken.push(format!("at worst the bill was {:.3} above pass-through's with nothing forced", self.worst));
        }
        broken
    }
}

/// The model of Google that is asked.
const GEMINI: &str = "gemini-3.1-pro-preview";

pub fn run(arguments: &PlayCommand) -> Result<(), Failure> {
    let format = Format::from(arguments.format);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut all: Vec<RecordingResult> = Vec::new();
    let mut own: Vec<u64> = Vec::new();
    for source in source::find(&arguments.paths)?.into_iter().step_by(arguments.every.max(1)) {
        let Ok((transcript, _)) = source.transcript() else { continue };
        let recorded = RecordedSession::new(format, &transcript.records);
        if recorded.is_empty() || recorded.request(recorded.len() - 1).len() < arguments.least {
            continue;
        }
        let (mut outcome, times) = runtime.block_on(play(format, &recorded, arguments));
        if arguments.texts {
            outcome.replayed = replayed(format, &transcript, arguments.budget);
            let (billed, [replayed, _]) = (outcome.billed, outcome.replayed);
            println!("{source}: billed {billed:.0}, replay says {replayed:.0}, {:.3} of it", replayed / billed);
        }
        own.extend(times);
        outcome.refused.iter().chain(&outcome.broken()).for_each(|broken| println!("{source}: {broken}"));
        all.push(outcome);
    }
    if all.is_empty() {
        let why = format!("no recording has a last request of {} bytes or more", arguments.least);
        return Err(Failure::usage(why).hint("`--least` takes shorter ones too"));
    }
    print(&all, &mut own);
    Ok(())
}

async fn play(format: Format, recorded: &RecordedSession, arguments: &PlayCommand) -> (RecordingResult, Vec<u64>) {
    let provider = ScriptedProvider {
        format,
        cache: cache(arguments),
        last: String::new(),
        took: Took::default(),
        counts_alike: arguments.windows,
    };
    let provider = Arc::new(Mutex::new(provider));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("a port that is bound has an address"));
    let app = axum::Router::new().fallback(serve).with_state(provider.clone());
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    let (upstreams, budget) = (Upstreams::one(&url), Some(arguments.budget));
    let options = Options { upstreams, budget, own_work: MUCH_TIME, ..Options::default() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.expect("a gateway on a free port");
    let path = match format {
        Format::Messages => "/v1/messages".to_owned(),
        Format::Chat => "/v1/chat/completions".to_owned(),
        Format::Responses => "/v1/responses".to_owned(),
        Format::Gemini => format!("/v1beta/models/{GEMINI}:generateContent"),
    };
    let client = reqwest::Client::new();
    let mut through = cache(arguments);
    let mut outcome = RecordingResult::default();
    let mut twin = arguments.windows.then(|| twin(format, recorded, arguments.budget));
    for number in 0..recorded.len() {
        let body = recorded.request(number);
        let (came, is_valid) = (body.len(), rules::check(format, &body).is_ok());
        outcome.passed_through += through.serve(format, &body, 0).bill(format);
        let answer =
            client.post(format!("{}{path}", gateway.url())).body(body).send().await.expect("the gateway answers");
        answer.bytes().await.expect("the answer is whole");
        let provider = provider.lock().expect("nobody panicked");
        outcome.billed += provider.took.bill(format);
        outcome.requests += 1;
        if arguments.each {
            let (sent, took) = (provider.last.len(), provider.took);
            println!("{number} {came} {sent} {took:?} {:.0} {:.0}", outcome.billed, outcome.passed_through);
        }
        outcome.worst = outcome.worst.max(outcome.billed / outcome.passed_through - 1.0);
        if let Err(error) =
            rules::check(format, &provider.last).or_else(|error| if is_valid { Err(error) } else { Ok(()) })
        {
            outcome.refused.push(format!("request {number}: {error}"));
        }
        if let Some(twin) = &mut twin {
            twin.request(recorded.items(number));
            let likeness = twin.likeness(format, &provider.last).unwrap_or(WindowLikeness::Other);
            outcome.windows[likeness as usize] += 1;
            if arguments.each && likeness != WindowLikeness::Same {
                println!("{number} {likeness:?}");
            }
        }
    }
    let records = gateway.stop().await;
    serving.abort();
    outcome.receipt = Receipt::of(&records);
    (outcome, records.iter().map(|record| record.own_us).collect())
}

/// The provider's cache, which forgets nothing.
fn cache(arguments: &PlayCommand) -> Cache {
    let cache = Cache::with_life(u64::MAX);
    if arguments.texts { cache.counting(text_tokens) } else { cache }
}

/// What `contexture replay` says is billed, and what pass-through would be, for a model of the format's provider.
fn replayed(format: Format, transcript: &Transcript, budget: u64) -> [f64; 2] {
    let played = Played::new(Some(budget)).with_model(Some(model_of(format).to_owned())).with_prompt(0);
    let mut records = Vec::new();
    played.play("replayed", &transcript.records, &mut |request| records.push(request.record));
    let receipt = Receipt::of(&records);
    [receipt.billed, receipt.passed_through]
}

/// The model that is asked in a format.
fn model_of(format: Format) -> &'static str {
    match format {
        Format::Messages => "claude-sonnet-4-5",
        Format::Gemini => GEMINI,
        Format::Chat | Format::Responses => "gpt-5",
    }
}

/// A folder with the same budget as the gateway's.
fn twin(format: Format, recorded: &RecordedSession, budget: u64) -> Twin {
    let first = recorded.request(0);
    let (_, head) = own_count(format, &first).unwrap_or_default();
    Twin::new(budget.saturating_sub(head), Models::builtin().get(model_of(format)).prices(Caching::Minutes))
}

async fn serve(State(provider): State<Arc<Mutex<ScriptedProvider>>>, request: Request) -> Response<Body> {
    let body = to_bytes(request.into_body(), usize::MAX).await.unwrap_or_default();
    let mut provider = provider.lock().expect("nobody panicked");
    provider.last = String::from_utf8_lossy(&body).into_owned();
    let ScriptedProvider { format, cache, last, counts_alike, .. } = &mut *provider;
    let took = cache.serve(*format, last, 0);
    let told = if *counts_alike { counted_alike(*format, took, last) } else { took };
    let name = if *format == Format::Gemini { "usageMetadata" } else { "usage" };
    let answer = json!({name: told.usage(*format, 10)});
    provider.took = took;
    Response::new(Body::from(answer.to_string()))
}

/// The usage of a request, in the gateway's own tokens.
fn counted_alike(format: Format, took: Took, body: &str) -> Took {
    let Ok((own, _)) = own_count(format, body) else { return took };
    let share = own as f64 / took.total().max(1) as f64;
    let (read, written) = ((took.read as f64 * share) as u64, (took.written as f64 * share) as u64);
    Took { read, written, plain: own - read - written }
}

fn print(all: &[RecordingResult], own: &mut [u64]) {
    let sum = |value: fn(&RecordingResult) -> f64| all.iter().map(value).sum::<f64>();
    let folded: Vec<&RecordingResult> = all.iter().filter(|outcome| !outcome.receipt.folds.is_empty()).collect();
    let is_forced = |outcome: &&RecordingResult| outcome.receipt.folds.iter().any(|fold| fold.is_forced);
    let dearer = folded.iter().filter(|outcome| outcome.billed > outcome.passed_through);
    let (forced, unforced): (Vec<&RecordingResult>, Vec<&RecordingResult>) = dearer.copied().partition(is_forced);
    println!("{} recordings, {} requests", all.len(), all.iter().map(|outcome| outcome.requests).sum::<usize>());
    println!(
        "billed / pass-through          {:.3}",
        sum(|outcome| outcome.billed) / sum(|outcome| outcome.passed_through)
    );
    println!(
        "receipts' own pass-through     {:.3} of it",
        sum(|outcome| outcome.receipt.passed_through) / sum(|outcome| outcome.passed_through)
    );
    let [billed, passed_through] = [0, 1].map(|at| all.iter().map(|outcome| outcome.replayed[at]).sum::<f64>());
    if passed_through > 0.0 {
        println!(
            "replay says                    {:.3}: {:.3} and {:.3} of them",
            billed / passed_through,
            billed / sum(|outcome| outcome.billed),
            passed_through / sum(|outcome| outcome.passed_through)
        );
        let is_near = |outcome: &&RecordingResult| (outcome.replayed[0] / outcome.billed - 1.0).abs() <= NEAR;
        println!("within {:.0} % of the bill         {} recordings", NEAR * 100.0, all.iter().filter(is_near).count());
    }
    println!(
        "folded                         {} recordings, {} folds",
        folded.len(),
        folded.iter().map(|outcome| outcome.receipt.folds.len()).sum::<usize>()
    );
    let some = |outcome: &&&RecordingResult| outcome.folds().0 > 0;
    println!("folded unforced                {} recordings", folded.iter().filter(some).count());
    println!("dearer                         {} unforced, {} forced", unforced.len(), forced.len());
    let worst = |is_wanted: bool| {
        let some = all.iter().filter(|outcome| is_forced(outcome) == is_wanted);
        some.map(|outcome| outcome.worst).fold(0.0, f64::max)
    };
    println!("worst excess at any request    {:.3} where nothing was forced, {:.3} else", worst(false), worst(true));
    let windows = [0, 1, 2].map(|at| all.iter().map(|outcome| outcome.windows[at]).sum::<usize>());
    if windows != [0; 3] {
        println!("windows                        {} the same, {} held, {} other", windows[0], windows[1], windows[2]);
    }
    println!("requests against the rules     {}", all.iter().map(|outcome| outcome.refused.len()).sum::<usize>());
    let mut passed: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for (why, count) in all.iter().flat_map(|outcome| &outcome.receipt.passed) {
        *passed.entry(why).or_default() += count;
    }
    println!("nothing new decided            {passed:?}");
    own.sort_unstable();
    let at = |share: f64| own.get((own.len() as f64 * share) as usize).copied().unwrap_or(0) as f64 / 1e3;
    println!("own work                       median {:.2} ms, p90 {:.2} ms, p99 {:.2} ms", at(0.5), at(0.9), at(0.99));
}
