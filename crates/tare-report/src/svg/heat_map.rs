//! Ratios over two parameters at once as a figure: one field per combination, the darker the further from 1.
//!
//! For example an arm over the host for every size of file and of record. Combinations that were not measured stay
//! empty. A field whose interval contains 1 has no colour, so that noise does not look like a pattern.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tare_model::dossier::{Dossier, DossierCell, Span};

use super::sweep::{all_but, levels, shown};
use super::{Figure, GRID, Sheet, plain, text};
use crate::number::decimals_of;
use crate::words::{self, purpose_of};
use tare_core::foreign::harmless;

/// The minimum numbers of levels: one axis has at least this many, the other at least two.
const FEWEST_LEVELS: usize = 3;
const FIELD: (f64, f64) = (56.0, 26.0);
const LEFT: f64 = 90.0;
/// The width of the narrowest figure, so that its title and foot have room.
const NARROWEST: f64 = 460.0;
/// The ratio (or its inverse) from which on a field has the full colour.
const FULL_AT: f64 = 2.0;
/// Okabe and Ito's vermilion for slower and blue for faster.
const SLOWER: [f64; 3] = [213.0, 94.0, 0.0];
const FASTER: [f64; 3] = [0.0, 114.0, 178.0];

/// The ratios of one metric in one arm over two parameters.
struct HeatMap<'a> {
    of: &'a DossierCell,
    /// The parameters: across, and down.
    axes: [&'a str; 2],
    ratios: BTreeMap<[i64; 2], Span>,
}

/// Draws a figure for every metric and arm that was measured over two parameters.
pub(super) fn figures(dossier: &Dossier) -> Vec<Figure> {
    let maps = heat_maps(&dossier.cells);
    let numbered = (1..).zip(&maps);
    numbered
        .map(|(number, map)| Figure {
            name: format!(
                "map-{number}-{}-{}",
                plain(&map.of.arm),
                plain(&map.of.metric)
            ),
            svg: map.draw(dossier),
        })
        .collect()
}

fn heat_maps(cells: &[DossierCell]) -> Vec<HeatMap<'_>> {
    let mut maps: Vec<HeatMap<'_>> = Vec::new();
    let mut known: BTreeMap<(&String, String), usize> = BTreeMap::new();
    for cell in cells {
        let Some(ratio) = words::ratio(cell) else {
            continue;
        };
        let levels = levels(cell);
        let in_params = |(name, _): &&(&str, i64)| cell.params.0.contains_key(*name);
        let levels: Vec<_> = levels.iter().filter(in_params).copied().collect();
        for (place, across) in levels.iter().enumerate() {
            for down in &levels[place + 1..] {
                let axes = [across.0, down.0];
                let key = (&cell.arm, all_but(cell, &axes));
                let map = *known.entry(key).or_insert_with(|| {
                    maps.push(HeatMap {
                        of: cell,
                        axes,
                        ratios: BTreeMap::new(),
                    });
                    maps.len() - 1
                });
                let ratios = &mut maps[map].ratios;
                ratios.entry([across.1, down.1]).or_insert(*ratio);
            }
        }
    }
    maps.retain(|map| {
        let [across, down] = [0, 1].map(|axis| map.levels(axis).len());
        across.min(down) > 1 && across.max(down) >= FEWEST_LEVELS
    });
    maps
}

/// Returns the colour of a field.
fn colour(ratio: &Span) -> String {
    if ratio.low <= 1.0 && ratio.high >= 1.0 {
        return "#f4f4f1".to_owned();
    }
    let full = if ratio.point > 1.0 { SLOWER } else { FASTER };
    let part = (ratio.point.ln().abs() / FULL_AT.ln()).clamp(0.0, 1.0);
    // From a tenth on, so that even a small difference shows.
    let part = 0.1 + 0.8 * part;
    let [red, green, blue] = full.map(|full| 255.0 + (full - 255.0) * part);
    format!("rgb({red:.0},{green:.0},{blue:.0})")
}

impl HeatMap<'_> {
    fn levels(&self, axis: usize) -> Vec<i64> {
        let levels: BTreeSet<i64> = self.ratios.keys().map(|levels| levels[axis]).collect();
        levels.into_iter().collect()
    }

    fn draw(&self, dossier: &Dossier) -> String {
        let [across, down] = [self.levels(0), self.levels(1)];
        let title = format!(
            "{}: {}, {} against {}",
            self.of.workload,
            self.of.metric,
            purpose_of(&self.of.arm, dossier),
            harmless(&self.of.baseline)
        );
        let foot = format!(
            "Ratio to the baseline; above 1 is slower. Orange: slower, blue: faster, the full colour from {FULL_AT:.0} times on; grey: the interval contains 1. Run {}.",
            harmless(&dossier.run)
        );
        let right = LEFT + across.len() as f64 * FIELD.0;
        let width = (right + 14.0).max(NARROWEST);
        let sheet = Sheet::new(width, &title, &foot);
        let top = 46.0 + sheet.title_height();
        let bottom = top + down.len() as f64 * FIELD.1;
        let mut out = String::new();
        text(
            &mut out,
            LEFT,
            top - 22.0,
            "start",
            10.0,
            &format!("{} →", self.axes[0]),
        );
        text(
            &mut out,
            LEFT - 8.0,
            top - 8.0,
            "end",
            10.0,
            &format!("{} ↓", self.axes[1]),
        );
        for (column, level) in across.iter().enumerate() {
            let x = LEFT + (column as f64 + 0.5) * FIELD.0;
            text(&mut out, x, top - 8.0, "middle", 10.0, &shown(*level));
        }
        for (line, of_line) in down.iter().enumerate() {
            let y = top + line as f64 * FIELD.1;
            text(
                &mut out,
                LEFT - 8.0,
                y + 17.0,
                "end",
                10.0,
                &shown(*of_line),
            );
            for (column, of_column) in across.iter().enumerate() {
                let x = LEFT + column as f64 * FIELD.0;
                let ratio = self.ratios.get(&[*of_column, *of_line]);
                let fill = ratio.map_or_else(|| "none".to_owned(), colour);
                let _ = writeln!(
                    out,
                    r#"<rect x="{x:.1}" y="{y:.1}" width="{}" height="{}" fill="{fill}" stroke="{GRID}"/>"#,
                    FIELD.0, FIELD.1
                );
                if let Some(ratio) = ratio {
                    let digits = decimals_of(ratio, 1.0).clamp(1, 2);
                    let number = format!("{:.digits$}", ratio.point);
                    text(
                        &mut out,
                        x + FIELD.0 / 2.0,
                        y + 17.0,
                        "middle",
                        11.0,
                        &number,
                    );
                }
            }
        }
        sheet.around(&out, bottom + 20.0, 2.0)
    }
}

#[cfg(test)]
mod tests {
    use tare_model::Params;

    use super::*;
    use tare_core::testing as composed;

    fn cell(size: &str, record: &str, ratio: f64) -> DossierCell {
        DossierCell {
            params: Params::new()
                .with("size", size)
                .with("record", record)
                .with("direct", 0),
            ..composed::cell("disk.iozone-read.throughput", ratio)
        }
    }

    #[test]
    fn triangle_of_sizes_is_one_map_with_empty_fields() {
        let mut dossier = composed::stored();
        dossier.cells = [
            ("64k", "4k"),
            ("64k", "64k"),
            ("1m", "4k"),
            ("1m", "64k"),
            ("1m", "1m"),
        ]
        .map(|(size, record)| cell(size, record, 1.5))
        .into();
        let figures = figures(&dossier);
        assert_eq!(figures.len(), 1);
        let svg = &figures[0].svg;
        assert_eq!(svg.matches(r#"fill="none" stroke"#).count(), 1, "{svg}");
        assert_eq!(svg.matches(">1.50<").count(), 5, "{svg}");
        // One parameter with two values is no map.
        dossier
            .cells
            .retain(|cell| cell.params.0["size"] == "1m".into());
        assert!(super::figures(&dossier).is_empty());
    }

    #[test]
    fn colour_shows_direction_and_spares_uncertain_fields() {
        let span = |low, point, high| Span::new(low, point, high);
        assert_eq!(colour(&span(0.9, 1.2, 1.4)), "#f4f4f1");
        assert_ne!(colour(&span(1.1, 1.2, 1.4)), colour(&span(0.7, 0.8, 0.9)));
        assert_eq!(colour(&span(8.0, 9.0, 10.0)), colour(&span(2.0, 3.0, 4.0)));
    }
}
