//! Contents that want to be more than contents.

use contexture::item::{FunctionCall, Item};
use contexture::transcript::Record;
use serde_json::json;

use crate::driver::Browser;
use crate::scene::recorded;

/// A recording in which everything tries to run, to hide or to be too large.
fn recording() -> Vec<Record> {
    let evil = "<img src=x onerror=\"window.evil=1\"><script>window.evil=1</script><svg onload=window.evil=1>";
    let unseen = "a\u{0}b\u{1b}[31m\u{202e}txt.exe\u{202c}\u{200b}\u{feff}\u{7f}\u{2028}\u{3164}\u{e0041}";
    let right_to_left = "مرحبا بالعالم שלום עולם ";
    let long: String = "x".repeat(1 << 20);
    let mut records = vec![Record::from(Item::user(format!("{evil} {unseen} {right_to_left} 👩‍👩‍👧‍👦🏳️‍🌈")))];
    let names = ["<b>tool</b>", "Read", "Bash", "__proto__", "constructor"];
    for (number, name) in names.iter().cycle().take(14).enumerate() {
        let id = format!("call_{number}<script>");
        let path = format!("/a/{evil}/{right_to_left}.rs");
        let call = FunctionCall::new(&id, name, json!({"file_path": path, "command": evil}).to_string());
        records.push(Record::response(format!("{evil}{unseen}"), [call]));
        let text = match number % 4 {
            0 => long.clone(),
            1 => format!("{}\n", evil.repeat(100)),
            2 => format!("</pre></script>{unseen}{right_to_left}").repeat(50),
            _ => "👩‍👩‍👧‍👦🏳️‍🌈".repeat(2_000),
        };
        records.push(Record::from(Item::output(&id, text)));
    }
    records.push(Record::response("javascript:window.evil=1", []));
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_neither_run_nor_break_the_page() {
    let server = recorded(&[("<script>window.evil=1</script>.jsonl", recording())], 200_000).await;
    let browser = Browser::start(1440, 900).await;
    browser.open(&server.inspector().url()).await;
    browser.until("the conversation", "document.querySelector('#sessions a')").await;
    browser.run("document.querySelector('#sessions a').focus()").await;
    browser.keys(crate::driver::ENTER).await;
    let list = async |what: &str, subject: &str| {
        let script = format!("document.querySelector('#blocks[data-subject*=\"{subject}\"] [role=option]')");
        browser.until(what, &script).await;
    };
    list("the window", "15 sent false").await;
    for (form, subject) in [("1", "sent"), ("2", "came"), ("3", "before"), ("2o", "came true")] {
        browser.keys(form).await;
        list(form, subject).await;
    }
    browser.run("document.getElementById('blocks').focus()").await;
    browser.keys(&format!("{}{}", crate::driver::HOME, crate::driver::ENTER)).await;
    browser.sees("Show more").await;
    for tab in ["Files", "Tools", "Request"] {
        browser.click(".tabs button", tab).await;
    }
    browser.keys("/").await;
    browser.keys("onerror=").await;
    browser.keys(crate::driver::ENTER).await;
    browser.until("hits", "document.querySelectorAll('.hits mark').length").await;
    browser.click(".top a", "Bill").await;
    browser.sees("as it came").await;
    assert_eq!(browser.run("return window.evil ?? null").await, serde_json::Value::Null);
    assert_eq!(browser.run("return document.querySelectorAll('#app img, #app script, #app b b').length").await, 0);
    // What changes how text is read is shown instead of being obeyed.
    let shown = browser
        .run("return /[\\u0000-\\u0008\\u2028-\\u202e\\u3164\\u{e0000}-\\u{e0fff}]/u.test(document.body.innerText)")
        .await;
    assert_eq!(shown, false);
    assert_eq!(browser.complaints().await, Vec::<String>::new());
    let wide = browser.run("return document.documentElement.scrollWidth <= innerWidth").await;
    assert_eq!(wide, true);
}
