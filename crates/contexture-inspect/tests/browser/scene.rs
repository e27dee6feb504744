//! What the tests look at.

use contexture::transcript::Record;
use contexture::wire::Format;
use contexture_gateway::simulate::played::Played;
use contexture_gateway::{Gateway, Options};
use contexture_inspect::view::About;
use contexture_inspect::{AnnouncedRecording, Archive, InspectServer, inspector_of_gateway, playing};

use crate::agent::Agent;
use crate::provider::{Provider, patient, post};

/// An agent that works on some files for a while.
pub fn agent(rounds: usize) -> Agent {
    let mut agent = Agent::new(Format::Messages, "Please bring all modules to the newest version.");
    for round in 0..rounds {
        agent.work(round);
        if round % 6 == 5 {
            agent.say(&format!(
                "Good. Now part {round}: keep the names as they are, and run the tests after each change."
            ));
        }
    }
    agent
}

/// A gateway that shows what passes, with a provider behind it.
pub struct Scene {
    pub gateway: Gateway,
    server: InspectServer,
    pub agent: Agent,
    requests: Vec<usize>,
    played: usize,
}

impl Scene {
    pub async fn new(rounds: usize) -> Self {
        let provider = Provider::start().await;
        let server = inspector_of_gateway(None).await.unwrap();
        let watchers = vec![server.inspector().clone() as _];
        let gateway = provider.gateway(Options { watchers, budget: Some(16_000), ..patient() }).await;
        let agent = agent(rounds);
        let requests = agent.requests();
        Self { gateway, server, agent, requests, played: 0 }
    }

    pub fn url(&self) -> String {
        self.server.inspector().url()
    }

    /// Has the agent make some more requests. Returns how many were made so far.
    pub async fn play(&mut self, count: usize) -> usize {
        let end = (self.played + count).min(self.requests.len());
        for at in &self.requests[self.played..end] {
            let (status, answer) = post(&self.gateway, self.agent.format, self.agent.request(*at, true)).await;
            assert_eq!(status, 200, "{answer}");
        }
        for _ in 0..1_000 {
            if self.gateway.records().len() >= end {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        self.played = end;
        end
    }

    pub fn len(&self) -> usize {
        self.requests.len()
    }
}

/// Recordings as they are shown, played to their end.
pub async fn recorded(recordings: &[(&str, Vec<Record>)], budget: u64) -> InspectServer {
    let about = About {
        version: env!("CARGO_PKG_VERSION"),
        name: "recordings".to_owned(),
        kind: "recordings",
        is_live: false,
        can_act: false,
        can_forget: false,
        ..About::default()
    };
    let server = InspectServer::start("127.0.0.1:0", Archive::temporary().unwrap(), about).await.unwrap();
    for (number, (name, records)) in recordings.iter().enumerate() {
        let id = format!("r{}", number + 1);
        let recording = AnnouncedRecording { id: &id, name, ..AnnouncedRecording::default() };
        server.inspector().archive().announce(&recording).unwrap();
        playing::play(server.inspector(), &Played::new(Some(budget)), &id, records).unwrap();
        server.inspector().is_read(&id);
    }
    server
}
