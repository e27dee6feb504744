//! The policies of other tools, against the same policies written without any memory of the last request.

use contexture::item::{FunctionCall, Item, Role};
use contexture::transcript::{Record, Transcript};
use contexture_measure::policies::{KnownPolicy, STUB_BYTES, ShownMessage, WindowEntry, WindowPolicy};
use contexture_measure::recorded::RecordedSession;
use proptest::prelude::*;
use serde_json::json;

/// What is sent before a step: the step, and each message with whether it is whole.
type Windows = Vec<(usize, Vec<(usize, ShownMessage)>)>;

/// What one record of a conversation is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Something that the user said.
    User,
    /// A response with one call.
    Response,
    /// What the call of the record before returned.
    Output,
}

/// A transcript of one record for each pair of a kind and a size.
pub fn transcript_of(shape: &[(Kind, usize)]) -> Transcript {
    let record = |(index, &(kind, size)): (usize, &(Kind, usize))| {
        let text = "x".repeat(size);
        match kind {
            Kind::User => Item::message(Role::User, text).into(),
            Kind::Response => {
                let arguments = json!({ "file_path": "a" }).to_string();
                Record::response(text, [FunctionCall::new(&index.to_string(), "Read", arguments)])
            }
            Kind::Output => Item::output(&(index - 1).to_string(), text).into(),
        }
    };
    Transcript { records: shape.iter().enumerate().map(record).collect() }
}

/// Shapes of conversations: people speak, the model calls tools and is answered.
pub fn shape() -> impl Strategy<Value = Vec<(Kind, usize)>> {
    let turn = prop_oneof![
        (0_usize..200).prop_map(|size| vec![(Kind::User, size)]),
        (0_usize..200).prop_map(|size| vec![(Kind::Response, size)]),
        (0_usize..50, 0_usize..2_000).prop_map(|(said, answer)| vec![(Kind::Response, said), (Kind::Output, answer)]),
    ];
    prop::collection::vec(turn, 0..40).prop_map(|turns| turns.concat())
}

/// The windows of a policy, from what it says that changed.
fn windows(policy: KnownPolicy, transcript: &Transcript, budget: f64) -> Windows {
    let recorded = RecordedSession::new(transcript);
    let mut window: Vec<(usize, ShownMessage)> = Vec::new();
    let requests = policy.requests(transcript, &recorded, budget);
    requests
        .map(|request| {
            let request = request.expect("these policies cannot fail");
            assert!(request.keep <= window.len(), "more is kept than there was");
            window.truncate(request.keep);
            window.extend(request.added.into_iter().map(|entry| match entry {
                WindowEntry::RecordedSession { index, shown } => (index, shown),
                WindowEntry::Made(_) => panic!("these policies write nothing"),
            }));
            (request.before, window.clone())
        })
        .collect()
}

/// Sizes of messages with the answers among them, as each policy below needs them.
struct Sizes {
    bytes: Vec<u64>,
    answers: Vec<bool>,
    first: usize,
    steps: Vec<usize>,
}

impl Sizes {
    fn new(transcript: &Transcript) -> Self {
        let records = &transcript.records;
        let size = |record: &Record| {
            let calls = record.calls().map(|call| 1 + call.arguments.len() as u64 + 1);
            record.text().len() as u64 + calls.sum::<u64>()
        };
        Self {
            bytes: records.iter().map(size).collect(),
            answers: records.iter().map(|record| record.output().is_some()).collect(),
            first: records.iter().position(|record| record.role() == Some(Role::User)).unwrap_or(0),
            steps: (0..records.len()).filter(|&index| records[index].is_response()).collect(),
        }
    }

    fn sum(&self, start: usize, end: usize) -> u64 {
        self.bytes[start..end].iter().sum()
    }

    fn answers_before(&self, step: usize) -> Vec<usize> {
        (0..step).filter(|&index| self.answers[index]).collect()
    }

    /// Windows that show all, with stubs for the answers that are gone.
    fn stubbed(&self, mut gone_before: impl FnMut(usize, &mut Vec<bool>)) -> Windows {
        let mut gone = vec![false; self.bytes.len()];
        let window = |&step: &usize| {
            gone_before(step, &mut gone);
            let shown = |index: usize| if gone[index] { ShownMessage::Stub } else { ShownMessage::Full };
            (step, (0..step).map(|index| (index, shown(index))).collect())
        };
        self.steps.iter().map(window).collect()
    }

    fn sliding(&self, budget: f64, slack: f64) -> Windows {
        let mut start = 0;
        let window = |&step: &usize| {
            let first = if self.first < start { self.bytes[self.first] } else { 0 };
            if (self.sum(start, step) + first) as f64 / 4.0 > budget {
                while start + 1 < step && (self.sum(start, step) + self.bytes[self.first]) as f64 / 4.0 > budget * slack
                {
                    start += 1;
                }
                while start + 1 < step && self.answers[start] {
                    start += 1;
                }
            }
            let head = (self.first < start).then_some((self.first, ShownMessage::Full));
            (step, head.into_iter().chain((start..step).map(|index| (index, ShownMessage::Full))).collect())
        };
        self.steps.iter().map(window).collect()
    }

    fn mask(&self, keep: usize) -> Windows {
        self.stubbed(|step, gone| {
            let answers = self.answers_before(step);
            answers.iter().rev().skip(keep).for_each(|&index| gone[index] = true);
        })
    }

    fn clear(&self, budget: f64, keep: usize) -> Windows {
        self.stubbed(|step, gone| {
            let bytes = (0..step).map(|index| if gone[index] { STUB_BYTES } else { self.bytes[index] });
            if bytes.sum::<u64>() as f64 / 4.0 > budget {
                let answers = self.answers_before(step);
                answers.iter().rev().skip(keep).for_each(|&index| gone[index] = true);
            }
        })
    }

    fn prune(&self, protect: u64, least: u64) -> Windows {
        self.stubbed(|step, gone| {
            let mut tokens = 0.0;
            let mut old = Vec::new();
            for index in self.answers_before(step).into_iter().rev().filter(|&index| !gone[index]) {
                tokens += self.bytes[index] as f64 / 4.0;
                if tokens > protect as f64 {
                    old.push(index);
                }
            }
            let saved: u64 = old.iter().map(|&index| self.bytes[index]).sum();
            if saved as f64 / 4.0 > least as f64 {
                old.into_iter().for_each(|index| gone[index] = true);
            }
        })
    }
}

proptest! {
    #[test]
    fn windows_are_those_of_the_plain_restatement(shape in shape(), budget in 0_u32..4_000) {
        let transcript = transcript_of(&shape);
        let (sizes, budget) = (Sizes::new(&transcript), f64::from(budget));
        let known = |policy| windows(policy, &transcript, budget);
        prop_assert_eq!(known(KnownPolicy::PassThrough), sizes.mask(usize::MAX));
        prop_assert_eq!(known(KnownPolicy::Sliding { slack: 1.0 }), sizes.sliding(budget, 1.0));
        prop_assert_eq!(known(KnownPolicy::Sliding { slack: 0.5 }), sizes.sliding(budget, 0.5));
        prop_assert_eq!(known(KnownPolicy::Mask { keep: 3 }), sizes.mask(3));
        prop_assert_eq!(known(KnownPolicy::Clear { keep: 3 }), sizes.clear(budget, 3));
        prop_assert_eq!(known(KnownPolicy::Prune { protect: 900, least: 400 }), sizes.prune(900, 400));
    }
}
