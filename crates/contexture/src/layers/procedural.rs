//! `procedural`: skills, which are folders with a SKILL.md, listed cheaply and opened on demand.
//!
//! | | |
//! | --- | --- |
//! | slot | 250, [`Slot::PROCEDURAL`] |
//! | scope | resource `project` |
//! | budget | at most 27 000 tokens: 2 000 for the list, 25 000 for what is open |
//! | band | by churn, with a delta of what was opened |
//! | tools | `procedural/open`, `procedural/close` |
//! | data | `opened` |
//!
//! Skills are read as the public Agent Skills format has them: a folder with a `SKILL.md` that begins with `name` and
//! `description` and goes on with the text of the skill. They are looked for in `.contexture/skills`, `.agents/skills` and
//! `.claude/skills` of the project, in the plugin folders beside them (`.claude/plugins/NAME/skills`), and of the user if
//! the program gives files that it trusts ([`with_user_files`](Procedural::with_user_files)). Of two with the same name
//! the project's wins, and the earlier folder.
//!
//! Reading is lenient. A skill without a name is called after its folder, an odd name or a long description is taken as
//! it is; a skill without a description is left out, since nobody could tell when to open it, and one with
//! `disable-model-invocation: true` is not shown to the model at all. The block says how many were left out. At most
//! [`MAX_SKILLS`] skills are read, at most [`MAX_DEPTH`] folders deep, and nothing outside of the two bases, wherever a
//! link leads.
//!
//! The model sees names and descriptions. If they do not fit, all descriptions are shortened evenly before any skill is
//! left out, and how many are is said. `open` shows the text of a skill from the next step on: it is part of this block,
//! so no fold takes it away, up to 5 000 tokens each and 25 000 in all; beyond that the one opened longest ago is closed.
//! Its `compatibility` and `license`, if it says them, are the first lines of that text. `open` with `file` returns a file
//! of the skill's folder. `close` ends it. A thread has its own open skills, and so does a child. If two processes open
//! skills at the same time, both stay open. No model is needed.

mod find;
mod render;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use contexture_core::error::BoxError;
use contexture_core::host::{FsAdapter, ReadLimits, relative_path};
use contexture_core::item::Item;
use contexture_core::layer::*;
use contexture_core::tool::wire_name;
use contexture_core::window::shorten;
use contexture_core::{LayerId, Slot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::find::{Skill, SkillCache};
use contexture_text::block::added_text;
use contexture_text::one_line::one_line;
use contexture_text::state_version::StateVersion;

/// The id of the layer.
pub const ID: &str = "procedural";
/// Most skills that are read.
pub const MAX_SKILLS: usize = 200;
/// How many folders deep skills are searched for.
pub const MAX_DEPTH: usize = 3;
/// Most tokens of one open skill that are shown.
pub const MAX_BODY_TOKENS: u64 = 5_000;
/// Most tokens of all open skills of a thread.
pub const MAX_OPEN_TOKENS: u64 = 25_000;
/// Most tokens of the list.
pub const MAX_LIST_TOKENS: u64 = 2_000;
/// Most open skills over all threads.
pub const MAX_OPENED: usize = 64;

const BUDGET: BudgetConfig = BudgetConfig::Range { min: 0, max: MAX_LIST_TOKENS + MAX_OPEN_TOKENS };
const LIMITS: ReadLimits = ReadLimits { max_bytes: 1 << 20, follow_symlinks: true };
/// Most open skills that are shown.
const MAX_SHOWN: usize = 32;
/// How many items before an output are searched for its call.
const MAX_CALLS_BACK: usize = 2_048;

/// The layer `procedural`: see [the module](self).
#[derive(Clone, Default)]
pub struct Procedural {
    /// `None`: the layer's own.
    id: Option<LayerId>,
    user_files: Option<Arc<dyn FsAdapter>>,
    shelf: Arc<Mutex<SkillCache>>,
}

/// The layer's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProceduralState {
    version: StateVersion<1>,
    /// The most recently opened skill is last.
    opened: VecDeque<Opened>,
}

/// An open skill.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Opened {
    /// The thread that opened it.
    pub thread: String,
    /// The skill.
    pub name: String,
    /// Its text, as far as it is shown.
    pub text: String,
    /// The tokens of the text.
    pub tokens: u64,
}

/// What `procedural/open` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenSkill {
    /// The name of the skill, as it is listed.
    pub name: String,
    /// A file of the skill's folder to read instead, as the skill names it.
    #[serde(default)]
    pub file: Option<String>,
}

/// What `procedural/close` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CloseSkill {
    /// The name of the skill.
    pub name: String,
}

impl Procedural {
    /// Returns all open skills.
    pub const OPENED: LayerData<Procedural, Vec<Opened>> = LayerData::new("opened");
    /// Opens a skill, or returns one of its files.
    pub const OPEN: LayerFunction<Procedural, OpenSkill, String> = LayerFunction::new("open");
    /// Closes a skill.
    pub const CLOSE: LayerFunction<Procedural, CloseSkill, String> = LayerFunction::new("close");

    /// Creates the layer with the skills of the project.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets another id, for two such layers in one memory.
    pub fn with_id(mut self, id: impl Into<LayerId>) -> Self {
        self.id = Some(id.into());
        self
    }

    fn id(&self) -> LayerId {
        self.id.clone().unwrap_or_else(|| ID.into())
    }

    /// Adds the user's own skills, whose files the program trusts. Their base is the user's home directory.
    pub fn with_user_files(mut self, files: Arc<dyn FsAdapter>) -> Self {
        self.user_files = Some(files);
        self
    }

    /// The current skills, and how many were left out.
    async fn skills(&self, project: &Arc<dyn FsAdapter>) -> (Vec<Arc<Skill>>, usize) {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let found = shelf.find(project, self.user_files.as_ref()).await;
        *self.shelf.lock().unwrap_or_else(PoisonError::into_inner) = shelf;
        found
    }

    async fn open(
        &self,
        input: OpenSkill,
        state: Arc<ProceduralState>,
        ctx: ExecutionContext,
    ) -> HookResult<FnResult<String, ProceduralState>> {
        let (skills, _) = self.skills(&ctx.fs).await;
        let Some(skill) = skills.iter().find(|skill| skill.name == input.name) else {
            let names: Vec<String> =
                skills.iter().take(20).map(|skill| format!("`{}`", one_line(&skill.name))).collect();
            let known = if names.is_empty() { "there are none".to_owned() } else { names.join(", ") };
            return Err(format!("there is no skill `{}`; skills: {known}", one_line(&input.name)).into());
        };
        if let Some(file) = input.file.filter(|file| !file.is_empty()) {
            let text = self.read_file(skill, &file, &ctx).await?;
            return Ok(FnResult::new(shorten(ctx.counter(), &text, MAX_BODY_TOKENS)));
        }
        let text = shorten(ctx.counter(), &skill.body, MAX_BODY_TOKENS);
        let tokens = ctx.tokenize(&text);
        let opened = Opened { thread: ctx.thread_id.to_string(), name: skill.name.clone(), text, tokens };
        let said = format!(
            "`{}` is open: its text is in the block `{}` from the next step on",
            one_line(&skill.name),
            self.id()
        );
        Ok(FnResult::new(said).with_state(state.with(opened)))
    }

    /// Reads a file of a skill's folder. Files outside of it are refused.
    async fn read_file(&self, skill: &Skill, file: &str, ctx: &ExecutionContext) -> Result<String, BoxError> {
        let fs = if skill.is_users { self.user_files.as_ref() } else { Some(&ctx.fs) };
        let fs = fs.ok_or("the user's files are not given any more")?;
        let inside = relative_path(file).map_err(|error| format!("`{}`: {}", one_line(file), error.message))?;
        let path = format!("{}/{inside}", skill.folder);
        let limits = ReadLimits { follow_symlinks: false, ..LIMITS };
        let read = fs.read(&path, limits).await.map_err(|error| format!("`{}`: {}", one_line(file), error.message))?;
        Ok(read.text)
    }
}

impl ProceduralState {
    fn of_thread<'a>(&'a self, thread: &str) -> impl DoubleEndedIterator<Item = &'a Opened> {
        self.opened.iter().filter(move |opened| opened.thread == thread)
    }

    /// The state with one more open skill, if there is room.
    fn with(&self, opened: Opened) -> Self {
        let mut state = self.without(&opened.thread, &opened.name);
        let thread = opened.thread.clone();
        state.opened.push_back(opened);
        loop {
            let tokens: u64 = state.of_thread(&thread).map(|opened| opened.tokens).sum();
            let oldest = state.opened.iter().position(|opened| opened.thread == thread);
            match oldest {
                Some(oldest) if tokens > MAX_OPEN_TOKENS => drop(state.opened.remove(oldest)),
                _ => break,
            }
        }
        while state.opened.len() > MAX_OPENED {
            state.opened.pop_front();
        }
        state
    }

    fn without(&self, thread: &str, name: &str) -> Self {
        let mut state = self.clone();
        state.opened.retain(|opened| opened.thread != thread || opened.name != name);
        state
    }
}

impl MemoryLayer for Procedural {
    type State = ProceduralState;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.id(), Slot::PROCEDURAL, MemoryScope::Resource)
            .with_name("Skills")
            .with_resource("project")
            .with_budget(BUDGET)
            .with_rerender_timing(RerenderTiming::Immediate)
    }

    fn provides(&self) -> LayerProvides<ProceduralState> {
        let layer = self.clone();
        let open = layer_fn("Shows its text, or a file of its folder.", move |input: OpenSkill, state, ctx| {
            let layer = layer.clone();
            async move { layer.open(input, state, ctx).await }
        });
        let close = layer_fn(
            "Not needed any more.",
            |input: CloseSkill, state: Arc<ProceduralState>, ctx: ExecutionContext| async move {
                let new = state.without(ctx.thread_id.as_str(), &input.name);
                if new == *state {
                    return Err(format!("`{}` is not open", one_line(&input.name)).into());
                }
                Ok(FnResult::new("closed".to_owned()).with_state(new))
            },
        );
        LayerProvides::new()
            .data(Self::OPENED.name(), layer_data(|state: &ProceduralState| Vec::from(state.opened.clone())))
            .function(Self::OPEN.name(), open)
            .function(Self::CLOSE.name(), close)
            .in_one_tool("Skills, as listed.")
    }

    /// Requests a new block as soon as a skill is opened or closed.
    async fn on_item_append(
        &self,
        params: OnItemAppendParams<ProceduralState>,
    ) -> HookResult<OnItemAppendResult<ProceduralState>> {
        let own = wire_name(&format!("{}/", self.id()));
        let is_own = |id: &str| {
            let mut calls = params.log.last(MAX_CALLS_BACK).rev().filter_map(Item::as_call);
            calls.find(|call| &*call.call_id == id).is_some_and(|call| wire_name(&call.name).starts_with(&own))
        };
        let changes = params.items.iter().filter_map(Item::as_output).any(|output| is_own(&output.call_id));
        let result = OnItemAppendResult::items(params.items);
        Ok(if changes { result.with_rerender(Rerender::default()) } else { result })
    }

    async fn recall(&self, params: RecallParams<ProceduralState>) -> HookResult<RecallResult<ProceduralState>> {
        let (skills, left_out) = self.skills(&params.ctx.fs).await;
        let opened: Vec<&Opened> =
            params.state.of_thread(params.ctx.thread_id.as_str()).rev().take(MAX_SHOWN).collect();
        if skills.is_empty() && opened.is_empty() && left_out == 0 {
            return Ok(RecallResult::nothing());
        }
        let listed = render::SkillList { skills: &skills, left_out };
        let block = render::block(params.ctx.counter(), &self.id(), &listed, &opened, params.budget);
        Ok(block.into())
    }

    fn render_delta(&self, pinned: &[Arc<Item>], current: &[Arc<Item>]) -> Option<String> {
        added_text(pinned, current)
    }

    fn merge(&self, ours: &ProceduralState, theirs: &ProceduralState) -> Option<ProceduralState> {
        Some(ours.opened.iter().fold(theirs.clone(), |merged, opened| merged.with(opened.clone())))
    }
}

#[cfg(test)]
mod tests;
