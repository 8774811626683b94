//! Decides whether each member of a set that was found is needed for the set's effect.
//!
//! If one round missed an effect, the search can combine harmless differences with harmful ones. A set is therefore
//! proved together with the same set without each of its members, in the same blocks; what comes back with a member
//! is that member's part. A set is reported only if every member causes a part in it. If one causes nothing, the rest
//! without it is reported instead; if that is undecided, the members are reported as not separated.
//! Pure: measurements are passed in as shares.
//! Limits: misses a member whose part is too small to make a set hot.

use super::super::search::{LEAST_SHARE, MANY, RemovedShare};

/// The result of a set without one of its members.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Remainder {
    /// The share of the slowdown that comes back with the member; `None` if too few blocks have both.
    pub(super) back: Option<RemovedShare>,
    /// The share of the slowdown that the rest alone removes, if surely above zero.
    pub(super) carries: Option<f64>,
    /// Whether the rest is proved by itself.
    pub(super) is_proved: bool,
}

/// The judgement on a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SetVerdict {
    /// All of it is needed.
    Whole,
    /// Superseded: the rest without an unneeded member is reported, or the members, each of which causes a part by
    /// itself.
    Superseded,
    /// These members could not be separated from the others.
    Open(Vec<String>),
}

/// Whether a set has several members, few enough to be taken apart: each takes an arm.
pub(super) fn can_be_taken_apart(set: &[String]) -> bool {
    (2..MANY).contains(&set.len())
}

/// The set in a canonical order.
pub(super) fn sorted(set: &[String]) -> Vec<String> {
    let mut set = set.to_vec();
    set.sort();
    set.dedup();
    set
}

/// The set without one of its members.
pub(super) fn without_one(set: &[String], member: &str) -> Vec<String> {
    let mut rest = sorted(set);
    rest.retain(|id| id != member);
    rest
}

/// The trials that prove these sets: each set, then sets of several without each member, as far as there is room.
pub(super) fn tries(sets: &[Vec<String>], room: usize) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for set in sets.iter().map(|set| sorted(set)).take(room) {
        if !all.contains(&set) {
            all.push(set);
        }
    }
    for set in all.clone().iter().filter(|set| can_be_taken_apart(set)) {
        // A set is judged only with all of its rests, so some of them are useless.
        let rests: Vec<Vec<String>> = set
            .iter()
            .map(|member| without_one(set, member))
            .filter(|rest| !rest.is_empty() && !all.contains(rest))
            .collect();
        if all.len() + rests.len() <= room {
            all.extend(rests);
        }
    }
    all
}

/// Whether a set, or the set without one of its members, still has to be tried.
pub(super) fn is_open(set: &[String], is_tried: impl Fn(&[String]) -> bool) -> bool {
    let mut rests = set.iter().map(|member| without_one(set, member));
    !is_tried(set) || rests.any(|rest| !rest.is_empty() && !is_tried(&rest))
}

/// Judges a set of several; `rest` returns the result without a member, if that was tried.
pub(super) fn fate(set: &[String], rest: impl Fn(&str) -> Option<Remainder>) -> SetVerdict {
    let rests: Vec<(&String, Option<Remainder>)> =
        set.iter().map(|member| (member, rest(member))).collect();
    let is_needed = |rest: &Option<Remainder>| {
        let back = rest.and_then(|rest| rest.back);
        back.is_some_and(RemovedShare::is_hot)
    };
    if rests
        .iter()
        .any(|(_, rest)| !is_needed(rest) && rest.is_some_and(|rest| rest.is_proved))
    {
        return SetVerdict::Superseded;
    }
    let open: Vec<String> = rests
        .iter()
        .filter(|(_, rest)| !is_needed(rest))
        .map(|(member, _)| (*member).clone())
        .collect();
    if !open.is_empty() {
        return SetVerdict::Open(open);
    }
    // If each of two causes a part by itself, they are two causes, not a set.
    let by_itself = |rest: &Option<Remainder>| {
        let carries = rest.and_then(|rest| rest.carries);
        carries.is_some_and(|share| share >= LEAST_SHARE)
    };
    if set.len() == 2 && rests.iter().all(|(_, rest)| by_itself(rest)) {
        return SetVerdict::Superseded;
    }
    SetVerdict::Whole
}

/// The set without all members that caused nothing in it. `None` if every member is needed or that is unknown. If no
/// member is needed, each of them suffices to remove the slowdown, and only one is dropped.
pub(super) fn reduced(
    set: &[String],
    back: impl Fn(&str) -> Option<RemovedShare>,
) -> Option<Vec<String>> {
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

    fn shown(share: f64) -> RemovedShare {
        RemovedShare {
            low: share - 0.05,
            share,
            high: share + 0.05,
        }
    }

    /// The sets reported as proved if `share` of the slowdown goes away without a set: proofs with `room` arms until
    /// nothing is left to prove, judged like a stored run.
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
                Some(Remainder {
                    back: Some(shown(of_set - of_rest)),
                    carries: Some(of_rest).filter(|share| *share > 0.05),
                    is_proved: of_rest >= 0.5,
                })
            };
            match fate(set, rest) {
                _ if set.len() == 1 => proved.push(set.clone()),
                SetVerdict::Whole => proved.push(set.clone()),
                SetVerdict::Open(_) => open.push(set.clone()),
                SetVerdict::Superseded => {}
            }
        }
        (proved, open)
    }

    #[test]
    fn proof_drops_harmless_members_from_set() {
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
            // A set that was reduced on the way is not reported.
            assert!(open.iter().all(|it| it.len() < found.len()), "{open:?}");
        }
    }

    #[test]
    fn jointly_required_set_is_proved_without_harmless() {
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
    fn members_harmful_only_together_are_proved_singly() {
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
    fn members_harmful_alone_are_not_proved_as_a_set() {
        let share = |without: &[String]| {
            let has = |name: &str| f64::from(u8::from(without.contains(&name.to_owned())));
            0.55 * has("x") + 0.45 * has("y")
        };
        let (proved, open) = proved(vec![set(&["x", "y"])], 3, share);
        assert_eq!(proved, [set(&["x"])]);
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn set_with_untested_members_stays_open() {
        let found = set(&["x", "y"]);
        assert_eq!(fate(&found, |_| None), SetVerdict::Open(found.clone()));
        assert_eq!(
            tries(std::slice::from_ref(&found), 2),
            std::slice::from_ref(&found)
        );
        assert_eq!(tries(std::slice::from_ref(&found), 3).len(), 3);
        let unclear = Remainder {
            back: None,
            carries: None,
            is_proved: false,
        };
        let rest = |member: &str| {
            Some(Remainder {
                back: (member == "x").then(|| shown(0.9)),
                ..unclear
            })
        };
        assert_eq!(fate(&found, rest), SetVerdict::Open(set(&["y"])));
        assert_eq!(reduced(&found, |_| None), None);
    }

    /// The whole search: a round that misses the effect puts a harmless member into a set, and the proof drops it.
    #[test]
    fn proof_drops_harmless_member_added_by_noisy_round() {
        let harmful = "d04";
        let items = (0..12).map(|place| Item {
            members: Vec::new(),
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
            // Other load on the machine hides the slowdown at first, in parts and in halves.
            let is_blind = round < 2;
            let results: Vec<(Probe, Option<RemovedShare>)> = probes
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
