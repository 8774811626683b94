//! Tests recorded usage with real programs: memory that a program holds is seen in every arm, and nothing is recorded
//! unless it is asked for.

use crate::prelude::*;

const STUDY: &str = r#"
id = "usage"
[design]
blocks_min = 2
blocks_max = 2
[[arm]]
id = "host"
[[workload]]
id = "command"
params = { argv = ["perl", "-e", "my $x = 'x' x 64_000_000; select(undef, undef, undef, 0.6)"] }
"#;

#[test]
fn memory_of_a_program_is_seen_in_every_arm() {
    let mut study = STUDY.to_owned();
    let mut arms = vec!["host"];
    if has_container() {
        study += "[[arm]]\nid = \"container\"\nrequired = true\n";
        arms.push("container");
    }
    let product = Product::new();
    let file = product.file("usage.toml", study);
    product
        .run(["run", &file, "--usage"])
        .expect(0)
        .shows("Used while it ran");
    let dossier = product.run(["show", "--json"]).expect(0).json();
    assert_valid_dossier(&dossier);
    let course = |metric: &str| -> &Value {
        let mut courses = dossier["courses"].as_array().unwrap().iter();
        let found = courses.find(|course| course["metric"] == metric);
        found.unwrap_or_else(|| panic!("no {metric}: {dossier:#}"))
    };
    let of_arms = course("use.memory")["arms"].as_array().unwrap();
    assert_eq!(of_arms.len(), arms.len(), "{dossier:#}");
    for (arm, name) in of_arms.iter().zip(arms) {
        assert_eq!(arm["arm"], name);
        let points = arm["points"].as_array().unwrap().iter();
        let most = points.filter_map(|point| point["greatest"].as_f64());
        assert!(most.fold(0.0, f64::max) >= 64e6, "{name}: {arm:#}");
    }
    assert!(
        !course("use.processors")["arms"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let plain = product
        .tare(&format!("run {file} --json -"), &[])
        .expect(0)
        .json();
    assert!(plain.get("courses").is_none(), "{:#}", plain["courses"]);
    product.assert_nothing_left();
}
