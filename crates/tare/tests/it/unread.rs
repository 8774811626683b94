//! Workloads whose output is never decoded, for tests of the engine alone.

use crate::prelude::*;

use tare_model::Path;

type MakeRecipe = fn(&str, &Params) -> Result<Recipe, ParamError>;

/// A workload with a recipe that follows from its name, and without a decoder.
pub(crate) struct Unread {
    declared: Declared,
    recipe: MakeRecipe,
}

/// Returns the declaration of a workload with only a name.
pub(crate) const fn nameless(id: &'static str) -> Declared {
    Declared {
        id,
        about: "Made up.",
        params: &[],
        metrics: &[],
    }
}

/// Returns workloads of these names.
pub(crate) const fn unread<const N: usize>(
    ids: [&'static str; N],
    recipe: MakeRecipe,
) -> [Unread; N] {
    let mut all = [const {
        Unread {
            declared: nameless(""),
            recipe: |_, _| unreachable!(),
        }
    }; N];
    let mut at = 0;
    while at < N {
        all[at] = Unread {
            declared: nameless(ids[at]),
            recipe,
        };
        at += 1;
    }
    all
}

/// Returns the workload of this name.
pub(crate) fn find(all: &'static [Unread], id: &str) -> Option<&'static dyn Workload> {
    let found = all.iter().find(|workload| workload.id() == id)?;
    Some(found)
}

impl Workload for Unread {
    fn declared(&self) -> &Declared {
        &self.declared
    }

    fn recipe(&self, params: &Params, _: Option<Path>) -> Result<Recipe, ParamError> {
        (self.recipe)(self.declared.id, params)
    }

    fn decode(&self, _: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        panic!("the engine does not read what a trial left");
    }
}
