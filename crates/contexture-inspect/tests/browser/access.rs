//! Small screens, dark and light, and what a machine can say of accessibility.

use serde_json::{Value, json};

use crate::driver::Browser;
use crate::scene::Scene;

/// Where axe-core is, after `npm ci`.
const AXE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/inspector/node_modules/axe-core/axe.min.js");

const CHECK: &str = "const done = arguments[arguments.length - 1];
    axe.run(document, {resultTypes: ['violations']}).then((result) => done(result.violations.map((one) =>
        one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + ' ' + node.any.map((any) => any.message).join(' ')).join(' | '))),
        (error) => done([String(error)]));";

/// Has axe-core look at the page.
async fn check(browser: &Browser, what: &str) {
    let axe = std::fs::read_to_string(AXE).expect("axe-core is there: run `npm ci` in `inspector/`");
    browser.run(&format!("if (!window.axe) {{ {axe} }}")).await;
    let violations = browser.run_later(CHECK, json!([])).await;
    assert_eq!(violations, json!([]), "{what}");
}

/// Every view of the page, by what opens it.
async fn views(url: &str, browser: &Browser) -> Vec<(&'static str, String, &'static str)> {
    browser.open(url).await;
    browser.sees("bring all modules").await;
    let base = browser.address().await;
    let base = base.split('#').next().unwrap().to_owned();
    let id = "fetch('/api/v1/conversations', {headers: {authorization: 'Bearer ' + sessionStorage.getItem('contexture-token')}}).then((answer) => answer.json()).then((page) => arguments[arguments.length - 1](page.items[0].id))";
    let id = browser.run_later(id, json!([])).await.as_str().unwrap().to_owned();
    let view = |name, path: String, sees| (name, format!("{base}#/{path}"), sees);
    vec![
        view("home", String::new(), "bring all modules"),
        view("requests", format!("c/{id}"), "what happened"),
        view("all requests", format!("c/{id}?list=all"), "show what happened"),
        view("request", format!("c/{id}/40"), "Request 40: "),
        view("before", format!("c/{id}/40?form=before"), "unchanged"),
        view("block", format!("c/{id}/40?block=20&form=came"), "first in"),
        view("files", format!("c/{id}/40?tab=files"), "module_3.rs"),
        view("history", format!("c/{id}/40?tab=files&path=/project/src/module_3.rs"), "all files"),
        view("tools", format!("c/{id}/40?tab=tools"), "Bash"),
        view("bill", "bill?by=model".to_owned(), "paid"),
        view("search", "search?q=handle_2".to_owned(), "Search for"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_is_accessible_in_light_and_dark() {
    let mut scene = Scene::new(24).await;
    scene.play(usize::MAX / 2).await;
    let browser = Browser::start(1440, 900).await;
    for scheme in ["light", "dark"] {
        browser.prefer(scheme, "no-preference").await;
        for (name, url, sees) in views(&scene.url(), &browser).await {
            browser.open(&url).await;
            let sees = if name == "before" { "Against the request before" } else { sees };
            browser.sees(sees).await;
            tokio::time::sleep(std::time::Duration::from_millis(150)).await;
            check(&browser, &format!("{name}, {scheme}")).await;
            browser.picture(&format!("{name}-{scheme}")).await;
        }
    }
    assert_eq!(browser.complaints().await, Vec::<String>::new());
    scene.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_fits_a_small_screen() {
    let mut scene = Scene::new(24).await;
    scene.play(usize::MAX / 2).await;
    let browser = Browser::start(360, 740).await;
    for (name, url, sees) in views(&scene.url(), &browser).await {
        browser.open(&url).await;
        let sees = if name == "before" { "Against the request before" } else { sees };
        browser.sees(sees).await;
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        let wide = browser.run("return [document.documentElement.scrollWidth, innerWidth]").await;
        assert!(wide[0].as_u64() <= wide[1].as_u64() && wide[1] == 360, "{name}: {wide}");
        if name == "bill" {
            // What was paid is seen without scrolling aside.
            let paid = "(() => { const box = document.querySelector('tbody td:nth-child(2)'); return box.innerText.startsWith('$') && box.getBoundingClientRect().right <= innerWidth; })()";
            browser.until("dollars in view", paid).await;
        }
        check(&browser, &format!("{name}, small")).await;
        browser.picture(&format!("{name}-small")).await;
    }
    // One thing at a time, with a way back.
    let url = views(&scene.url(), &browser).await[1].1.clone();
    browser.open(&url).await;
    browser.click("#requests [role=option]", "folded to").await;
    browser.sees("billed again").await;
    browser.click("#blocks [role=option]", "").await;
    browser.until("the block", "document.querySelector('.detail .text pre')").await;
    browser.click("button.close", "").await;
    browser.click("button.back", "requests").await;
    browser.until("the requests", "document.getElementById('requests')?.getClientRects().length").await;
    scene.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_moves_for_those_who_want_it_so() {
    let mut scene = Scene::new(2).await;
    scene.play(2).await;
    let browser = Browser::start(1200, 800).await;
    browser.open(&scene.url()).await;
    browser.sees("bring all modules").await;
    let moving = "return document.getAnimations().length";
    browser.prefer("light", "no-preference").await;
    assert_ne!(browser.run(moving).await, Value::from(0));
    browser.prefer("light", "reduce").await;
    assert_eq!(browser.run(moving).await, Value::from(0));
    scene.gateway.stop().await;
}
