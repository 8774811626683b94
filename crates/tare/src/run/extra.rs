//! The additional instances of an arm, for workloads that run in several at once.

use tare_model::{Reason, Spread};

use crate::env::Instance;

/// The additional instances of an arm.
#[derive(Default)]
pub(super) struct Extra {
    /// How many there should be.
    pub(super) wanted: u32,
    pub(super) instances: Vec<Box<dyn Instance>>,
    /// Why there are fewer, if there are.
    pub(super) shortage: Option<Reason>,
}

impl Extra {
    /// No instances yet; `wanted` are started with the arm.
    pub(super) fn new(wanted: u32) -> Self {
        Self {
            wanted,
            ..Self::default()
        }
    }

    /// The instances for `count` workers: only `first` for processes, otherwise one per worker.
    pub(super) fn ends<'a>(
        &'a mut self,
        first: &'a mut dyn Instance,
        spread: Spread,
        count: u32,
    ) -> Result<Vec<&'a mut dyn Instance>, Reason> {
        let needed = match spread {
            Spread::Processes => 0,
            Spread::Environments => count.saturating_sub(1) as usize,
        };
        if self.instances.len() < needed {
            return Err(self
                .shortage
                .clone()
                .unwrap_or_else(|| Reason::NoEnvironment("its instances are not running".into())));
        }
        let mut ends = vec![first];
        for instance in &mut self.instances[..needed] {
            ends.push(instance.as_mut());
        }
        Ok(ends)
    }
}
