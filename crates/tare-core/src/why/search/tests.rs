//! Tests of the search, with simulated shares.

use std::collections::BTreeSet;

use super::*;

fn items(number: usize) -> Vec<Item> {
    (0..number)
        .map(|place| Item {
            id: format!("d{place:02}"),
            likelihood: 0.1 + 0.02 * (place % 7) as f64,
            members: Vec::new(),
        })
        .collect()
}

/// Searches if `share` of the slowdown goes away without a set; returns what is found, and the number of rounds
/// and probes.
fn searched(
    number: usize,
    share: impl Fn(&BTreeSet<&str>) -> f64,
) -> (Vec<Vec<String>>, usize, usize) {
    searched_among(items(number), share)
}

fn searched_among(
    items: Vec<Item>,
    share: impl Fn(&BTreeSet<&str>) -> f64,
) -> (Vec<Vec<String>>, usize, usize) {
    let mut search = Search::new(items);
    let (mut rounds, mut tried) = (0, 0);
    loop {
        let probes = search.probes(6);
        if probes.is_empty() {
            let mut found: Vec<Vec<String>> = search.found().to_vec();
            for set in &mut found {
                set.sort();
            }
            found.sort();
            return (found, rounds, tried);
        }
        rounds += 1;
        tried += probes.len();
        assert!(rounds < 30 && probes.len() <= 6, "{search:?}");
        let results: Vec<(Probe, Option<RemovedShare>)> = probes
            .into_iter()
            .map(|probe| {
                let without: BTreeSet<&str> = probe.without.iter().map(String::as_str).collect();
                let share = share(&without);
                let shown = RemovedShare {
                    low: share - 0.05,
                    share,
                    high: share + 0.05,
                };
                (probe, Some(shown))
            })
            .collect();
        search.learn(&results);
    }
}

fn set(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn search_finds_one_harmful_of_31_in_three_rounds() {
    for harmful in 0..31 {
        let name = format!("d{harmful:02}");
        let (found, rounds, tried) = searched(31, |without| {
            f64::from(u8::from(without.contains(name.as_str())))
        });
        assert_eq!(found, [vec![name]]);
        assert!(rounds <= 3 && tried <= 15, "{rounds} rounds, {tried} tried");
    }
}

#[test]
fn many_that_each_carry_a_little_are_found_together() {
    let many = |place: usize| Item {
        id: format!("e{place:03}"),
        ..items(1).remove(0)
    };
    let family = Item {
        id: "all".to_owned(),
        likelihood: 0.25,
        members: (0..300).map(many).collect(),
    };
    let all = || items(3).into_iter().chain([family.clone()]).collect();
    let of_family =
        |without: &BTreeSet<&str>| without.iter().filter(|id| id.starts_with('e')).count();
    let (found, rounds, _) = searched_among(all(), |without| of_family(without) as f64 / 300.0);
    assert_eq!((found.len(), found[0].len(), rounds), (1, 300, 2));
    // A single one of them is still found.
    let (found, ..) = searched_among(all(), |without| {
        f64::from(u8::from(without.contains("e123")))
    });
    assert_eq!(found, [set(&["e123"])]);
}

#[test]
fn two_that_harm_by_themselves_are_both_found() {
    let (found, ..) = searched(32, |without| {
        0.5 * without
            .iter()
            .filter(|id| **id == "d03" || **id == "d17")
            .count() as f64
    });
    assert_eq!(found, [set(&["d03"]), set(&["d17"])]);
}

#[test]
fn search_finds_both_if_removing_either_suffices() {
    let (found, ..) = searched(32, |without| {
        f64::from(u8::from(without.contains("d05") || without.contains("d30")))
    });
    assert_eq!(found, [set(&["d05"]), set(&["d30"])]);
}

#[test]
fn two_of_which_either_harms_are_found_as_one_set() {
    for pair in [["d05", "d30"], ["d00", "d01"], ["d13", "d14"]] {
        let (found, rounds, _) = searched(32, |without| {
            f64::from(u8::from(pair.iter().all(|id| without.contains(id))))
        });
        assert_eq!(found, [set(&pair)], "{rounds}");
        assert!(rounds <= 12, "{rounds}");
    }
}

#[test]
fn search_never_finds_untestable_item() {
    let mut search = Search::new(items(2));
    let probes = search.probes(6);
    assert_eq!(probes.len(), 2);
    for _ in 0..TRIES_MOST {
        let results: Vec<_> = search.probes(6).into_iter().map(|it| (it, None)).collect();
        search.learn(&results);
    }
    assert!(search.probes(6).is_empty() && search.found().is_empty());
    assert_eq!(search.open(), [set(&["d01", "d00"])]);
    assert!(Search::new(Vec::new()).probes(6).is_empty());
    assert!(Search::new(items(9)).probes(1).is_empty());
}

#[test]
fn search_leaves_untestable_item_open_if_rest_is_cold() {
    let mut search = Search::new(items(9));
    let broken = "d05";
    for _ in 0..9 {
        let probes = search.probes(3);
        let results: Vec<_> = probes
            .into_iter()
            .map(|probe| {
                let cold = RemovedShare {
                    low: -0.1,
                    share: 0.0,
                    high: 0.1,
                };
                let has_it = probe.without.iter().any(|id| id == broken);
                (probe, (!has_it).then_some(cold))
            })
            .collect();
        search.learn(&results);
    }
    assert!(search.found().is_empty());
    assert_eq!(search.open(), [set(&[broken])]);
}

#[test]
fn search_retries_undecided_set_then_leaves_it_open() {
    let mut search = Search::new(items(4));
    let undecided = RemovedShare {
        low: -0.4,
        share: 0.2,
        high: 0.8,
    };
    let first = search.probes(2);
    for tries in 0..TRIES_MOST {
        assert_eq!(search.tries(), tries);
        let probes = search.probes(2);
        assert_eq!(probes, first);
        let results: Vec<_> = probes
            .into_iter()
            .map(|probe| (probe, Some(undecided)))
            .collect();
        search.learn(&results);
    }
    assert!(search.probes(2).is_empty() && search.found().is_empty());
    assert_eq!(search.open().len(), 1);
    assert_eq!(search.open()[0].len(), 4);
    // With more time it is taken up again, once.
    assert!(search.reopen());
    let results = search.probes(2).into_iter();
    let results: Vec<_> = results.map(|probe| (probe, Some(undecided))).collect();
    assert_eq!(results.len(), 2);
    search.learn(&results);
    assert!(search.probes(2).is_empty());
}

#[test]
fn search_tests_dominant_item_alone_with_two_probes() {
    let mut all = items(9);
    for item in &mut all {
        item.likelihood = 0.13;
    }
    all[3].likelihood = 0.95;
    assert_eq!(Search::new(all).probes(2)[0].part, ["d03"]);
}

#[test]
fn search_tests_likely_item_alone() {
    let mut all = items(12);
    all[7].likelihood = 0.95;
    let probes = Search::new(all).probes(4);
    assert_eq!(probes[0].part, ["d07"]);
    assert_eq!(probes.len(), 4);
}
