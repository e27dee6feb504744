//! Clients that replace old outputs in their own past by notes: what is sent stays, nothing gets dearer than without the
//! gateway, and the account knows it.

use contexture::wire::Format;
use contexture_gateway::testing::cache::Cache;
use contexture_gateway::{Options, Receipt};

use super::agent::{Agent, Step};
use super::played::{digests, long, records, small};
use super::provider::{Provider, post};

/// How far the account may be off: what the provider counts for all that is left of a changed past is an estimate.
const OFF: f64 = 0.02;

/// How a client takes outputs away.
#[derive(Clone, Copy)]
struct Masking {
    /// Bytes of the newest outputs, which stay.
    protected: usize,
    /// Bytes of older ones from which on they are replaced, all at once.
    least: usize,
    note: fn(&str) -> String,
}

/// Gemini CLI: the newest 50 000 tokens stay, and 30 000 are replaced at once; here as shares of a smaller budget.
const GEMINI_CLI: Masking = Masking {
    protected: 54_000,
    least: 32_000,
    note: |text| {
        let (first, last) = (&text[..250.min(text.len())], text.len());
        format!(
            "<tool_output_masked>\n{first}\n... [TRUNCATED] ...\n\nOutput too large. Full output available at: /tmp/o_{last}.txt\n</tool_output_masked>"
        )
    },
};

/// OpenCode and Claude Code: nothing of the text is left.
const CLEARED: Masking =
    Masking { protected: 40_000, least: 20_000, note: |_| "[Old tool result content cleared]".to_owned() };

impl Masking {
    /// Takes old outputs of the first steps away, if there are enough of them. Returns whether it did.
    fn apply(&self, steps: &mut [Step]) -> bool {
        let mut newer = 0;
        let mut old: Vec<&mut String> = Vec::new();
        for step in steps.iter_mut().rev().skip(1) {
            let Step::Outputs(outputs) = step else { continue };
            let is_there = |text: &str| !text.starts_with("<tool_output_masked>") && !text.starts_with("[Old tool");
            for (_, text, _) in outputs.iter_mut().rev().filter(|(_, text, _)| is_there(text)) {
                newer += text.len();
                if newer > self.protected {
                    old.push(text);
                }
            }
        }
        let is_enough = old.iter().map(|text| text.len()).sum::<usize>() >= self.least;
        for text in old.into_iter().filter(|_| is_enough) {
            let note = (self.note)(text);
            // Nobody puts a longer text in the place of a short one.
            if note.len() < text.len() {
                *text = note;
            }
        }
        is_enough
    }
}

/// What a conversation was billed, with the gateway and without it, and what the gateway says.
struct Played {
    billed: f64,
    passed: f64,
    masks: usize,
    receipt: Receipt,
    conversations: usize,
}

async fn play(name: &str, agent: &mut Agent, masking: Masking, budget: u64) -> Played {
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { budget: Some(budget), ..small() }).await;
    let mut through = Cache::with_life(300_000);
    let (mut billed, mut passed, mut masks) = (0.0, 0.0, 0);
    for at in agent.requests() {
        masks += usize::from(masking.apply(&mut agent.steps[..at]));
        let body = agent.request(at, false);
        passed += through.serve(agent.format, &body, 0).bill(agent.format);
        let (status, answer) = post(&gateway, agent.format, body).await;
        assert_eq!(status, 200, "{name}: {answer}");
        billed += provider.last().took.bill(agent.format);
    }
    let records = records(&gateway, agent.requests().len()).await;
    let mut conversations: Vec<_> = records.iter().filter_map(|record| record.conversation.clone()).collect();
    conversations.sort_unstable();
    conversations.dedup();
    Played { billed, passed, masks, receipt: Receipt::of(&records), conversations: conversations.len() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_masks_its_outputs_never_pays_more() {
    let clients = [
        ("Gemini CLI", Format::Gemini, GEMINI_CLI),
        ("Claude Code", Format::Messages, CLEARED),
        ("OpenCode", Format::Chat, CLEARED),
        ("OpenCode", Format::Responses, CLEARED),
    ];
    for (client, format, masking) in clients {
        // The larger one forces nothing.
        let budgets: &[u64] = if crate::IS_LONG { &[16_000, 200_000] } else { &[16_000] };
        for &budget in budgets {
            let name = format!("{client} in {format:?} at {budget}");
            let Played { billed, passed, masks, receipt, conversations } =
                play(&name, &mut long(format, 24), masking, budget).await;
            let folds = receipt.folds.len();
            println!(
                "{name}: billed {billed:.0} of {passed:.0}, said {:.0}; {masks} masks, {folds} folds",
                receipt.passed_through
            );
            assert!(masks >= 3, "{name}: {masks} masks");
            assert_eq!(conversations, 1, "{name}");
            assert!(billed <= passed, "{name}: {billed} is more than {passed}");
            assert!((receipt.billed - billed).abs() < 1.0, "{name}: {billed}, the receipt says {}", receipt.billed);
            let off = (receipt.passed_through - passed).abs() / passed;
            assert!(off < OFF, "{name}: pass-through is {passed}, the receipt says {}", receipt.passed_through);
        }
    }
}

/// What was folded away is not sent, so that it makes no difference what becomes of it.
#[tokio::test(flavor = "multi_thread")]
async fn masks_of_what_was_folded_away_change_nothing_that_is_sent() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let mut agent = long(format, 16);
        let mut before: Option<String> = None;
        let mut unmoved = 0;
        for at in agent.requests() {
            let has_masked = GEMINI_CLI.apply(&mut agent.steps[..at]);
            let (status, answer) = post(&gateway, format, agent.request(at, false)).await;
            assert_eq!(status, 200, "{format:?}: {answer}");
            let sent = provider.last().body;
            let goes_on = before.is_some_and(|before| digests(format, &sent).starts_with(&digests(format, &before)));
            unmoved += usize::from(has_masked && goes_on);
            before = Some(sent);
        }
        assert!(unmoved > 0, "{format:?}: no mask left what was sent as it was");
    }
}

/// The same after a restart: what was decided applies to what the client sends then.
#[tokio::test(flavor = "multi_thread")]
async fn masks_before_and_after_a_restart_keep_one_conversation() {
    let provider = Provider::start().await;
    let directory = tempfile::tempdir().unwrap();
    let options = || Options { store: Some(directory.path().join("gateway.db")), ..small() };
    let mut agent = long(Format::Gemini, 24);
    let requests = agent.requests();
    let mut conversations = std::collections::BTreeSet::new();
    let mut masks = 0;
    for part in requests.chunks(requests.len() / 4) {
        let gateway = provider.gateway(options()).await;
        for at in part {
            masks += usize::from(GEMINI_CLI.apply(&mut agent.steps[..*at]));
            let (status, answer) = post(&gateway, agent.format, agent.request(*at, false)).await;
            assert_eq!(status, 200, "{answer}");
        }
        let records = records(&gateway, part.len()).await;
        conversations.extend(records.into_iter().filter_map(|record| record.conversation));
        gateway.stop().await;
    }
    assert!(masks >= 3, "{masks} masks");
    // A mask in the first request after a restart may begin a branch: nobody knows then what the outputs were.
    assert!(conversations.len() <= 2, "{conversations:?}");
    assert_eq!(provider.refused(), Vec::<String>::new());
}

/// A user who goes back and takes another way: the provider finds what is before, with the gateway and without it.
#[tokio::test(flavor = "multi_thread")]
async fn the_account_of_a_client_that_goes_back_is_right() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let gateway = provider.gateway(small()).await;
        let mut through = Cache::with_life(300_000);
        let (mut billed, mut passed, mut sent) = (0.0, 0.0, 0);
        let mut agent = long(format, 12);
        for way in 0..3 {
            for at in agent.requests().into_iter().skip(if way == 0 { 0 } else { 24 }) {
                let body = agent.request(at, false);
                passed += through.serve(format, &body, 0).bill(format);
                let (status, answer) = post(&gateway, format, body).await;
                assert_eq!(status, 200, "{format:?}: {answer}");
                (billed, sent) = (billed + provider.last().took.bill(format), sent + 1);
            }
            agent.steps.truncate(agent.requests()[22]);
            agent.say(&format!("No, not like that. I want it in way {way}."));
            (0..8).for_each(|round| {
                agent.work(round + 3 * way);
            });
        }
        let receipt = Receipt::of(&records(&gateway, sent).await);
        println!("{format:?}: billed {billed:.0} of {passed:.0}, said {:.0}", receipt.passed_through);
        let off = (receipt.passed_through - passed).abs() / passed;
        assert!(off < OFF, "{format:?}: pass-through is {passed}, the receipt says {}", receipt.passed_through);
    }
}
