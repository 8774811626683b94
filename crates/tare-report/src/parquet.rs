//! Every reading as a Parquet file: the rows and columns of `csv`, typed.
//!
//! Missing values are null, never a number or an empty string.
//!
//! Limits: trials without a reading are missing.

use super::format::{Format, Material, ReportOutput};

/// The Parquet format.
pub static PARQUET: Format = Format {
    needs_readings: true,
    ..Format::new(
        "parquet",
        "rows of `csv` with types, for data frames and databases",
        make,
    )
};

#[cfg(feature = "parquet")]
fn make(material: &Material<'_>) -> ReportOutput {
    ReportOutput::Bytes(written::file(material))
}

#[cfg(not(feature = "parquet"))]
fn make(_: &Material<'_>) -> ReportOutput {
    super::format::left_out("parquet")
}

#[cfg(feature = "parquet")]
mod written {
    use std::sync::Arc;

    use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
    use parquet::errors::Result;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::parser::parse_message_type;

    use crate::csv;
    use crate::format::Material;
    use tare_core::analyze::{Point, Series};

    /// The schema, with the columns in the order in which they are written.
    const COLUMNS: &str = "message readings {
        required binary run (STRING); required binary arm (STRING); required binary workload (STRING);
        required binary params (STRING); optional binary path (STRING); required int64 instances;
        required binary metric (STRING); required binary unit (STRING); required binary better (STRING);
        required int64 block; required int64 launch; required int64 position; optional int64 slice;
        required double value; optional double best;
    }";
    /// Rows per row group, which are held in memory together.
    const ROWS: usize = 1 << 17;

    /// A block, or one of its slices.
    struct Row<'a> {
        of: &'a Texts,
        point: &'a Point,
        slice: Option<(usize, f32)>,
    }

    /// Values shared by all rows of a series.
    struct Texts {
        arm: ByteArray,
        workload: ByteArray,
        params: ByteArray,
        path: Option<ByteArray>,
        instances: u32,
        metric: ByteArray,
        unit: ByteArray,
        better: ByteArray,
    }

    impl Texts {
        fn new(series: &Series) -> Self {
            Self {
                arm: series.arm.as_str().into(),
                workload: series.workload.as_str().into(),
                params: csv::params(series).as_str().into(),
                path: series.path.map(|path| path.to_string().as_str().into()),
                instances: series.instances,
                metric: series.metric.into(),
                unit: series.unit.to_string().as_str().into(),
                better: series.better.to_string().as_str().into(),
            }
        }
    }

    pub(super) fn file(material: &Material<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(material, &mut bytes)
            .expect("memory takes what it is given, and rows fit the columns");
        bytes
    }

    fn write(material: &Material<'_>, bytes: &mut Vec<u8>) -> Result<()> {
        let schema = Arc::new(parse_message_type(COLUMNS)?);
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(bytes, schema, properties)?;
        let run: ByteArray = material.dossier.run.as_str().into();
        let texts: Vec<Texts> = material.readings.iter().map(Texts::new).collect();
        let mut rows = texts
            .iter()
            .zip(material.readings)
            .flat_map(|(of, series)| series.points.iter().map(move |point| (of, point)))
            .flat_map(|(of, point)| {
                let slices = point.slices.iter().copied().enumerate().map(Some);
                let all = std::iter::once(None).chain(slices);
                all.map(move |slice| Row { of, point, slice })
            });
        loop {
            let some: Vec<Row<'_>> = rows.by_ref().take(ROWS).collect();
            if some.is_empty() {
                break;
            }
            let mut group = writer.next_row_group()?;
            columns(&mut group, &run, &some)?;
            group.close()?;
        }
        writer.close()?;
        Ok(())
    }

    type Group<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut Vec<u8>>;

    fn columns(group: &mut Group<'_, '_>, run: &ByteArray, rows: &[Row<'_>]) -> Result<()> {
        all::<ByteArrayType>(group, rows, |_| run.clone())?;
        all::<ByteArrayType>(group, rows, |row| row.of.arm.clone())?;
        all::<ByteArrayType>(group, rows, |row| row.of.workload.clone())?;
        all::<ByteArrayType>(group, rows, |row| row.of.params.clone())?;
        some::<ByteArrayType>(group, rows, |row| row.of.path.clone())?;
        all::<Int64Type>(group, rows, |row| row.of.instances.into())?;
        all::<ByteArrayType>(group, rows, |row| row.of.metric.clone())?;
        all::<ByteArrayType>(group, rows, |row| row.of.unit.clone())?;
        all::<ByteArrayType>(group, rows, |row| row.of.better.clone())?;
        all::<Int64Type>(group, rows, |row| row.point.block.into())?;
        all::<Int64Type>(group, rows, |row| row.point.launch.into())?;
        all::<Int64Type>(group, rows, |row| row.point.position.into())?;
        some::<Int64Type>(group, rows, |row| {
            row.slice
                .map(|(number, _)| i64::try_from(number).unwrap_or(i64::MAX))
        })?;
        all::<DoubleType>(group, rows, |row| match row.slice {
            Some((_, value)) => value.into(),
            None => row.point.typical,
        })?;
        some::<DoubleType>(group, rows, |row| {
            row.slice.is_none().then_some(row.point.best)
        })
    }

    /// Writes a required column.
    fn all<T: DataType>(
        group: &mut Group<'_, '_>,
        rows: &[Row<'_>],
        value: impl Fn(&Row<'_>) -> T::T,
    ) -> Result<()> {
        let values: Vec<T::T> = rows.iter().map(value).collect();
        column::<T>(group, &values, None)
    }

    /// Writes an optional column.
    fn some<T: DataType>(
        group: &mut Group<'_, '_>,
        rows: &[Row<'_>],
        value: impl Fn(&Row<'_>) -> Option<T::T>,
    ) -> Result<()> {
        let values: Vec<Option<T::T>> = rows.iter().map(value).collect();
        let is_there: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
        let values: Vec<T::T> = values.into_iter().flatten().collect();
        column::<T>(group, &values, Some(&is_there))
    }

    fn column<T: DataType>(
        group: &mut Group<'_, '_>,
        values: &[T::T],
        is_there: Option<&[i16]>,
    ) -> Result<()> {
        let mut column = group.next_column()?.expect("a column of the schema");
        column.typed::<T>().write_batch(values, is_there, None)?;
        column.close()
    }
}
