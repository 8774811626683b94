//! Tests that copy-up is material on the layer, but not on a volume or a bind mount, by intervals.

use super::*;
use crate::talk::{call, once, report};
use tare_stats::hodges_lehmann_paired;

/// Six pairs are the fewest with an exact 95 % interval.
const BLOCKS: usize = 6;

fn copy_up(instance: &mut dyn Instance, trial: u64) -> Reply {
    once(instance, trial, call("copy-up", params("mib = 24")))
}

#[test]
fn first_write_copies_up_only_layer_files() {
    let world = needed!(world("copyup"));
    let cx = world.cx();
    let mut arms: Vec<_> = ["layer", "volume", "bind"]
        .map(|storage| {
            let settings = params("lower_file = '24m', network = 'none'").with("storage", storage);
            environment(&DOCKER, storage, &settings)
        })
        .into();
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for block in 0..BLOCKS {
        // Rotated by one arm in each block, so that no arm always follows the same other.
        for place in 0..arms.len() {
            let index = (place + block) % arms.len();
            let mut instance = arms[index].start(&cx, StartMode::Resident).unwrap();
            hello(instance.as_mut());
            let copied = report(copy_up(instance.as_mut(), 1));
            times[index].push(copied.series[0].values[0]);
            let is_written = instance.written(&cx).contains("/tare-work/tare-lower");
            assert_eq!(is_written, index == 0, "{index}");
            let again = copy_up(instance.as_mut(), 2);
            match (index, again) {
                // A file that is already copied up would show no overhead: it is refused.
                (0, Reply::Failed { failure, .. }) => {
                    assert!(failure.to_string().contains("cold"), "{failure}");
                }
                (1 | 2, Reply::Done { .. }) => {}
                (_, other) => panic!("{index}: {other:?}"),
            }
            instance.stop(&cx).unwrap();
        }
    }
    for arm in &mut arms {
        arm.remove(&cx).unwrap();
    }
    assert_eq!(leftovers(&world, &DOCKER), [""; 0]);
    let ratio = |arm: usize, base: usize| {
        let pairs = times[arm].iter().zip(&times[base]);
        let logarithms: Vec<f64> = pairs.map(|(arm, base)| (arm / base).ln()).collect();
        let found = hodges_lehmann_paired(&logarithms, 0.95).unwrap();
        found.interval.exp()
    };
    let (layer, bind) = (ratio(0, 1), ratio(2, 1));
    println!("ns: {times:.0?}; layer/volume {layer:?}; bind/volume {bind:?}");
    // Milliseconds against microseconds, far from any equivalence margin.
    assert!(layer.low > 50.0, "{layer:?} {times:?}");
    assert!(bind.high < layer.low / 5.0, "{bind:?} {times:?}");
}

#[test]
fn copy_up_without_lower_file_names_setting() {
    let world = needed!(world("nolower"));
    with_instance(&world, &Params::new(), StartMode::Resident, |instance| {
        let Reply::Unavailable { reason, .. } = copy_up(instance, 1) else {
            panic!("something was measured");
        };
        assert!(reason.to_string().contains("`lower_file`"), "{reason}");
    });
}

#[test]
fn the_study_of_copy_up_means_something() {
    let text = include_str!("../../../../../examples/studies/copy-up.toml");
    let study = parse("copy-up.toml", text, &Adjustments::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(study.lifecycle, tare_model::Lifecycle::Cold);
    assert_eq!(study.workloads[0].params.int("mib"), Some(100));
}
