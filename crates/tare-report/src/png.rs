//! The figures as PNG files: those of the `svg` format at twice their size, for tools that do not accept SVG.
//!
//! The same dossier and fonts give the same pixels. Without fonts there is no picture, because it would have no text.

use super::format::{Format, Material, ReportOutput};

/// The PNG format.
pub static PNG: Format = Format {
    needs_fonts: cfg!(feature = "png"),
    ..Format::new(
        "png",
        "figures of `svg` as bitmaps at twice their size",
        make,
    )
};

#[cfg(feature = "png")]
fn make(material: &Material<'_>) -> ReportOutput {
    drawn::files(material)
}

#[cfg(not(feature = "png"))]
fn make(_: &Material<'_>) -> ReportOutput {
    super::format::left_out("png")
}

#[cfg(feature = "png")]
mod drawn {
    use std::sync::Arc;

    use resvg::tiny_skia::{Pixmap, Transform};
    use resvg::usvg::{Options, Tree, fontdb};

    use crate::format::{File, Material, ReportOutput};
    use crate::svg;

    /// Pixels per drawing unit: enough for paper or a high-density screen.
    const PIXELS: f32 = 2.0;

    pub(super) fn files(material: &Material<'_>) -> ReportOutput {
        let mut fonts = fontdb::Database::new();
        for face in material.fonts {
            fonts.load_font_data(face.clone());
        }
        let Some(family) = family(&fonts) else {
            return ReportOutput::Nothing(
                "a picture has no words without a font, and none was found: install one such as DejaVu Sans, or take the form `svg`"
                    .to_owned(),
            );
        };
        fonts.set_sans_serif_family(family);
        let options = Options {
            fontdb: Arc::new(fonts),
            ..Options::default()
        };
        svg::files_of(material.dossier, |figure| {
            Ok(File {
                content: picture(&figure.svg, &options)
                    .map_err(|reason| format!("figure `{}`: {reason}", figure.name))?,
                name: format!("{}.png", figure.name),
            })
        })
    }

    /// Returns the family of the first font face.
    fn family(fonts: &fontdb::Database) -> Option<String> {
        let first = fonts.faces().next()?;
        first.families.first().map(|(name, _)| name.clone())
    }

    fn picture(drawing: &str, options: &Options<'_>) -> Result<Vec<u8>, String> {
        let tree = Tree::from_str(drawing, options).map_err(|error| error.to_string())?;
        let size = tree.size().to_int_size();
        let size = size.scale_by(PIXELS).ok_or("it is too large")?;
        let mut pixels = Pixmap::new(size.width(), size.height()).ok_or("it is too large")?;
        let scale = Transform::from_scale(PIXELS, PIXELS);
        resvg::render(&tree, scale, &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| error.to_string())
    }
}
