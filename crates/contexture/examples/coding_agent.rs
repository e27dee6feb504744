//! A complete coding agent: `cargo run -p contexture --features client,tools --example coding_agent -- "fix the bug in #src/lib.rs"`
//!
//! It works in the current directory, with the model that the environment names: `ANTHROPIC_API_KEY`, or `OPENAI_API_KEY`,
//! or a server of chat completions at `CONTEXTURE_CHAT_URL` (Ollama on its usual port, unless it is set); `CONTEXTURE_MODEL`
//! names the model. What it does is kept in `.contexture/agent.db`, so the next run goes on where this one ended, and
//! `contexture inspect .contexture/agent.db` shows it in the browser.

use std::io::Write;

use contexture::client::{ApiKey, Client, ClientError};
use contexture::event::Event;
use contexture::layers::{FileHistory, FileReference, FileReferenceOptions, Instructions, Plan, WorkingMemory};
use contexture::model::Delta;
use contexture::prelude::*;
use contexture::tools::{AllowAll, Workspace};

const KEYS: [&str; 2] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];

fn model() -> Result<Client, ClientError> {
    let named = |default: &str| std::env::var("CONTEXTURE_MODEL").unwrap_or_else(|_| default.to_owned());
    match KEYS.map(ApiKey::from_env) {
        [Some(key), _] => Client::anthropic(named("claude-sonnet-4-5")).key(key).build(),
        [_, Some(key)] => Client::openai(named("gpt-5.1-codex")).key(key).build(),
        [None, None] => {
            let url = std::env::var("CONTEXTURE_CHAT_URL").unwrap_or_else(|_| "http://127.0.0.1:11434/v1".to_owned());
            Client::chat(url, named("qwen3-coder")).build()
        }
    }
}

/// Prints what the model says as it arrives, and which tools it calls.
fn show(event: Event<'_>) {
    match event {
        Event::Delta(piece) => match &piece.delta {
            Delta::Text { text } => print!("{text}"),
            Delta::Call { name: Some(name), .. } => println!("\n[{name}]"),
            _ => {}
        },
        Event::Fault(fault) => eprintln!("{}", fault.message),
        _ => {}
    }
    // Where nobody can see it any more there is nothing to be done about it.
    let _ = std::io::stdout().flush();
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let task = std::env::args().nth(1).ok_or("say what to do, as one argument")?;
    // Commands run without asking here; `Approve` is where a program would ask.
    let workspace = Workspace::open(".")?.with_approval(AllowAll).without_variables(KEYS);
    let layers = memory((
        Instructions::new(),                                  // AGENTS.md and CLAUDE.md
        WorkingMemory::new(),                                 // what the model wants to keep in mind
        Plan::new(),                                          // what is to be done, step by step
        FileReference::new(FileReferenceOptions::default())?, // files that are named as #path
        FileHistory::default(), // the past by what is known about files, compared with the disk
    ));
    // A helper has the same tools and layers, and a conversation of its own; only its report comes back.
    let delegate = tool("task", "Lets a helper do a part of the work; returns its report.", |task: Task, ctx| {
        Box::pin(async move {
            let mut helper = ctx.child().keep_tools(|name| name != "task").start().await?;
            let report = helper.turn(task.task).await?.text();
            Ok(ctx.join(helper, report).await?)
        })
    });
    std::fs::create_dir_all(".contexture")?;
    let engine = workspace
        .add_tools(contexture::open(".contexture/agent.db", layers)?)
        .model(model()?)
        .tool(delegate)
        .instructions("You are a coding agent. Read before you edit, make small edits, and run the tests.")
        .policy(ProjectionPolicy::new(64_000))
        .observer(show)
        .build()?;
    let mut execution = engine.execution("main").resource_of("project", ".").start().await?;
    // A turn that was cut off goes on first: nothing is repeated.
    execution.resume().await?;
    execution.turn(task).await?;
    let usage = execution.token_usage();
    println!("\n[{} tokens in, {} out]", usage.input, usage.output);
    Ok(execution.complete().await?)
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Task {
    /// What to do, with everything that a helper without this conversation must know.
    task: String,
}
