//! A complete coding agent: `cargo run -p contexture --features client,tools --example coding_agent -- "fix the bug in #src/lib.rs"`
//!
//! It works in the current directory, with the model that the environment names: `ANTHROPIC_API_KEY`, or `OPENAI_API_KEY`,
//! or a server of chat completions at `CONTEXTURE_CHAT_URL` (Ollama on its usual port, unless it is set); `CONTEXTURE_MODEL`
//! names the model. What it does is kept in `.contexture/agent.db`, so the next run goes on where this one ended.

use std::io::Write;

use contexture::client::{ApiKey, Client, ClientError};
use contexture::event::Event;
use contexture::layers::{FileHistory, FileReference, FileReferenceOptions, WorkingMemory};
use contexture::model::Delta;
use contexture::prelude::*;
use contexture::tools::{AllowAll, Workspace};

const INSTRUCTIONS: &str = "You are a coding agent. Read before you edit, make small edits, run the tests, and say in \
     one sentence what you did.";

fn model() -> Result<Client, ClientError> {
    let named = |default: &str| std::env::var("CONTEXTURE_MODEL").unwrap_or_else(|_| default.to_owned());
    if let Some(key) = ApiKey::from_env("ANTHROPIC_API_KEY") {
        return Client::anthropic(named("claude-sonnet-4-5")).key(key).build();
    }
    if let Some(key) = ApiKey::from_env("OPENAI_API_KEY") {
        return Client::openai(named("gpt-5.1-codex")).key(key).build();
    }
    let url = std::env::var("CONTEXTURE_CHAT_URL").unwrap_or_else(|_| "http://127.0.0.1:11434/v1".to_owned());
    Client::chat(url, named("qwen3-coder")).build()
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
    let workspace = Workspace::open(".")?.with_approval(AllowAll);
    let layers = memory((
        WorkingMemory::new(),
        FileReference::new(FileReferenceOptions::default())?,
        // With the workspace's files at hand, what it shows is compared with the disk.
        FileHistory::default(),
    ));
    std::fs::create_dir_all(".contexture")?;
    let engine = workspace
        .add_tools(contexture::open(".contexture/agent.db", layers)?)
        .model(model()?)
        .instructions(INSTRUCTIONS)
        .policy(ProjectionPolicy::new(64_000))
        .observer(show)
        .build()?;
    let mut execution = engine.execution("main").resource("project").start().await?;
    // A turn that was cut off goes on first: nothing is repeated.
    execution.resume().await?;
    execution.turn(task).await?;
    let usage = execution.token_usage();
    println!("\n[{} tokens in, {} out]", usage.input, usage.output);
    Ok(execution.complete().await?)
}
