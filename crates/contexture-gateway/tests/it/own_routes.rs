//! The gateway's own routes, and who may ask for them.

use contexture::wire::Format;
use contexture_gateway::Options;

use super::played::{long, play_some, records, small};
use super::provider::Provider;

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let client = reqwest::Client::new();
    let url = format!("{}/v1/messages", gateway.url());
    for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example"), ("origin", "null")] {
        let answer = client.post(&url).header(name, value).body("{}").send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 403, "{name}: {value}");
    }
    assert!(provider.got().is_empty(), "nothing of it reached the provider");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_own_routes_ask_for_the_token() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Chat, 2);
    play_some(&gateway, &provider, &agent, &agent.requests()).await;
    records(&gateway, agent.requests().len()).await;
    let client = reqwest::Client::new();
    for route in ["contexture/status", "contexture/requests", "metrics", "contexture/other"] {
        for base in [gateway.url(), format!("http://{}", gateway.address())] {
            let url = format!("{base}/{route}");
            assert_eq!(client.get(&url).send().await.unwrap().status().as_u16(), 401, "{route}");
            assert_eq!(client.get(&url).bearer_auth("wrong").send().await.unwrap().status().as_u16(), 401, "{route}");
            let in_query = client.get(format!("{url}?token={}", gateway.token())).send().await.unwrap();
            assert_eq!(in_query.status().as_u16(), 401, "{route}");
        }
    }
    let own = |route: &str| client.get(format!("http://{}{route}", gateway.address())).bearer_auth(gateway.token());
    assert_eq!(own("/v1/models").send().await.unwrap().status().as_u16(), 404, "the token is for nothing else");
    let metrics = own("/metrics").send().await.unwrap();
    let text = metrics.text().await.unwrap();
    assert!(
        text.contains(&format!("contexture_requests_total{{mode=\"sent\"}} {}\n", agent.requests().len())),
        "{text}"
    );
}

/// Whether a text is what Prometheus reads: for each name a help, a type and then its samples.
#[track_caller]
fn check_metrics(text: &str) {
    let is_name = |name: &str| {
        name.starts_with("contexture_") && name.bytes().all(|byte| byte.is_ascii_lowercase() || b"_".contains(&byte))
    };
    let mut lines = text.lines();
    let mut names = std::collections::HashSet::new();
    while let Some(help) = lines.next() {
        let (name, words) = help.strip_prefix("# HELP ").unwrap().split_once(' ').unwrap();
        assert!(is_name(name) && words.ends_with('.') && names.insert(name.to_owned()), "{help}");
        assert!(name.ends_with("_total"), "a counter's name ends so: {name}");
        assert_eq!(lines.next().unwrap(), format!("# TYPE {name} counter"));
        let (sample, value) = lines.next().unwrap().rsplit_once(' ').unwrap();
        assert_eq!(sample, format!("{name}{{mode=\"sent\"}}"));
        assert!(value.parse::<f64>().unwrap() >= 0.0, "{sample} {value}");
    }
    assert!(text.ends_with('\n') && names.len() >= 9, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_what_prometheus_reads() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let agent = long(Format::Messages, 10);
    play_some(&gateway, &provider, &agent, &agent.requests()).await;
    records(&gateway, agent.requests().len()).await;
    let request =
        reqwest::Client::new().get(format!("http://{}/metrics", gateway.address())).bearer_auth(gateway.token());
    let answer = request.send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4");
    check_metrics(&answer.text().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn supervisors_are_told_without_a_secret_whether_it_is_alive_and_ready() {
    let provider = Provider::start().await;
    let directory = tempfile::tempdir().unwrap();
    let store = Some(directory.path().join("gateway.db"));
    let gateway = provider.gateway(Options { store, is_supervised: true, ..small() }).await;
    let client = reqwest::Client::new();
    let ask = |method: &str, route: &str| {
        client.request(method.parse().unwrap(), format!("http://{}{route}", gateway.address()))
    };
    for route in ["/contexture/health", "/contexture/ready"] {
        let answer = ask("GET", route).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (200, "ok\n"), "{route}");
        assert_eq!(ask("HEAD", route).send().await.unwrap().status().as_u16(), 200, "{route}");
        // Nothing else is said without a key, and nothing to a page of another site.
        assert_eq!(ask("POST", route).send().await.unwrap().status().as_u16(), 401, "{route}");
        assert_eq!(ask("GET", &format!("{route}/")).send().await.unwrap().status().as_u16(), 401, "{route}");
        for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example")] {
            let answer = ask("GET", route).header(name, value).send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 401, "{route} {name}");
        }
    }
    assert!(provider.got().is_empty(), "nothing of it reached the provider");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_nobody_supervises_says_nothing_without_a_key() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    let client = reqwest::Client::new();
    for route in ["/contexture/health", "/contexture/ready"] {
        let url = format!("http://{}{route}", gateway.address());
        assert_eq!(client.get(&url).send().await.unwrap().status().as_u16(), 401, "{route}");
        let known = client.get(format!("{}{route}", gateway.url())).send().await.unwrap();
        assert_eq!(known.status().as_u16(), 401, "{route}: the key is not for the gateway's own routes");
        let owner = client.get(&url).bearer_auth(gateway.token()).send().await.unwrap();
        assert_eq!(owner.status().as_u16(), 404, "{route}: there is no such route");
    }
    assert!(provider.got().is_empty(), "nothing of it reached the provider");
}
