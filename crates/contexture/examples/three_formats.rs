//! Asks one server two things over each format of Anthropic and OpenAI, and prints what its cache held:
//! `cargo run -p contexture --features client --example three_formats -- http://127.0.0.1:8080/v1 MODEL`

use std::sync::Arc;
use std::time::Instant;

use contexture::client::Client;
use contexture::model::{Delta, Deltas};
use contexture::prelude::*;
use contexture::wire::Format;

/// Long enough that a cache is worth something.
const INSTRUCTIONS: &str = "You answer in one short sentence. You know about boats, harbours, tides, winds, knots, sails, \
     charts, lighthouses, buoys, anchors, ropes, oars, rudders, keels, hulls, decks and the people who work on them.";

fn print(delta: Delta) {
    if let Delta::Text { text } = delta {
        print!("{text}");
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(model)) = (arguments.next(), arguments.next()) else {
        return Err("name the address of a server, which usually ends in /v1, and a model".into());
    };
    for format in [Format::Messages, Format::Chat, Format::Responses] {
        // The responses format has another name for the limit.
        let limit = if format == Format::Responses { "max_output_tokens" } else { "max_tokens" };
        let client = Client::builder(format, &url, &model).field(limit, 24).field("temperature", 0).build()?;
        let mut items = Vec::new();
        for question in ["What is a keel?", "And a rudder?"] {
            println!("{format:?}: {question}");
            items.push(Arc::new(Item::user(question)));
            let begin = Instant::now();
            let response = client.stream(ModelRequest::new(INSTRUCTIONS, items.clone()), Deltas::to(print)).await?;
            let (usage, seconds) = (response.usage, begin.elapsed().as_secs_f64());
            let cached = usage.cache_read_tokens.unwrap_or(0);
            println!(
                "\n  {} tokens in, {cached} of them cached, {} out, {seconds:.1} s",
                usage.input_tokens, usage.output_tokens
            );
            items.extend(response.items.into_iter().map(Arc::new));
        }
    }
    Ok(())
}
