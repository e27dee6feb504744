//! The questions for which people open the page, answered by somebody who has never seen it: by what can be clicked, and
//! by the text that can be read.

use contexture::item::{FunctionCall, Item};
use contexture::transcript::Record;
use serde_json::json;

use crate::driver::{Browser, ENTER};
use crate::scene::{Scene, recorded};

/// The text of a part of the page, once it is there.
async fn read(browser: &Browser, part: &str) -> String {
    let script = format!("document.querySelector({})?.innerText", json!(part));
    browser.until(part, &script).await.as_str().unwrap().replace('\u{202f}', " ")
}

/// An agent that reads files, runs a script that may change them, and goes on for a while.
fn recording(rounds: usize) -> Vec<Record> {
    let mut records = vec![Record::from(Item::user(
        "<current_datetime>2026-01-01T00:00:00Z</current_datetime>\n\nPlease bring the parser up to date.",
    ))];
    let mut call = |number: usize, name: &str, arguments: serde_json::Value, output: String| {
        let id = format!("call_{number}_{name}");
        let call = FunctionCall::new(&id, name, arguments.to_string());
        records.push(Record::response(format!("Step {number}."), [call]));
        records.push(Record::from(Item::output(&id, output)));
    };
    for number in 0..rounds {
        let path = format!("/project/src/part_{}.rs", number % 5);
        let lines: String = (1..60).map(|line| format!("{line:6}\tfn part_{number}_{line}() {{}}\n")).collect();
        call(number, "Read", json!({"file_path": path}), lines);
        call(number, "Bash", json!({"command": format!("./scripts/migrate.sh {number}")}), "done\n".repeat(80));
    }
    records.push(Record::from(Item::user("")));
    records.push(Record::response("It is up to date.", []));
    records
}

/// Opens a recording with folds, at the request of the first one. Returns its number.
async fn at_a_fold(browser: &Browser, url: &str) -> u64 {
    browser.open(url).await;
    browser.sees("Please bring the parser up to date.").await;
    // The first key works: the list has the focus.
    browser.keys(ENTER).await;
    browser.until("the picture", "document.querySelector('#overview')").await;
    browser.click("#requests [role=option]", "folded to").await;
    browser.until("a fold", "document.querySelector('.sentence')?.innerText.includes('Folded: ')").await;
    browser.run("return Number(document.querySelector('.page').dataset.request)").await.as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_finds_the_answers() {
    let server = recorded(&[("parser.jsonl", recording(40))], 9_000).await;
    let browser = Browser::start(1440, 900).await;
    let n = at_a_fold(&browser, &server.inspector().url()).await;
    // What fills the window now?
    let sentence = read(&browser, ".sentence").await;
    assert!(sentence.contains(&format!("Request {n}: the model sees")) && sentence.contains("k of "), "{sentence}");
    let window = read(&browser, "#window").await;
    for name in ["Instructions", "Files", "Calls", "largest: "] {
        assert!(window.contains(name), "{name}: {window}");
    }
    // Why did this request change?
    let fold = read(&browser, "#fold").await;
    assert!(fold.contains("why") && fold.contains("took away") && fold.contains("tool output"), "{fold}");
    // What did it cost, was that paid back, and what would the conversation have cost?
    assert!(fold.contains("billed again") && fold.contains("paid back"), "{fold}");
    let sum = read(&browser, "#overview").await;
    assert!(sum.contains("would be billed $") && sum.contains("as it came $"), "{sum}");
    // What has the model lost?
    assert!(fold.contains("file read") || fold.contains("older rewritten"), "{fold}");
    // Which files may it be wrong about?
    let files = read(&browser, "#files").await;
    assert!(files.contains("part_") && files.contains("as seen or written at message"), "{files}");
    assert!(sentence.contains(" file"), "{sentence}");
    browser.picture("inspector-fold").await;
    // Which tool wastes the most?
    browser.click(".tabs button", "Tools").await;
    let tools = read(&browser, ".sheet").await;
    assert!(tools.contains("Read fills the most"), "{tools}");
    // A recording without dates shows none, and says which model it assumes.
    let page = read(&browser, "#app").await;
    assert!(!page.contains("1970") && !page.contains("2025,") && page.contains("assumed"), "{page}");
    assert!(page.contains("Please bring the parser") && !page.contains("current_datetime"), "{page}");
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_beside_each_other_agree() {
    let server = recorded(&[("parser.jsonl", recording(40))], 9_000).await;
    let browser = Browser::start(1440, 900).await;
    at_a_fold(&browser, &server.inspector().url()).await;
    // The percentage is that of the dollars before it.
    let sum = read(&browser, "#overview").await;
    let number = |after: &str| -> f64 {
        let text = sum.split(after).nth(1).unwrap_or_else(|| panic!("{after}: {sum}"));
        text.split([' ', ':', '\n']).next().unwrap().parse().unwrap()
    };
    let (paid, through) = (number("billed $"), number("as it came $"));
    let percent = sum.split("as it came $").nth(1).unwrap().split(": ").nth(1).unwrap().split(' ').next().unwrap();
    assert!((100.0 * (1.0 - paid / through).abs() - percent.parse::<f64>().unwrap()).abs() < 1.5, "{sum}");
    // The list, the sentence and the parts of the window count the same tokens.
    let row = read(&browser, "#requests [aria-selected=true]").await;
    let folded = row.split("folded to ").nth(1).unwrap().split_whitespace().next().unwrap();
    let sentence = read(&browser, ".sentence").await;
    assert!(sentence.contains(&format!("sees {folded} of 9.0k")), "{row}: {sentence}");
    let free = read(&browser, "#window").await;
    assert!(free.contains("Instructions"), "{free}");
    // Its price is the same in the list, in the sentence and in what it cost.
    let price = row.split('$').nth(1).unwrap().trim();
    assert!(sentence.contains(&format!("${price}")), "{row}: {sentence}");
    assert!(read(&browser, "#cost").await.contains(&format!("${price}")));
    // The budget is the one that was asked for, over the picture too.
    assert!(read(&browser, "#overview").await.contains("budget 9.0k"));
    // Names in the window lead to their blocks.
    for words in ["Files", "Calls", "Instructions"] {
        browser.click("#window .part", words).await;
        browser.until("the block", "document.querySelector('.detail .text pre')?.innerText.length > 0").await;
        browser.keys(crate::driver::ESCAPE).await;
        browser.until("no block", "!document.querySelector('.detail')").await;
    }
    // An address that nobody wrote is no reason for an empty page.
    let base = browser.address().await;
    browser.open(&format!("{}#/c/%/x", base.split('#').next().unwrap())).await;
    browser.sees("there is no such thing here").await;
    browser.keys("$").await;
    let bill = read(&browser, "tbody tr").await;
    assert!(bill.contains(&format!("{percent} %")) && bill.matches('$').count() == 2, "{bill}");
    // A page whose server has ended says so.
    browser.open(&base).await;
    browser.until("the sentence", "document.querySelector('.sentence')").await;
    drop(server);
    browser.keys("]").await;
    browser.sees("The program that served this page has ended").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_number_leads_to_what_it_is_made_of() {
    let server = recorded(&[("parser.jsonl", recording(40))], 9_000).await;
    let browser = Browser::start(1440, 900).await;
    at_a_fold(&browser, &server.inspector().url()).await;
    let focused = "document.activeElement?.id";
    for (words, part) in [(" of 9.0k", "window"), ("Folded: ", "fold"), ("$", "cost"), (" file", "files")] {
        browser.click(".sentence .jump", words).await;
        browser.until(part, &format!("{focused} === '{part}'")).await;
    }
    browser.click("#files td button", "part_").await;
    browser.sees("all files").await;
    browser.click(".tabs button", "Request").await;
    browser.click("#fold td button", "tool output").await;
    browser.until("the block", "document.querySelector('.detail .text pre')?.innerText.length > 0").await;
    browser.keys(crate::driver::ESCAPE).await;
    browser.until("no block", "!document.querySelector('.detail')").await;
    // The picture of the conversation opens requests.
    let before = browser.address().await;
    browser
        .run("document.querySelector('.stack').dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: document.querySelector('.stack').getBoundingClientRect().left + 2}))")
        .await;
    browser.sees("Request 1: ").await;
    assert_ne!(browser.address().await, before);
    // What the picture says is also in a table.
    browser.click("summary", "As a table").await;
    browser.click(".behind-picture td a", "3").await;
    browser.sees("Request 3: ").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_home_tells_what_all_cost_and_finds_sessions() {
    let server = recorded(&[("long.jsonl", recording(40)), ("short.jsonl", recording(6))], 9_000).await;
    let browser = Browser::start(1440, 900).await;
    browser.open(&server.inspector().url()).await;
    let headline = read(&browser, ".headline h1").await;
    assert!(headline.starts_with("2 sessions would have cost $"), "{headline}");
    let paid = |text: &str| -> f64 { text.trim_start_matches('$').parse().unwrap() };
    let rows = "[...document.querySelectorAll('#sessions tbody .strong')].map((one) => one.innerText)";
    let rows = browser.until("the rows", rows).await;
    let sum: f64 = rows.as_array().unwrap().iter().map(|row| paid(row.as_str().unwrap())).sum();
    let told = paid(headline.split("With Contexture: ").nth(1).unwrap().split(',').next().unwrap());
    assert!((sum - told).abs() < 0.011, "{headline}: {rows}");
    // The order and the filter are in the address, and are there again when that is opened.
    browser.click("#sessions th button", "paid").await;
    browser.until("the dearest first", "location.hash.includes('sort=paid') && document.querySelector('th[aria-sort=descending]')?.innerText.startsWith('paid')").await;
    browser.keys("f").await;
    browser.keys("short").await;
    let one = "location.hash.includes('q=short') && document.querySelectorAll('#sessions tbody tr').length === 1";
    browser.until("one session", one).await;
    let address = browser.address().await;
    browser.open("about:blank").await;
    browser.open(&address).await;
    browser.until("one session again", one).await;
    assert!(read(&browser, ".headline h1").await.starts_with("1 session would have cost $"));
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

/// Where the parts of the page are that are read from the top.
async fn places(browser: &Browser) -> serde_json::Value {
    browser
        .run("return ['.side-head', '.sentence', '#overview', '#window', '#requests-0'].map((one) => [one, document.querySelector(one).getBoundingClientRect().top])")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_jumps_while_somebody_reads() {
    let mut scene = Scene::new(24).await;
    scene.play(5).await;
    let browser = Browser::start(1440, 900).await;
    browser.open(&scene.url()).await;
    browser.sees("bring all modules").await;
    browser.keys(ENTER).await;
    browser.sees("Request 5: ").await;
    browser.until("its answer", "document.querySelector('#cost')?.innerText.includes('$')").await;
    // Somebody has scrolled back to the first request, and reads there.
    browser.run("document.getElementById('requests').scrollTop = 0").await;
    let before = places(&browser).await;
    let count = scene.play(10).await;
    browser.sees(&format!("{} newer", count - 5)).await;
    assert_eq!(browser.run("return document.querySelector('.page').dataset.request").await, "5");
    assert_eq!(places(&browser).await, before);
    assert!(!read(&browser, "#app").await.contains("simulated"));
    browser.click("button.newer", "newer").await;
    browser.sees(&format!("Request {count}: ")).await;
    scene.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_fits_twice_as_large() {
    let server = recorded(&[("parser.jsonl", recording(24))], 9_000).await;
    // A page of 1280 pixels at 200 % has 640.
    let browser = Browser::start(640, 450).await;
    browser.open(&server.inspector().url()).await;
    browser.sees("Please bring the parser").await;
    browser.keys(ENTER).await;
    browser.click("#requests [role=option]", "folded to").await;
    browser.until("the sentence", "document.querySelector('.sentence')").await;
    let wide = browser.run("return [document.documentElement.scrollWidth, innerWidth]").await;
    assert!(wide[0].as_u64() <= wide[1].as_u64(), "{wide}");
}
