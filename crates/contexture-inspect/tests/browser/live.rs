//! A person follows an agent that works, and finds out what was done and why.

use serde_json::Value;

use crate::driver::{Browser, DOWN, END, ENTER, ESCAPE, HOME};
use crate::scene::Scene;

/// The text of the first element of a selector.
async fn text(browser: &Browser, selector: &str) -> String {
    let script = format!("document.querySelector({})?.innerText", serde_json::json!(selector));
    browser.until(selector, &script).await.as_str().unwrap().to_owned()
}

async fn number(browser: &Browser, script: &str) -> u64 {
    browser.run(&format!("return ({script})")).await.as_u64().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_follows_a_run_and_finds_a_fold() {
    let mut scene = Scene::new(24).await;
    let browser = Browser::start(1440, 900).await;
    browser.open(&scene.url()).await;
    browser.sees("No request has come yet").await;
    assert!(!browser.address().await.contains("token"));
    scene.play(4).await;
    browser.click("#sessions a", "bring all modules").await;
    browser.sees("Request 4: ").await;
    browser.click("button", "Follow").await;
    let count = scene.play(60).await;
    browser.sees(&format!("Request {count}: ")).await;
    browser.picture("live").await;
    // The next request in which something happened, from the first one on.
    browser.keys("a").await;
    browser.click("nav [role=option]", &count.to_string()).await;
    browser.run("document.getElementById('requests').focus()").await;
    browser.keys(HOME).await;
    browser.sees("Request 1: ").await;
    browser.keys("e").await;
    browser.until("a fold", "document.querySelector('#fold')?.innerText.includes('billed again')").await;
    let why = text(&browser, "#fold").await;
    assert!(why.contains("the window is full") || why.contains("pays"), "{why}");
    assert!(why.contains("every later request costs") && why.contains("paid back"), "{why}");
    browser.picture("fold").await;
    // The three forms, each at its first difference.
    for (key, state) in [("1", "made"), ("2", "left_out"), ("3", "gone")] {
        browser.keys(key).await;
        let shown = format!("document.querySelector('.row.selected .block-{state}, .row.selected .block-shortened')");
        let in_view = format!(
            "(() => {{ const row = {shown}; if (!row) return false; const box = row.getBoundingClientRect(), list = document.getElementById('blocks').getBoundingClientRect(); return box.top >= list.top - 1 && box.bottom <= list.bottom + 1; }})()"
        );
        browser.until(&format!("the first difference of form {key}"), &in_view).await;
        assert_eq!(
            number(&browser, "document.querySelectorAll('.toolbar [aria-label=Form] [aria-pressed=true]').length")
                .await,
            1
        );
    }
    browser.picture("inspector-before").await;
    // A block that is gone, with why.
    browser.run("document.getElementById('blocks').focus()").await;
    browser.keys(ENTER).await;
    browser.until("the block", "document.querySelector('.detail .text pre')?.innerText.length > 0").await;
    browser.picture("block").await;
    browser.keys(ESCAPE).await;
    browser.until("no block", "!document.querySelector('.detail')").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
    scene.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_tools_the_bill_and_words_are_found() {
    let mut scene = Scene::new(12).await;
    let count = scene.play(usize::MAX / 2).await;
    let browser = Browser::start(1440, 900).await;
    browser.open(&scene.url()).await;
    browser.click("#sessions a", "bring all modules").await;
    browser.click(".tabs button", "Files").await;
    browser.click("td button", "module_3.rs").await;
    let history = text(&browser, ".history").await;
    assert!(history.contains("read") && history.contains("changed"), "{history}");
    browser.picture("file").await;
    browser.click(".history li button", "request").await;
    browser.until("the block of the read", "document.querySelector('.detail .text pre')").await;
    browser.click(".tabs button", "Tools").await;
    browser.sees("Read fills the most").await;
    browser.keys("/").await;
    browser.keys("handle_2_9").await;
    browser.keys(ENTER).await;
    browser.until("a hit", "document.querySelector('.hits mark')?.innerText === 'handle_2_9'").await;
    browser.picture("search").await;
    browser.click(".hits a", "module_2").await;
    browser.until("the block", "document.querySelector('.detail .text pre')?.innerText.includes('handle_2_9')").await;
    browser.until("its row", "document.querySelector('.block.open')").await;
    browser.click(".top a", "Bill").await;
    browser.sees("as it came").await;
    let rows = text(&browser, "tbody").await;
    assert!(rows.contains(&count.to_string()), "{rows}");
    browser.picture("bill").await;
    browser.click("td a", "bring all modules").await;
    browser.sees(&format!("Request {count}: ")).await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
    scene.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_pinned_is_kept() {
    let mut scene = Scene::new(24).await;
    scene.play(6).await;
    let browser = Browser::start(1440, 900).await;
    browser.open(&scene.url()).await;
    browser.click("#sessions a", "bring all modules").await;
    browser.sees("Request 6: ").await;
    browser.click("#blocks [role=option]", "cargo test").await;
    browser.click("#pin", "Pin").await;
    browser.until("the pin", "document.querySelector('#pin')?.innerText === 'Pinned'").await;
    let id: u64 = browser
        .run("return Number(new URLSearchParams(location.hash.split('?')[1]).get('block'))")
        .await
        .as_u64()
        .unwrap();
    let count = scene.play(usize::MAX / 2).await;
    let folds: Vec<Value> = scene
        .gateway
        .records()
        .iter()
        .flat_map(|record| record.decided.clone())
        .filter(|note| note.is_fold())
        .map(|note| serde_json::json!(note.reason))
        .collect();
    assert!(!folds.is_empty(), "nothing was folded, so nothing was kept");
    browser.run(&format!("location.hash = location.hash.replace(/\\/\\d+\\?/, '/{count}?')")).await;
    browser.sees(&format!("Request {count}: ")).await;
    browser.until("the pinned block in the newest window", &format!("(() => {{ const open = document.querySelector('.block.open.block-kept'); return open && location.hash.includes('block={id}') && open.innerText.includes('pinned'); }})()")).await;
    browser.click("button", "No new folds").await;
    browser.sees("asked for in the inspector").await;
    browser.click("button", "Forget").await;
    browser.click("dialog button", "Forget it").await;
    browser.sees("No request has come yet").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
    scene.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_reached_by_keys() {
    let mut scene = Scene::new(24).await;
    scene.play(usize::MAX / 2).await;
    let browser = Browser::start(1440, 900).await;
    browser.open(&scene.url()).await;
    browser.sees("bring all modules").await;
    let focused = "document.activeElement?.id || document.activeElement?.tagName";
    // The first key works: the newest session has the focus.
    browser.until("the focus", "document.activeElement?.closest('#sessions')").await;
    browser.keys(ENTER).await;
    browser.sees("the model sees").await;
    browser.keys("a").await;
    for _ in 0..16 {
        if browser.run(&format!("return {focused}")).await == "requests" {
            break;
        }
        browser.keys(crate::driver::TAB).await;
    }
    browser.keys(HOME).await;
    browser.sees("Request 1: ").await;
    browser.keys(DOWN).await;
    browser.sees("Request 2: ").await;
    browser.keys("j").await;
    browser.sees("Request 3: ").await;
    browser.keys("[").await;
    browser.sees("Request 2: ").await;
    browser.keys(END).await;
    browser.sees(&format!("Request {}: ", scene.len())).await;
    browser.keys("2").await;
    browser
        .until("as it came", "document.querySelector('#blocks')?.getAttribute('aria-label') === 'Blocks, as it came'")
        .await;
    browser.keys("o").await;
    browser.until("by size", "location.hash.includes('order=size')").await;
    for _ in 0..16 {
        if browser.run(&format!("return {focused}")).await == "blocks" {
            break;
        }
        browser.keys(crate::driver::TAB).await;
    }
    browser.keys(DOWN).await;
    browser.keys(ENTER).await;
    browser.until("the block", "document.querySelector('.detail .text pre')").await;
    browser.keys(ESCAPE).await;
    browser.until("no block", "!document.querySelector('.detail')").await;
    browser.keys("?").await;
    browser.sees("first difference").await;
    browser.keys(ESCAPE).await;
    browser.keys("$").await;
    browser.sees("as it came").await;
    browser.keys("c").await;
    browser.until("the sessions", "document.getElementById('sessions')").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
    scene.gateway.stop().await;
}
