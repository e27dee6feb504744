//! The token of the inspector and the key of the gateway are told to nobody.

use contexture::wire::Format;
use contexture_gateway::{Gateway, Options};

use super::agent::Agent;
use super::inspected::inspected;
use super::played::records;
use super::provider::{Provider, path_of, patient, post};

/// The URL of a gateway without its key.
fn bare(gateway: &Gateway) -> String {
    format!("http://{}", gateway.address())
}

fn secret(gateway: &Gateway) -> String {
    gateway.url().rsplit('/').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_the_inspectors_never_reaches_the_provider() {
    let provider = Provider::start().await;
    let (gateway, inspector) = inspected(&provider, patient()).await;
    let inspect_url = inspector.inspector().url();
    let (page, token) = inspect_url.split_once("/inspect/#token=").unwrap();
    assert_ne!(page, bare(&gateway), "it has a listener of its own");
    assert!(token != secret(&gateway) && token != gateway.token());
    let client = reqwest::Client::new();
    let ask = || {
        let body = Agent::new(Format::Chat, "hello").request(1, false);
        client.post(format!("{}{}", gateway.url(), path_of(Format::Chat))).body(body)
    };
    let bearer = format!("Bearer {token}");
    for (name, value) in [("authorization", bearer.as_str()), ("x-api-key", token), ("cookie", token), ("x-odd", token)]
    {
        assert_eq!(ask().header(name, value).send().await.unwrap().status().as_u16(), 400, "{name}");
    }
    let in_query = client.get(format!("{}/v1/models?token={token}", gateway.url())).send().await.unwrap();
    assert_eq!(in_query.status().as_u16(), 400);
    let status = ask().bearer_auth(gateway.token()).send().await.unwrap().status().as_u16();
    assert_eq!(status, 400, "nor does the token for the gateway's own routes");
    assert!(provider.got().is_empty(), "nothing of it reached the provider");
    // A cookie of an inspector that ran here before.
    let request = ask().header("cookie", "one=1; contexture_7717=an-old-token; two=2");
    assert_eq!(request.send().await.unwrap().status().as_u16(), 200);
    assert_eq!(provider.last().headers["cookie"], "one=1; two=2");
    // The gateway's key opens nothing of the inspector.
    let key = secret(&gateway);
    let asked = client.get(format!("{page}/api/v1/conversations")).bearer_auth(&key).send().await.unwrap();
    assert_eq!(asked.status().as_u16(), 401);
    let asked = client.get(format!("{page}/{key}/api/v1/conversations")).send().await.unwrap();
    assert_eq!(asked.status().as_u16(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_prints_its_variables_does_not_have_the_key_kept() {
    let directory = tempfile::tempdir().unwrap();
    let provider = Provider::start().await;
    let options = Options { store: Some(directory.path().join("gateway.db")), ..patient() };
    let (gateway, _inspector) = inspected(&provider, options).await;
    let mut agent = Agent::new(Format::Messages, "Which variables are set?");
    let printed = format!("ANTHROPIC_BASE_URL={}/anthropic\nTERM=dumb", gateway.url());
    agent.call("I look.", "Bash", serde_json::json!({"command": "env"}), &printed);
    for at in agent.requests() {
        assert_eq!(post(&gateway, Format::Messages, agent.request(at, false)).await.0, 200);
    }
    let key = secret(&gateway);
    records(&gateway, agent.requests().len()).await;
    gateway.stop().await;
    let files: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().path()).collect();
    let texts: Vec<String> =
        files.iter().map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()).collect();
    assert!(texts.iter().any(|text| text.contains("TERM=dumb")), "what it printed is there");
    assert!(texts.iter().all(|text| !text.contains(&key)), "without the key");
}
