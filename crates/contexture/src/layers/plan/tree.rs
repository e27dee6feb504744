//! The steps of a plan: a tree in which some come after others.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_DEPTH, MAX_STEPS, MAX_TEXT_BYTES};
use contexture_text::one_line::one_line;

/// Longest id of a step.
const MAX_ID_BYTES: usize = 32;

/// How far a step has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not begun.
    #[default]
    Pending,
    /// Under way; at most one step is.
    InProgress,
    /// Done.
    Done,
    /// Tried, and it did not work.
    Failed,
    /// Not needed any more.
    Skipped,
}

impl Status {
    /// Whether the steps after it may begin.
    fn is_over(self) -> bool {
        matches!(self, Status::Done | Status::Skipped)
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::InProgress => "in progress",
            Status::Done => "done",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
        }
    }
}

/// One step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Step {
    /// Its id: `2.1` is the first step under step 2.
    pub id: String,
    /// What is to be done.
    pub text: String,
    /// How far it has come.
    pub status: Status,
    /// Its parent step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
    /// The steps that must be done before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Its result.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A step that is to be added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NewStep {
    /// What is to be done, in one sentence.
    pub text: String,
    /// A short id of your own; numbers are given where it is missing.
    #[serde(default)]
    pub id: Option<String>,
    /// The id of the step that this one is a part of; it must come before this one.
    #[serde(default)]
    pub under: Option<String>,
    /// The ids of steps that must be done before this one begins.
    #[serde(default)]
    pub after: Vec<String>,
}

/// Another text for a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reword {
    /// The id of the step.
    pub step: String,
    /// What it says from now on.
    pub text: String,
}

/// All steps of a plan, each after its parent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Steps(Vec<Step>);

/// Refuses a text that is blank or too long.
pub(super) fn check_text(field: &str, text: &str) -> Result<(), String> {
    match text.len() {
        _ if text.trim().is_empty() => Err(format!("`{field}` is empty")),
        bytes if bytes > MAX_TEXT_BYTES => Err(format!("`{field}` has {bytes} bytes, more than {MAX_TEXT_BYTES}")),
        _ => Ok(()),
    }
}

impl Steps {
    pub(super) fn all(&self) -> &[Step] {
        &self.0
    }

    fn get(&self, id: &str) -> Option<&Step> {
        self.0.iter().find(|step| step.id == id)
    }

    fn found(&self, id: &str) -> Result<&Step, String> {
        self.get(id).ok_or_else(|| {
            let ids: Vec<&str> = self.0.iter().take(20).map(|step| step.id.as_str()).collect();
            format!("there is no step `{}`; the steps are {}", one_line(id), ids.join(", "))
        })
    }

    /// The ancestors of a step, nearest first.
    fn above<'a>(&'a self, step: &'a Step) -> impl Iterator<Item = &'a Step> {
        let parent = |step: &&'a Step| step.under.as_deref().and_then(|id| self.get(id));
        // A stored plan may be malformed: the limit ends a cycle.
        std::iter::successors(parent(&step), parent).take(MAX_DEPTH + 1)
    }

    /// The depth of a step.
    pub(super) fn depth(&self, step: &Step) -> usize {
        self.above(step).count()
    }

    /// Adds steps after the other children of their parents.
    pub(super) fn add(&mut self, steps: Vec<NewStep>) -> Result<(), String> {
        for step in steps {
            self.add_one(step)?;
        }
        self.check_order()
    }

    fn add_one(&mut self, new: NewStep) -> Result<(), String> {
        check_text("text", &new.text)?;
        if self.0.len() >= MAX_STEPS {
            return Err(format!("a plan has at most {MAX_STEPS} steps: say some of them in one"));
        }
        let NewStep { text, id, under, after } = new;
        let under = under.filter(|under| !under.is_empty());
        if let Some(under) = &under {
            self.found(under)?;
        }
        let id = match id.filter(|id| !id.is_empty()) {
            Some(id) if id.len() > MAX_ID_BYTES || id != one_line(&id) || id.contains(char::is_whitespace) => {
                return Err(format!("the id `{}` must be one word of at most {MAX_ID_BYTES} bytes", one_line(&id)));
            }
            Some(id) if self.get(&id).is_some() => return Err(format!("there are two steps `{id}`")),
            Some(id) => id,
            None => self.fresh_id(under.as_deref()),
        };
        let step = Step { id, text, status: Status::Pending, under, after, note: String::new() };
        if self.depth(&step) >= MAX_DEPTH {
            return Err(format!("step `{}` is deeper than {MAX_DEPTH} levels", step.id));
        }
        let at = self.end_under(step.under.as_deref());
        self.0.insert(at, step);
        Ok(())
    }

    fn fresh_id(&self, under: Option<&str>) -> String {
        let siblings = self.0.iter().filter(|step| step.under.as_deref() == under).count();
        let name = |number: usize| under.map_or_else(|| number.to_string(), |under| format!("{under}.{number}"));
        let fresh = (siblings + 1..).map(name).find(|id| self.get(id).is_none());
        fresh.expect("there are more numbers than steps")
    }

    /// The index after all descendants of a step.
    fn end_under(&self, under: Option<&str>) -> usize {
        let Some(under) = under else { return self.0.len() };
        let last = self.0.iter().rposition(|step| step.id == under || self.is_beneath(step, under));
        last.map_or(self.0.len(), |last| last + 1)
    }

    fn is_beneath(&self, step: &Step, above: &str) -> bool {
        self.above(step).any(|step| step.id == above)
    }

    /// Checks that every step depends on existing steps only, and that there is no cycle.
    fn check_order(&self) -> Result<(), String> {
        for step in &self.0 {
            for after in &step.after {
                self.found(after)?;
                if self.is_beneath(step, after) || *after == step.id {
                    return Err(format!("step `{}` cannot come after `{after}`, which it is a part of", step.id));
                }
            }
        }
        // Settles steps whose dependencies are settled, until all are, or the rest is a cycle.
        let mut settled: BTreeSet<&str> = BTreeSet::new();
        loop {
            let before = settled.len();
            for step in &self.0 {
                if step.after.iter().all(|after| settled.contains(after.as_str())) {
                    settled.insert(&step.id);
                }
            }
            match self.0.iter().find(|step| !settled.contains(step.id.as_str())) {
                None => return Ok(()),
                Some(step) if settled.len() == before => {
                    return Err(format!("step `{}` comes after itself, by way of others", step.id));
                }
                Some(_) => {}
            }
        }
    }

    pub(super) fn update(&mut self, id: &str, status: Status, note: &str) -> Result<(), String> {
        let step = self.found(id)?.clone();
        if note.len() > MAX_TEXT_BYTES {
            return Err(format!("`note` has {} bytes, more than {MAX_TEXT_BYTES}", note.len()));
        }
        if matches!(status, Status::InProgress | Status::Done) {
            let awaited = self.above(&step).flat_map(|step| &step.after).filter_map(|after| self.get(after));
            let open = awaited
                .chain(step.after.iter().filter_map(|after| self.get(after)))
                .find(|after| !after.status.is_over());
            if let Some(other) = open {
                return Err(format!("step `{id}` comes after `{}`, which is {}", other.id, other.status.in_words()));
            }
        }
        if status == Status::InProgress {
            let other = self.0.iter().find(|other| other.status == Status::InProgress && other.id != id);
            if let Some(other) = other {
                return Err(format!("step `{}` is in progress: set it to done, failed or skipped first", other.id));
            }
        }
        if status == Status::Done {
            let open = self.0.iter().find(|other| self.is_beneath(other, id) && !other.status.is_over());
            if let Some(open) = open {
                return Err(format!("step `{}`, a part of `{id}`, is {}", open.id, open.status.in_words()));
            }
        }
        let step = self.0.iter_mut().find(|step| step.id == id).expect("it was found above");
        step.status = status;
        if !note.trim().is_empty() {
            step.note = note.to_owned();
        }
        Ok(())
    }

    pub(super) fn drop_all(&mut self, ids: &[String]) -> Result<(), String> {
        for id in ids {
            self.found(id)?;
            let gone: BTreeSet<String> = self
                .0
                .iter()
                .filter(|step| step.id == *id || self.is_beneath(step, id))
                .map(|step| step.id.clone())
                .collect();
            self.0.retain(|step| !gone.contains(&step.id));
            for step in &mut self.0 {
                step.after.retain(|after| !gone.contains(after));
            }
        }
        Ok(())
    }

    pub(super) fn reword(&mut self, reword: Vec<Reword>) -> Result<(), String> {
        for Reword { step, text } in reword {
            check_text("text", &text)?;
            self.found(&step)?;
            for own in self.0.iter_mut().filter(|own| own.id == step) {
                own.text.clone_from(&text);
            }
        }
        Ok(())
    }

    /// Whether every step is done or skipped.
    pub(super) fn are_over(&self) -> bool {
        self.0.iter().all(|step| step.status.is_over())
    }

    /// The step in progress, or the first leaf that can begin.
    pub(super) fn next(&self) -> Option<&Step> {
        let under_way = self.0.iter().find(|step| step.status == Status::InProgress);
        under_way.or_else(|| self.0.iter().find(|step| self.can_begin(step)))
    }

    fn can_begin(&self, step: &Step) -> bool {
        let is_over = |id: &String| self.get(id).is_none_or(|step| step.status.is_over());
        let has_open_part =
            self.0.iter().any(|other| other.under.as_deref() == Some(&step.id) && !other.status.is_over());
        let is_open = |parent: &Step| parent.after.iter().all(is_over) && parent.status != Status::Failed;
        step.status == Status::Pending
            && !has_open_part
            && step.after.iter().all(is_over)
            && self.above(step).all(is_open)
    }

    /// Takes over the steps that a copy finished, failed or skipped. Returns how many.
    pub(super) fn take_back(&mut self, copy: &Steps) -> usize {
        let mut taken = 0;
        for step in &mut self.0 {
            let Some(other) = copy.get(&step.id).filter(|other| other.text == step.text) else { continue };
            let is_newer = matches!(other.status, Status::Done | Status::Failed | Status::Skipped)
                && !step.status.is_over()
                && step.status != other.status;
            if is_newer {
                step.status = other.status;
                step.note.clone_from(&other.note);
                taken += 1;
            }
        }
        taken
    }
}
