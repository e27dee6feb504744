//! The layers of an execution in their two orders.

use serde_json::Value;

use crate::error::SpecError;
use crate::layer::LayerRef;
use crate::schema::Schema;
use crate::window::{Overflow, ProjectionPolicy};

/// Layers by registration and by slot.
#[derive(Clone)]
pub(crate) struct Roster {
    layers: Vec<LayerRef>,
    by_slot: Vec<usize>,
}

impl Roster {
    /// Checks every layer, alone and together with the others.
    pub(crate) fn new(layers: Vec<LayerRef>) -> Result<Self, SpecError> {
        for (index, layer) in layers.iter().enumerate() {
            check_layer(layer)?;
            let id = &layer.spec().id;
            if layers[..index].iter().any(|other| other.spec().id == *id) {
                return Err(SpecError::layer(id.as_str(), "id", "is used by another layer too"));
            }
            let owner = layers[..index].iter().find(|other| other.spec().owns_history);
            if let Some(owner) = owner.filter(|_| layer.spec().owns_history) {
                let owner = &owner.spec().id;
                let problem = format!(
                    "is said by layer `{owner}` too, and each would undo what the other shows\nhint: use one of them"
                );
                return Err(SpecError::layer(id.as_str(), "owns_history", problem));
            }
        }
        let mut by_slot: Vec<usize> = (0..layers.len()).collect();
        // A stable sort: ties keep the order of registration.
        by_slot.sort_by_key(|index| layers[*index].spec().slot);
        Ok(Self { layers, by_slot })
    }

    /// Adds a layer, registered last.
    pub(crate) fn with(&self, layer: LayerRef) -> Result<Self, SpecError> {
        let mut layers = self.layers.clone();
        layers.push(layer);
        Self::new(layers)
    }

    /// Checks that no policy cuts the result of a layer that owns history.
    pub(crate) fn check_policy(&self, policy: &ProjectionPolicy) -> Result<(), SpecError> {
        let owner = self.layers.iter().map(|layer| layer.spec()).find(|spec| spec.owns_history);
        let Some(owner) = owner.filter(|_| policy.overflow == Overflow::SlidingWindow) else { return Ok(()) };
        let problem = format!(
            "is `sliding_window`, which would cut what layer `{}` keeps of the past, and what people said in it\n\
             hint: use `truncate`; the layer keeps the past within the window by itself",
            owner.id
        );
        Err(SpecError::other("projection policy", "overflow", problem))
    }

    pub(crate) fn by_slot(&self) -> impl DoubleEndedIterator<Item = &LayerRef> {
        self.by_slot.iter().map(|index| &self.layers[*index])
    }

    pub(crate) fn by_registration(&self) -> impl DoubleEndedIterator<Item = &LayerRef> {
        self.layers.iter()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&LayerRef> {
        self.layers.iter().find(|layer| layer.spec().id.as_str() == id)
    }
}

fn check_layer(layer: &LayerRef) -> Result<(), SpecError> {
    let spec = layer.spec();
    spec.validate()?;
    let id = spec.id.as_str();
    for schema in &spec.item_schemas {
        let field = format!("item_schemas.{}", schema.item_type);
        check_schema(id, &field, &schema.schema)?;
    }
    let mut names: Vec<&str> = layer.data_names();
    names.extend(layer.functions().iter().map(|function| function.name.as_str()));
    for (index, name) in names.iter().enumerate() {
        let field = format!("provides.{name}");
        if name.is_empty() {
            return Err(SpecError::layer(id, "provides", "has an entry without a name"));
        }
        if names[..index].contains(name) {
            return Err(SpecError::layer(id, &field, "is declared twice"));
        }
    }
    for function in layer.functions().iter().filter(|function| function.given) {
        for (part, schema) in [("input", &function.input), ("output", &function.output)] {
            check_schema(id, &format!("provides.{}.{part}", function.name), schema)?;
        }
    }
    Ok(())
}

fn check_schema(layer: &str, field: &str, schema: &Value) -> Result<(), SpecError> {
    let refuse = |problem| SpecError::layer(layer, field, format!("is not a schema: {problem}"));
    Schema::new(schema).map(|_| ()).map_err(refuse)
}
