//! An exported conversation, opened without a server.

use crate::driver::Browser;
use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn an_export_works_without_a_server() {
    let mut scene = Scene::new(24).await;
    let count = scene.play(usize::MAX / 2).await;
    let url = scene.url();
    let (base, token) = url.split_once("/inspect/#token=").unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let get = async |path: String| {
        client.get(format!("{base}/api/v1/{path}")).bearer_auth(token).send().await.unwrap().text().await.unwrap()
    };
    let list: serde_json::Value = serde_json::from_str(&get("conversations".to_owned()).await).unwrap();
    let html = get(format!("conversations/{}/export", list["items"][0]["id"].as_str().unwrap())).await;
    scene.gateway.stop().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("conversation.html");
    std::fs::write(&file, html).unwrap();
    let browser = Browser::start(1440, 900).await;
    browser.open(&format!("file://{}", file.display())).await;
    browser.sees(&format!("Request {count}: ")).await;
    browser.until("the price", "document.querySelector('#cost')").await;
    assert_eq!(
        browser.run("return document.querySelectorAll('[href*=bill]').length").await,
        0,
        "it has no bill of others"
    );
    browser.run("document.getElementById('requests').focus()").await;
    browser.keys(crate::driver::HOME).await;
    browser.sees("Request 1: ").await;
    browser.keys("e").await;
    browser.sees("billed again").await;
    for (key, state) in [("1", "made"), ("2", "left_out"), ("3", "gone")] {
        browser.keys(key).await;
        let script = format!("document.querySelector('.row.selected .block-{state}, .row.selected .block-shortened')");
        browser.until(&format!("the first difference of form {key}"), &format!("!!{script}")).await;
    }
    browser.run("document.getElementById('blocks').focus()").await;
    browser.keys(crate::driver::ENTER).await;
    browser.until("the block", "document.querySelector('.detail .text pre')?.innerText.length > 0").await;
    // The page may still scroll to the blocks, so that a place on the screen would be missed.
    browser
        .run("[...document.querySelectorAll('.tabs button')].find((one) => one.innerText === 'Files').click()")
        .await;
    browser.click("td button", "module_3.rs").await;
    browser.until("the history", "document.querySelectorAll('.history li').length > 1").await;
    browser.keys("/").await;
    browser.keys(&format!("handle_2_9{}", crate::driver::ENTER)).await;
    browser.until("a hit", "document.querySelector('.hits mark')").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}
