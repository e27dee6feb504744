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
    browser.sees("The whole conversation").await;
    browser.click("#requests [role=option]", "fold:").await;
    let heading = "[...document.querySelectorAll('h2')].find((one) => one.innerText.startsWith('Request '))?.innerText";
    browser.until("a fold", "document.querySelector('.happened')?.innerText.includes('Fold')").await;
    let heading = browser.run(&format!("return {heading}")).await;
    heading.as_str().unwrap().trim_start_matches("Request ").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_finds_the_answers() {
    let server = recorded(&[("parser.jsonl", recording(40))], 9_000).await;
    let browser = Browser::start(1440, 900).await;
    let n = at_a_fold(&browser, &server.inspector().url()).await;
    // What fills the window now?
    browser.until("the sentence", "document.querySelector('.sentence')?.innerText.includes('tokens')").await;
    let sentence = read(&browser, ".sentence").await;
    assert!(sentence.contains(&format!("At request {n} the model sees")) && sentence.contains("k of "), "{sentence}");
    assert!(sentence.contains("rewritten by Contexture"), "{sentence}");
    let window = read(&browser, "#window").await;
    assert!(window.contains("What fills it most: ") && window.contains("part_"), "{window}");
    // Why did this request change?
    let taken = read(&browser, "#taken").await;
    assert!(taken.contains("tokens became") && taken.contains("tool output"), "{taken}");
    // What did the conversation cost, and what would it have cost?
    let cost = read(&browser, "#cost").await;
    assert!(cost.contains("The whole conversation cost $") && cost.contains("it would have cost"), "{cost}");
    assert!(cost.contains("simulated") && cost.contains("estimated") && !cost.contains("reported"), "{cost}");
    // What has the model lost?
    assert!(taken.contains("file read") || taken.contains("older rewritten"), "{taken}");
    // Which files may it be wrong about?
    let files = read(&browser, "#files").await;
    assert!(files.contains("before a change") && files.contains("as seen"), "{files}");
    assert!(files.contains("part_") && files.contains("migrate.sh"), "{files}");
    assert!(sentence.contains("file view") || sentence.contains("as the model saw them"), "{sentence}");
    // Which tool wastes the most?
    let tools = read(&browser, "#tools").await;
    assert!(tools.contains("Read fills the most"), "{tools}");
    // A recording without dates shows none, and says which model it assumes.
    let page = read(&browser, "main").await;
    assert!(!page.contains("1970") && !page.contains("2025,") && page.contains("(assumed)"), "{page}");
    let title = read(&browser, ".side").await;
    assert!(title.contains("Please bring the parser") && !title.contains("current_datetime"), "{title}");
    browser.picture("inspector-fold").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_beside_each_other_agree() {
    let server = recorded(&[("parser.jsonl", recording(40))], 9_000).await;
    let browser = Browser::start(1440, 900).await;
    at_a_fold(&browser, &server.inspector().url()).await;
    browser.until("the sentence", "document.querySelector('.sentence')?.innerText.includes('tokens')").await;
    // The percentage is that of the dollars before it.
    let sum = read(&browser, ".side .conversation-sum").await;
    let dollars: Vec<f64> =
        sum.split('$').skip(1).map(|text| text.split(' ').next().unwrap().parse().unwrap()).collect();
    let percent: f64 = sum.split("so this is ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((100.0 * (1.0 - dollars[0] / dollars[1]).abs() - percent).abs() < 1.5, "{sum}");
    // The list and the sentence count the same tokens.
    let row = read(&browser, "#requests [aria-selected=true] .tokens").await;
    let sentence = read(&browser, ".sentence").await;
    assert!(sentence.contains(&format!("sees {row} of ")), "{row}: {sentence}");
    // What is said of the budget is the same over both pictures.
    let budget = sentence.split(&format!("sees {row} of ")).nth(1).unwrap().split(' ').next().unwrap();
    assert!(read(&browser, "#overview").await.contains(&format!("the budget, {budget} here")));
    assert!(read(&browser, "#window").await.contains(&format!("the budget of {budget}")));
    // Names in the window lead to their blocks.
    for words in ["Rewritten", "Model", "part_"] {
        browser.click("#window .jump", words).await;
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
    assert!(bill.contains(&format!("{percent} %")) && bill.contains(" instead of $"), "{bill}");
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
    for (words, part) in [("tokens", "window"), ("as the model saw them", "files"), ("$", "cost")] {
        browser.click(".sentence .jump", words).await;
        browser.until(part, &format!("{focused} === '{part}'")).await;
    }
    browser.click("#files td button", "part_").await;
    browser.sees("all files").await;
    browser.click(".tabs button", "Window").await;
    browser.click("#taken td button", "tool output").await;
    browser.until("the block", "document.querySelector('.detail .text pre')?.innerText.length > 0").await;
    browser.keys(crate::driver::ESCAPE).await;
    browser.until("no block", "!document.querySelector('.detail')").await;
    // The picture of the conversation opens requests.
    let before = browser.address().await;
    browser
        .run("document.querySelector('.stack').dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: document.querySelector('.stack').getBoundingClientRect().left + 2}))")
        .await;
    browser.sees("Request 1").await;
    assert_ne!(browser.address().await, before);
    // What the picture says is also in a table.
    browser.click("summary", "As a table").await;
    browser.click(".behind-picture td a", "3").await;
    browser.sees("Request 3").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

/// Where the parts of the page are that are read from the top.
async fn places(browser: &Browser) -> serde_json::Value {
    browser
        .run("return ['.heading', '.sentence', '#overview', '#window', '#requests-0'].map((one) => [one, document.querySelector(one).getBoundingClientRect().top])")
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
    browser.sees("Request 5").await;
    browser.until("the sentence", "document.querySelector('.sentence')").await;
    browser.until("its answer", "document.querySelector('#cost')?.innerText.includes('reported')").await;
    // Somebody has scrolled back to the first request, and reads there.
    browser.run("document.getElementById('requests').scrollTop = 0").await;
    let before = places(&browser).await;
    let count = scene.play(10).await;
    browser.sees(&format!("{} newer", count - 5)).await;
    let heading = browser.run("return document.querySelector('.heading h2').innerText").await;
    assert_eq!(heading, "Request 5");
    assert_eq!(places(&browser).await, before);
    let cost = read(&browser, "#cost").await;
    assert!(cost.contains("reported") && !cost.contains("simulated"), "{cost}");
    browser.click("button.newer", "newer").await;
    browser.sees(&format!("Request {count}")).await;
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
    browser.click("#requests [role=option]", "fold:").await;
    browser.until("the sentence", "document.querySelector('.sentence')").await;
    let wide = browser.run("return [document.documentElement.scrollWidth, innerWidth]").await;
    assert!(wide[0].as_u64() <= wide[1].as_u64(), "{wide}");
}
