//! Summarises the course of a workload's trials, step by step from start to end, in each arm.
//!
//! A step's value is the median of the trials that got so far, with their minimum and maximum. Trials are not a
//! sample of one step's values, so nothing is inferred from a step. Limits: shows nothing within a step.

use tare_model::command::UsageOverTime;
use tare_model::course::{Course, CourseArm, CoursePoint, DossierCourse, usage};
use tare_model::study::A_PRIME;
use tare_model::{Unit, whole_count};

use super::collect::Collector;
use super::input::RunHead;
use super::kept_trial::{Group, GroupKey, KeptTrial};

/// The fewest steps that make a course.
const FEWEST_STEPS: usize = 3;

/// Returns the courses of all workloads that report them, and the recorded usage of programs.
pub(super) fn all(head: &RunHead, collected: &Collector<'_>) -> Vec<DossierCourse> {
    let of_group = |(key, group): (&GroupKey, _)| {
        let place = (key.instances, group);
        let reported = of_group(head, collected, place, |kept| {
            kept.course.as_deref().cloned()
        });
        let used = USAGE.iter().filter_map(move |used| {
            of_group(head, collected, place, |kept| {
                kept.usage.as_deref().map(|usage| used.course(usage))
            })
        });
        reported.into_iter().chain(used)
    };
    collected.groups.iter().flat_map(of_group).collect()
}

/// A part of the recorded usage.
struct Used {
    metric: &'static str,
    unit: Unit,
    values: fn(&UsageOverTime) -> &[f64],
}

/// All parts; bytes of a step become a rate.
const USAGE: [Used; 4] = [
    Used {
        metric: usage::PROCESSORS,
        unit: Unit::Count,
        values: |it| &it.processors,
    },
    Used {
        metric: usage::MEMORY,
        unit: Unit::Byte,
        values: |it| &it.memory_bytes,
    },
    Used {
        metric: usage::READ,
        unit: Unit::BytePerSecond,
        values: |it| &it.read_bytes,
    },
    Used {
        metric: usage::WRITTEN,
        unit: Unit::BytePerSecond,
        values: |it| &it.written_bytes,
    },
];

impl Used {
    fn course(&self, usage: &UsageOverTime) -> Course {
        let step_s = usage.step_ns as f64 / 1e9;
        let of_step = if self.unit == Unit::BytePerSecond {
            step_s
        } else {
            1.0
        };
        let values = (self.values)(usage).iter();
        Course {
            metric: self.metric,
            unit: self.unit,
            axis: "s",
            step: step_s,
            values: values.map(|value| value / of_step).collect(),
        }
    }
}

fn of_group(
    head: &RunHead,
    collected: &Collector<'_>,
    (instances, group): (u32, &Group),
    course_of: impl Fn(&KeptTrial) -> Option<Course>,
) -> Option<DossierCourse> {
    let of_arm = |arm: &str| -> Vec<Course> {
        let kept = collected.arm_index(arm).map(|index| &group.arms[index]);
        let kept = kept.into_iter().flat_map(super::blocks::Blocks::values);
        kept.filter_map(&course_of).collect()
    };
    let mut arms = Vec::new();
    let mut first = None;
    for arm in head.arms.iter().map(|arm| arm.spec.id.as_str()) {
        let courses = of_arm(arm);
        let points = points(&courses);
        if arm != A_PRIME && points.len() >= FEWEST_STEPS {
            first = first.or(courses.into_iter().next());
            arms.push(CourseArm {
                arm: arm.to_owned(),
                points,
            });
        }
    }
    let first = first?;
    Some(DossierCourse {
        workload: group.name.clone(),
        params: group.params.clone(),
        path: group.path,
        instances,
        metric: first.metric.to_owned(),
        unit: first.unit.symbol().to_owned(),
        axis: first.axis.to_owned(),
        arms,
        published: Vec::new(),
    })
}

/// The steps of these trials, up to the last that at least half of them reached.
fn points(courses: &[Course]) -> Vec<CoursePoint> {
    let Some(step) = courses.first().map(|course| course.step) else {
        return Vec::new();
    };
    let at_step = |number: usize| -> Option<CoursePoint> {
        let of_trials = courses
            .iter()
            .filter_map(|course| course.values.get(number));
        let values: Vec<f64> = of_trials.copied().collect();
        if values.len() * 2 < courses.len() {
            return None;
        }
        let extreme = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick);
        Some(CoursePoint {
            at: (number + 1) as f64 * step,
            trials: whole_count(values.len()),
            typical: tare_stats::median(&values)?,
            least: extreme(f64::min)?,
            greatest: extreme(f64::max)?,
        })
    };
    (0..).map_while(at_step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(values: &[f64]) -> Course {
        Course {
            metric: "m",
            unit: Unit::BytePerSecond,
            axis: "s",
            step: 0.5,
            values: values.to_vec(),
        }
    }

    #[test]
    fn a_step_is_the_median_of_the_trials_that_got_so_far() {
        let trials = [
            course(&[1.0, 10.0, 100.0]),
            course(&[3.0, 30.0]),
            course(&[2.0, 50.0]),
        ];
        let points = points(&trials);
        assert_eq!(points.len(), 2, "one of three is no half");
        assert_eq!((points[0].at, points[1].at), (0.5, 1.0));
        let last = points[1];
        let values = (last.least, last.typical, last.greatest);
        assert_eq!((values, last.trials), ((10.0, 30.0, 50.0), 3));
    }

    #[test]
    fn bytes_of_a_step_become_a_rate() {
        let recorded = UsageOverTime {
            step_ns: 100_000_000,
            memory_bytes: vec![5.0, 6.0],
            written_bytes: vec![10.0, 20.0],
            ..UsageOverTime::default()
        };
        let course = |metric: &str| {
            let used = USAGE.iter().find(|used| used.metric == metric).unwrap();
            used.course(&recorded).values
        };
        assert_eq!(course(usage::MEMORY), [5.0, 6.0]);
        assert_eq!(course(usage::WRITTEN), [100.0, 200.0]);
    }

    #[test]
    fn no_trial_is_no_step() {
        assert!(points(&[]).is_empty());
        assert!(points(&[course(&[])]).is_empty());
    }
}
