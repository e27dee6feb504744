//! A gateway with an inspector that watches it.

use contexture_gateway::{Gateway, Options};
use contexture_inspect::{InspectServer, inspector_of_gateway};

use super::provider::Provider;

/// Starts a gateway in front of a provider, and its inspector.
pub async fn inspected(provider: &Provider, mut options: Options) -> (Gateway, InspectServer) {
    let server = inspector_of_gateway(options.store.as_deref()).await.unwrap();
    options.watchers.push(server.inspector().clone());
    (provider.gateway(options).await, server)
}
