//! How fast the page is on a long conversation. Nothing is asserted: figures belong into `docs/performance.md`.

use std::time::Instant;

use contexture::wire::{Format, Usage};
use contexture_gateway::RequestRecord;
use contexture_inspect::view::About;
use contexture_inspect::{Archive, ArchivedRequest, InspectServer};
use serde_json::json;

use crate::agent::{Agent, Step};
use crate::driver::{Browser, END, HOME};

const REQUESTS: usize = 2_000;

/// Requests after which the client begins anew, so that windows are 20 kB on average.
const PER_WINDOW: usize = 43;

/// Fills an archive. Returns the bytes of all windows together.
fn fill(archive: &Archive) -> usize {
    let mut bytes = 0;
    let mut agent = Agent::new(Format::Messages, "Go on.");
    for number in 0..REQUESTS {
        if number % PER_WINDOW == 0 {
            agent = Agent::new(Format::Messages, &format!("Part {number}: please go on with the modules."));
        }
        let id = format!("call_{number}");
        let text = crate::agent::file_text(number % 50, number, 5);
        let call = (id.clone(), "Read", json!({"file_path": format!("/project/src/m{}.rs", number % 50)}));
        agent.steps.push(Step::Model { text: format!("I look at part {number}."), calls: vec![call] });
        agent.steps.push(Step::Outputs(vec![(id, crate::agent::numbered(&text), false)]));
        let body = agent.request(agent.steps.len(), true);
        bytes += body.len();
        let usage = Usage {
            cache_read: body.len() as u64 / 5,
            cache_write: body.len() as u64 / 20,
            output: 200,
            ..Usage::default()
        };
        let record = RequestRecord {
            conversation: Some("long".to_owned()),
            time_ms: 1_750_000_000_000 + number as u64 * 20_000,
            model: "claude-sonnet-4-5".to_owned(),
            status: 200,
            usage: Some(usage),
            ..RequestRecord::default()
        };
        let seen = ArchivedRequest {
            conversation: "long",
            parent: None,
            format: Format::Messages,
            came: &body,
            sent: None,
            record: record.clone(),
        };
        let ticket = archive.note_sent(seen).unwrap();
        archive.note_over(&ticket, &record).unwrap();
    }
    bytes
}

/// How long the server takes for windows all over the conversation, without a browser; sorted, in milliseconds.
async fn served(url: &str) -> Vec<f64> {
    let (base, token) = url.split_once("/inspect/#token=").unwrap();
    let client = reqwest::Client::new();
    let mut times = Vec::new();
    for left in 1..=30 {
        let path = format!("conversations/long/requests/{}/window?limit=100", 1 + (left * 7_919) % REQUESTS);
        let began = Instant::now();
        let answer = client.get(format!("{base}/api/v1/{path}")).bearer_auth(token).send().await.unwrap();
        assert!(answer.status().is_success());
        answer.bytes().await.unwrap();
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    times
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_a_long_conversation() {
    if std::env::var_os("INSPECTOR_FIGURES").is_none() {
        return;
    }
    let archive = Archive::temporary().unwrap();
    let began = Instant::now();
    let bytes = fill(&archive);
    let noting = began.elapsed();
    let about = About {
        version: "",
        name: "figures".to_owned(),
        kind: "recordings",
        is_live: false,
        can_act: false,
        can_forget: false,
        ..About::default()
    };
    let server = InspectServer::start("127.0.0.1:0", archive, about).await.unwrap();
    let browser = Browser::start(1440, 900).await;
    browser.open(&server.inspector().url()).await;
    browser.sees("Part ").await;
    let paint = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0";
    let first = browser.run(paint).await.as_f64().unwrap();
    browser.run("document.querySelector('#sessions a').click()").await;
    browser.sees("Request 2000: ").await;
    // From the key to the drawn window of another request, for requests all over the conversation.
    let script = "const done = arguments[arguments.length - 1]; const times = []; const base = location.hash.split('/').slice(0, 3).join('/');
        const one = (left) => {
            if (left === 0) return done(times);
            const n = 1 + Math.floor((left * 7919) % 2000);
            const start = performance.now();
            location.hash = base + '/' + n;
            const wait = () => {
                const head = document.querySelector('.page')?.dataset.request === String(n);
                const blocks = document.querySelector('#blocks .row .name');
                if (head && blocks && document.querySelector('#blocks').dataset.subject?.includes(' ' + n + ' ')) { times.push(performance.now() - start); setTimeout(() => one(left - 1), 20); }
                else requestAnimationFrame(wait);
            };
            requestAnimationFrame(wait);
        };
        one(30);";
    let times = browser.run_later(script, json!([])).await;
    let mut times: Vec<f64> = times.as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
    times.sort_by(f64::total_cmp);
    browser.keys("a").await;
    browser.run("document.getElementById('requests').focus()").await;
    browser.keys(HOME).await;
    browser.sees("Request 1: ").await;
    // Rows that are empty while the list is scrolled through as fast as frames come.
    let script = "const done = arguments[arguments.length - 1]; const list = document.getElementById('requests'); let frames = 0, gaps = 0, slow = 0, last = performance.now();
        const step = () => { const now = performance.now(); if (now - last > 50) slow++; last = now; frames++; list.scrollTop += 400;
            if ([...list.querySelectorAll('.row')].length === 0) gaps++;
            list.scrollTop + list.clientHeight >= list.scrollHeight - 1 ? done([frames, gaps, slow]) : requestAnimationFrame(step); };
        step();";
    let scrolled = browser.run_later(script, json!([])).await;
    browser.keys(END).await;
    browser.devtools("HeapProfiler.collectGarbage", json!({})).await;
    let heap = browser.devtools("Runtime.getHeapUsage", json!({})).await;
    let nodes = browser.run("return document.querySelectorAll('*').length").await;
    println!(
        "windows: {REQUESTS} requests, {:.1} MB; noted in {:.2} ms each",
        bytes as f64 / 1e6,
        noting.as_secs_f64() * 1e3 / REQUESTS as f64
    );
    println!("first paint: {first:.0} ms");
    println!(
        "a request: {:.0} ms at the median, {:.0} ms at most of {}",
        times[times.len() / 2],
        times.last().unwrap(),
        times.len()
    );
    let served = served(&server.inspector().url()).await;
    println!(
        "  of that the server: {:.1} ms at the median, {:.1} ms at most",
        served[served.len() / 2],
        served[served.len() - 1]
    );
    println!("scrolling: {} frames, {} without rows, {} above 50 ms", scrolled[0], scrolled[1], scrolled[2]);
    println!("page: {:.1} MB of heap, {nodes} elements", heap["usedSize"].as_f64().unwrap() / 1e6);
}
