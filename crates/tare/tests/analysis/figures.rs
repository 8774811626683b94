//! Tests figures as files: every kind contains its texts, every metric has its blocks and their distribution, and
//! images are the drawings with their words.

use tare::analyze::analyze;
use tare::report::ReportOutput;

use super::forms::assert_says;
use super::forms::{answer_of_why, files_of, huge};
use super::generator::find;
use super::snapshots::{hostile, ordinary};

/// Saves a drawing for inspection in the folder that `TARE_KEEP_FIGURES` names.
pub(crate) fn keep(name: &str, content: impl AsRef<[u8]>) {
    if let Some(folder) = std::env::var_os("TARE_KEEP_FIGURES") {
        std::fs::write(std::path::Path::new(&folder).join(name), content).unwrap();
    }
}

/// Returns an attribute of a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    tag.split(&format!(" {name}=\"")).nth(1)?.split('"').next()
}

/// Asserts that every text of a drawing fits inside it, by the average width of letters.
fn assert_holds_its_texts(name: &str, drawing: &str) {
    let number = |tag: &str, name: &str| -> Option<f64> { attribute(tag, name)?.parse().ok() };
    let size = |side: &str| number(drawing, side).unwrap();
    let (width, height) = (size("width"), size("height"));
    for text in drawing.split("<text").skip(1) {
        let (tag, rest) = text.split_once('>').unwrap();
        let words = rest.split("</text>").next().unwrap();
        let letters = words
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "'");
        let length =
            letters.chars().count() as f64 * 0.56 * number(tag, "font-size").unwrap_or(12.0);
        let (x, y) = (number(tag, "x").unwrap(), number(tag, "y").unwrap());
        let (from, to) = match attribute(tag, "text-anchor") {
            Some("end") => (x - length, x),
            Some("middle") => (x - length / 2.0, x + length / 2.0),
            _ => (x, x + length),
        };
        if attribute(tag, "transform").is_none() {
            assert!(
                from >= -1.0 && to <= width + 1.0,
                "{name}, {from}..{to}: {words}"
            );
        }
        assert!((0.0..=height).contains(&y), "{name}, at {y}: {words}");
    }
}

#[test]
fn figures_contain_texts_and_all_distributions() {
    let dossiers = [
        analyze(&ordinary().run(), &find),
        analyze(&hostile(), &find),
        answer_of_why(),
        super::publication::dossier(),
        super::concurrency::with_series(),
        huge(3, 500),
    ];
    for dossier in &dossiers {
        let files = files_of("svg", dossier);
        for file in &files {
            assert_holds_its_texts(&file.name, std::str::from_utf8(&file.content).unwrap());
        }
        for (place, cell) in dossier.cells.iter().enumerate() {
            let is_its = |begin: &str| {
                let begin = format!("{begin}-{place}-");
                files.iter().any(|file| file.name.starts_with(&begin))
            };
            assert_eq!(
                is_its("distribution"),
                cell.blocks.len() > 1,
                "{}",
                cell.metric
            );
        }
        let has_steps = files.iter().any(|file| file.name.starts_with("steps-"));
        assert_eq!(has_steps, dossier.ladder.is_some());
    }
}

#[test]
fn overlong_figure_splits_with_common_axis() {
    let dossier = huge(250, 3);
    let files = files_of("svg", &dossier);
    let parts = files.iter().filter(|file| file.name.starts_with("costs-"));
    let parts: Vec<&str> = parts
        .map(|file| std::str::from_utf8(&file.content).unwrap())
        .collect();
    assert_eq!(parts.len(), 3);
    let n_rows: usize = parts
        .iter()
        .map(|part| part.matches("<circle").count())
        .sum();
    let n_beyond: usize = parts.iter().map(|part| part.matches("5z\"").count()).sum();
    assert_eq!(n_rows + n_beyond, 250);
    for (number, part) in (1..).zip(&parts) {
        assert!(part.contains(&format!(", {number} of 3<")), "{number}");
    }
}

#[test]
fn distribution_curve_of_each_side_reaches_total() {
    let dossier = analyze(&ordinary().run(), &find);
    let place = dossier.cells.iter().position(|cell| cell.arm == "docker");
    let begin = format!("distribution-{}-", place.unwrap());
    let files = files_of("svg", &dossier);
    let file = files.iter().find(|file| file.name.starts_with(&begin));
    let drawing = std::str::from_utf8(&file.unwrap().content).unwrap();
    let n_blocks = dossier.cells[place.unwrap()].blocks.len();
    // A point for each block on both sides, and one in the name of each.
    assert_eq!(drawing.matches("<circle").count(), 2 * (n_blocks + 1));
    let sides: Vec<&str> = drawing
        .lines()
        .filter(|line| line.starts_with("<path") && line.contains('V'))
        .collect();
    assert_eq!(sides.len(), 2);
    let (top, bottom) = (
        drawing.matches("100 %").count(),
        drawing.matches(">0 %").count(),
    );
    assert_eq!((top, bottom), (1, 1));
    for side in sides {
        let heights: Vec<f64> = attribute(side, "d")
            .unwrap()
            .split('V')
            .skip(1)
            .map(|step| step.split('H').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(heights.len(), n_blocks);
        assert!(
            heights.windows(2).all(|pair| pair[1] < pair[0]),
            "{heights:?}"
        );
    }
}

#[cfg(feature = "png")]
#[test]
fn png_is_double_size_figure_and_needs_font() {
    use resvg::tiny_skia::Pixmap;
    use tare::report::{self, Material};

    use super::forms::STYLE;

    let dossier = analyze(&ordinary().run(), &find);
    let of = |name: &str, fonts: &[Vec<u8>]| {
        report::find(name).unwrap().make(&Material {
            dossier: &dossier,
            readings: &[],
            fonts,
            style: STYLE,
        })
    };
    let ReportOutput::Nothing(reason) = of("png", &[]) else {
        panic!("a picture without words");
    };
    assert_says(&reason, "font");
    let fonts = tare::cx::fonts::faces();
    if fonts.is_empty() {
        tare_testkit::skip::skip("font", "no font is installed");
        return;
    }
    let (ReportOutput::Files(drawings), ReportOutput::Files(pictures)) =
        (of("svg", &fonts), of("png", &fonts))
    else {
        panic!("files");
    };
    assert_eq!(drawings.len(), pictures.len());
    for (drawing, picture) in drawings.iter().zip(&pictures) {
        keep(&picture.name, &picture.content);
        let stem = |name: &str| name.rsplit_once('.').unwrap().0.to_owned();
        assert_eq!(stem(&drawing.name), stem(&picture.name));
        let text = std::str::from_utf8(&drawing.content).unwrap();
        let size = |name: &str| -> f64 {
            let after = text.split(&format!("{name}=\"")).nth(1).unwrap();
            after.split('"').next().unwrap().parse().unwrap()
        };
        let pixels = Pixmap::decode_png(&picture.content).unwrap();
        let is_twice = |is: u32, of: f64| (f64::from(is) - 2.0 * of).abs() <= 2.0;
        assert!(is_twice(pixels.width(), size("width")), "{}", picture.name);
        assert!(
            is_twice(pixels.height(), size("height")),
            "{}",
            picture.name
        );
        // The heading is above everything else.
        let heading = &pixels.pixels()[..pixels.width() as usize * 56];
        let n_dark = heading.iter().filter(|pixel| pixel.red() < 128).count();
        assert!(n_dark > 200, "{}: {n_dark} dark pixels", picture.name);
    }
}
