//! The additional instances of an arm, for workloads that run in several at once.

use tare_model::{Reason, Spread};

use crate::cx::memory;
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

    /// Why `count` idle instances do not fit into the memory that is available, by the size of the first one; names
    /// how many do.
    pub(super) fn does_not_fit(&self, count: u32) -> Option<Reason> {
        let each = self.instances.first()?.charged().memory_bytes()?;
        shortage(count, each, memory::available_bytes()?)
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

/// Why `count` instances of `each` bytes do not fit, of which the first one runs already.
fn shortage(count: u32, each: u64, available: u64) -> Option<Reason> {
    const MIB: u64 = 1 << 20;
    let fitting = 1 + available / SPARED / each.max(1);
    (u64::from(count) > fitting).then(|| {
        Reason::NoEnvironment(format!(
            "{count} idle ones need about {} MiB each, and {} MiB of memory are available, of which half is spared: `held` up to {fitting} fits",
            each.div_ceil(MIB),
            available / MIB
        ))
    })
}

/// The part of the available memory that idle instances may take, as a divisor.
const SPARED: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_instances_are_refused_with_the_most_that_fit() {
        const MIB: u64 = 1 << 20;
        assert_eq!(shortage(5, 100 * MIB, 1_000 * MIB), None);
        let Some(Reason::NoEnvironment(why)) = shortage(16, 100 * MIB, 1_000 * MIB) else {
            panic!("sixteen fit");
        };
        assert!(why.ends_with("`held` up to 6 fits"), "{why}");
    }
}
