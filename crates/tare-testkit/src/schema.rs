//! Validates dossiers and comparisons against their JSON schemas.

use serde_json::Value;

/// A compiled schema.
pub struct Checker {
    schemas: boon::Schemas,
    index: boon::SchemaIndex,
}

impl Checker {
    /// Loads the dossier's schema.
    pub fn of_dossier() -> Self {
        Self::load("dossier-1")
    }

    /// Loads the schema with this name.
    pub fn load(name: &str) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema");
        let file = format!("{folder}/{name}.schema.json");
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.enable_format_assertions();
        let index = compiler.compile(&file, &mut schemas).unwrap();
        Self { schemas, index }
    }

    /// Validates a document; the error says what is wrong.
    pub fn check(&self, dossier: &Value) -> Result<(), String> {
        self.schemas
            .validate(dossier, self.index)
            .map_err(|error| format!("{error:#}"))
    }
}
