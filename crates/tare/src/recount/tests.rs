//! Tests of the deviations that a resumed run reports.

use super::*;

#[test]
fn resumed_or_extended_run_reports_deviation() {
    let session = |first_block, stopped_by| SessionRecord {
        first_block,
        stopped_by,
    };
    let kinds = |sessions: &[SessionRecord]| -> Vec<Deviation> {
        deviations(sessions).iter().map(|it| it.kind).collect()
    };
    let begun = session(Some(0), Some(StoppedBy::Budget));
    assert_eq!(kinds(&[begun]), []);
    let more = session(Some(12), None);
    let shown = deviations(&[begun, more]);
    assert!(shown[0].detail.contains("from block 12 on"), "{shown:?}");
    // A session without a trial adds nothing.
    assert_eq!(kinds(&[begun, session(None, None)]), []);
    let cut = session(Some(0), Some(StoppedBy::Interrupted));
    let killed = session(Some(3), None);
    let resumed = [Deviation::Resumed, Deviation::Resumed];
    assert_eq!(kinds(&[cut, killed, more]), resumed);
    assert_eq!(kinds(&[begun, more, begun])[0], Deviation::Extended);
}
