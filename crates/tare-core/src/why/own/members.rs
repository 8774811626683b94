//! Whether each member of a set that was found is needed for what the set carries.
//!
//! A set of several can be put together on the way by one round that saw nothing where there was something: then it
//! holds what is harmless beside what is not. So a set is proved beside itself without each of its members, in the
//! same blocks, and what comes back with a member is what the member carries. A set stands only where every member
//! carries something in it; where one carries nothing, what is left without it is told in its place; and where that
//! was not decided, its members are said not to be told apart.
//! Pure: what was measured comes in as shares.
//! What it cannot see: a member that carries less than what makes a set hot.

use super::super::search::{LEAST_SHARE, Shown};

/// What a proof showed of a set without one of its members.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rest {
    /// What comes back of the cost with the member; `None` where too few blocks have both.
    pub(super) back: Option<Shown>,
    /// What goes with the rest alone, if that is surely some: its share of the cost.
    pub(super) carries: Option<f64>,
    /// Whether the rest is proved by itself.
    pub(super) is_proved: bool,
}

/// What becomes of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// All of it is needed.
    Whole,
    /// What carries the cost is told without it: the rest without a member that is not needed, or its members, of
    /// which each carries a part by itself.
    Told,
    /// These could not be told apart from the others.
    Open(Vec<String>),
}

/// The same set, whatever the order in which it was found.
pub(super) fn sorted(set: &[String]) -> Vec<String> {
    let mut set = set.to_vec();
    set.sort();
    set.dedup();
    set
}

/// A set without one of its members.
pub(super) fn without_one(set: &[String], member: &str) -> Vec<String> {
    let mut rest = sorted(set);
    rest.retain(|id| id != member);
    rest
}

/// What is tried to prove these sets: each of them, and then those of several without each of their members, as far
/// as there is room.
pub(super) fn tries(sets: &[Vec<String>], room: usize) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for set in sets.iter().map(|set| sorted(set)).take(room) {
        if !all.contains(&set) {
            all.push(set);
        }
    }
    for set in all.clone() {
        // Without all of its rests nothing is known of the set, so that a part of them is of no use.
        let rests: Vec<Vec<String>> = set
            .iter()
            .map(|member| without_one(&set, member))
            .filter(|rest| !rest.is_empty() && !all.contains(rest))
            .collect();
        if set.len() > 1 && all.len() + rests.len() <= room {
            all.extend(rests);
        }
    }
    all
}

/// Whether a set, or what is left of it without a member, is still to be tried.
pub(super) fn is_open(set: &[String], is_tried: impl Fn(&[String]) -> bool) -> bool {
    let mut rests = set.iter().map(|member| without_one(set, member));
    !is_tried(set) || rests.any(|rest| !rest.is_empty() && !is_tried(&rest))
}

/// What becomes of a set of several; `rest` tells what it showed without a member, if that was tried.
pub(super) fn fate(set: &[String], rest: impl Fn(&str) -> Option<Rest>) -> Fate {
    let rests: Vec<(&String, Option<Rest>)> =
        set.iter().map(|member| (member, rest(member))).collect();
    let is_needed = |rest: &Option<Rest>| {
        let back = rest.and_then(|rest| rest.back);
        back.is_some_and(Shown::is_hot)
    };
    if rests
        .iter()
        .any(|(_, rest)| !is_needed(rest) && rest.is_some_and(|rest| rest.is_proved))
    {
        return Fate::Told;
    }
    let open: Vec<String> = rests
        .iter()
        .filter(|(_, rest)| !is_needed(rest))
        .map(|(member, _)| (*member).clone())
        .collect();
    if !open.is_empty() {
        return Fate::Open(open);
    }
    // Each of two carries a part by itself: then they are two causes, and no set.
    let by_itself = |rest: &Option<Rest>| {
        let carries = rest.and_then(|rest| rest.carries);
        carries.is_some_and(|share| share >= LEAST_SHARE)
    };
    if set.len() == 2 && rests.iter().all(|(_, rest)| by_itself(rest)) {
        return Fate::Told;
    }
    Fate::Whole
}

/// What a set comes down to by what a proof showed: itself without all members that carried nothing in it. `None`
/// where every member does, or where it is not known; where no member does, each keeps the cost down alone, and one
/// is left out.
pub(super) fn reduced(set: &[String], back: impl Fn(&str) -> Option<Shown>) -> Option<Vec<String>> {
    let is_idle = |member: &&String| back(member).is_some_and(|shown| !shown.is_hot());
    let idle: Vec<&String> = set.iter().filter(is_idle).collect();
    let last = idle.last()?;
    let left: Vec<String> = set
        .iter()
        .filter(|member| !idle.contains(member))
        .cloned()
        .collect();
    let left = if left.is_empty() {
        without_one(set, last)
    } else {
        sorted(&left)
    };
    (!left.is_empty() && left.len() < set.len()).then_some(left)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::super::search::{Item, Probe, Search};
    use super::*;

    fn set(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn shown(share: f64) -> Shown {
        Shown {
            low: share - 0.05,
            share,
            high: share + 0.05,
        }
    }

    /// What is told as proved of these sets, where `share` of the cost goes without a set: proofs with `room` arms
    /// until nothing is left to prove, judged as a stored run is.
    fn proved(
        mut sets: Vec<Vec<String>>,
        room: usize,
        share: impl Fn(&[String]) -> f64,
    ) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
        let mut tried: BTreeMap<Vec<String>, f64> = BTreeMap::new();
        for _ in 0..9 {
            let now = tries(&sets, room);
            tried.extend(now.into_iter().map(|set| (set.clone(), share(&set))));
            let back = |set: &[String], member: &str| {
                let rest = tried.get(&without_one(set, member))?;
                Some(shown(share(set) - rest))
            };
            sets = sets
                .iter()
                .filter(|set| set.len() > 1)
                .filter_map(|set| reduced(&sorted(set), |member| back(&sorted(set), member)))
                .filter(|set| is_open(set, |set| tried.contains_key(set)))
                .collect();
            if sets.is_empty() {
                break;
            }
        }
        let (mut proved, mut open) = (Vec::new(), Vec::new());
        for (set, of_set) in tried.iter().filter(|(_, share)| **share >= 0.5) {
            let rest = |member: &str| {
                let of_rest = *tried.get(&without_one(set, member))?;
                Some(Rest {
                    back: Some(shown(of_set - of_rest)),
                    carries: Some(of_rest).filter(|share| *share > 0.05),
                    is_proved: of_rest >= 0.5,
                })
            };
            match fate(set, rest) {
                _ if set.len() == 1 => proved.push(set.clone()),
                Fate::Whole => proved.push(set.clone()),
                Fate::Open(_) => open.push(set.clone()),
                Fate::Told => {}
            }
        }
        (proved, open)
    }

    #[test]
    fn of_one_that_harms_and_harmless_ones_only_the_one_is_proved() {
        let share = |without: &[String]| f64::from(u8::from(without.contains(&"harms".into())));
        for harmless in [
            &["a"][..],
            &["a", "b"],
            &["a", "b", "c"],
            &["a", "b", "c", "d"],
        ] {
            let found = [&["harms"], harmless].concat();
            let (proved, open) = proved(vec![set(&found)], 6, share);
            assert_eq!(proved, [set(&["harms"])], "{harmless:?}");
            // What was narrowed down on the way is told as nothing.
            assert!(open.iter().all(|it| it.len() < found.len()), "{open:?}");
        }
    }

    #[test]
    fn a_set_of_which_either_keeps_the_cost_up_stands_whole_and_loses_harmless_members() {
        let share = |without: &[String]| {
            let has = |name: &str| without.contains(&name.to_owned());
            f64::from(u8::from(has("x") && has("y")))
        };
        assert_eq!(
            proved(vec![set(&["y", "x"])], 3, share),
            (vec![set(&["x", "y"])], vec![])
        );
        let (proved, _) = proved(vec![set(&["y", "a", "x"])], 6, share);
        assert_eq!(proved, [set(&["x", "y"])]);
    }

    #[test]
    fn two_that_harm_only_together_are_each_told_and_not_as_a_set() {
        let share = |without: &[String]| {
            let has = |name: &str| without.contains(&name.to_owned());
            f64::from(u8::from(has("x") || has("y")))
        };
        assert_eq!(
            proved(vec![set(&["x", "y"])], 3, share).0,
            [set(&["x"]), set(&["y"])]
        );
    }

    #[test]
    fn two_that_harm_by_themselves_are_two_causes_and_no_set() {
        let share = |without: &[String]| {
            let has = |name: &str| f64::from(u8::from(without.contains(&name.to_owned())));
            0.55 * has("x") + 0.45 * has("y")
        };
        let (proved, open) = proved(vec![set(&["x", "y"])], 3, share);
        assert_eq!(proved, [set(&["x"])]);
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn a_set_whose_members_could_not_be_tried_is_not_told_apart() {
        let found = set(&["x", "y"]);
        assert_eq!(fate(&found, |_| None), Fate::Open(found.clone()));
        assert_eq!(
            tries(std::slice::from_ref(&found), 2),
            std::slice::from_ref(&found)
        );
        assert_eq!(tries(std::slice::from_ref(&found), 3).len(), 3);
        let unclear = Rest {
            back: None,
            carries: None,
            is_proved: false,
        };
        let rest = |member: &str| {
            Some(Rest {
                back: (member == "x").then(|| shown(0.9)),
                ..unclear
            })
        };
        assert_eq!(fate(&found, rest), Fate::Open(set(&["y"])));
        assert_eq!(reduced(&found, |_| None), None);
    }

    /// The whole way: a search of which one round is blind puts a harmless member into a set; the proof drops it.
    #[test]
    fn what_a_blind_round_put_into_a_set_is_not_told() {
        let harmful = "d04";
        let items = (0..12).map(|place| Item {
            id: format!("d{place:02}"),
            likelihood: 0.3,
        });
        let mut search = Search::new(items.collect());
        let carries =
            |without: &[String]| f64::from(u8::from(without.contains(&harmful.to_owned())));
        for round in 0..30 {
            let probes = search.probes(6);
            if probes.is_empty() {
                break;
            }
            // Other work on the machine hides the cost at first, in parts and in halves.
            let is_blind = round < 2;
            let results: Vec<(Probe, Option<Shown>)> = probes
                .into_iter()
                .map(|probe| {
                    let share = if is_blind {
                        0.0
                    } else {
                        carries(&probe.without)
                    };
                    (probe, Some(shown(share)))
                })
                .collect();
            search.learn(&results);
        }
        let found: BTreeSet<&String> = search.found().iter().flatten().collect();
        assert!(found.len() > 1, "the search was not misled: {found:?}");
        let (proved, _) = proved(search.found().to_vec(), 6, |without| carries(without));
        assert_eq!(proved, [set(&[harmful])]);
    }
}
