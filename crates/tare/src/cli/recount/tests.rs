//! What is kept of a long run gives the dossier that its trials give, or is not used.

use std::path::Path;

use super::*;

/// The comparison in the store; its other runs belong to an answer of `tare why`.
fn compared() -> RunId {
    RunId::new("20261122-210539-1f5a").unwrap()
}

/// A store of an earlier version, copied into a folder that goes with the test.
struct Copied {
    folder: tempfile::TempDir,
    store: Store,
}

impl Copied {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.sqlite");
        let source = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/before/store.db"
        );
        std::fs::write(&path, std::fs::read(source).unwrap()).unwrap();
        let store = Store::open_to_read(&path).unwrap();
        Self { folder, store }
    }

    fn kept(&self) -> KeptReadings {
        KeptReadings::below(self.folder.path(), &self.store, &compared()).unwrap()
    }

    /// The dossier, and whether it was made of what was kept.
    fn dossier(&self, kept: Option<&KeptReadings>) -> (Dossier, bool) {
        let stored = self.store.run_without_records(&compared()).unwrap();
        let head = head(stored.clone());
        let was_kept = kept.is_some_and(|kept| kept.read(&head).is_some());
        let dossier = measured_by(&self.store, stored, kept).ok().unwrap().0;
        (dossier, was_kept)
    }
}

#[test]
fn a_dossier_from_kept_readings_is_that_from_the_trials_to_the_last_bit() {
    let copied = Copied::new();
    let kept = copied.kept();
    let (from_trials, _) = copied.dossier(None);
    let (first, was_kept) = copied.dossier(Some(&kept));
    assert!(!was_kept);
    let (second, was_kept) = copied.dossier(Some(&kept));
    assert!(was_kept);
    let text = |dossier: &Dossier| serde_json::to_string(dossier).unwrap();
    assert!(from_trials.cells.iter().any(|cell| cell.ratio.is_some()));
    assert_eq!(text(&first), text(&from_trials));
    assert_eq!(text(&second), text(&from_trials));
}

#[test]
fn kept_readings_that_are_cut_off_changed_or_of_other_trials_are_not_used() {
    let copied = Copied::new();
    let kept = copied.kept();
    let (expected, _) = copied.dossier(Some(&kept));
    let whole = std::fs::read(&kept.file).unwrap();
    let is_used = |bytes: &[u8]| {
        std::fs::write(&kept.file, bytes).unwrap();
        let head = head(copied.store.run_without_records(&compared()).unwrap());
        kept.read(&head).is_some()
    };
    assert!(is_used(&whole));
    for length in [0, 1, 40, whole.len() / 2, whole.len() - 1] {
        assert!(!is_used(&whole[..length]), "{length} bytes");
    }
    assert!(!is_used(&[&whole[..], b"x"].concat()));
    for place in (0..whole.len()).step_by(whole.len() / 97) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x10;
        assert!(!is_used(&bytes), "byte {place}");
    }
    let mut swapped = whole.clone();
    let middle = whole.len() / 2;
    swapped[middle..middle + 16].rotate_left(8);
    assert!(swapped == whole || !is_used(&swapped));
    // A report makes what is wrong anew.
    assert_eq!(copied.dossier(Some(&kept)), (expected.clone(), false));
    assert_eq!(copied.dossier(Some(&kept)), (expected, true));
}

#[test]
fn another_file_or_another_run_has_another_identity_and_one_that_is_written_to_has_none() {
    let copied = Copied::new();
    let other = Copied::new();
    let identity = |copied: &Copied, run: &RunId| copied.store.identity(run).unwrap();
    let run = compared();
    let own = identity(&copied, &run);
    assert!(own.is_some());
    assert_eq!(own, identity(&copied, &run));
    assert_ne!(own, identity(&other, &run));
    for line in copied.store.runs().unwrap() {
        assert_eq!(line.id == run, identity(&copied, &line.id) == own);
    }
    std::fs::write(copied.folder.path().join("store.sqlite-wal"), "").unwrap();
    assert_eq!(identity(&copied, &run), None);
}

#[cfg(unix)]
#[test]
fn what_is_kept_is_its_users_alone_and_no_link_is_followed() {
    use std::os::unix::fs::PermissionsExt;
    let copied = Copied::new();
    let kept = copied.kept();
    copied.dossier(Some(&kept));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&kept.file), 0o600);
    let elsewhere = copied.folder.path().join("elsewhere");
    std::fs::rename(&kept.file, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &kept.file).unwrap();
    assert!(!copied.dossier(Some(&kept)).1);
    assert!(!std::fs::symlink_metadata(&kept.file).unwrap().is_symlink());
}

#[test]
fn a_run_that_was_gone_on_with_says_so_by_how_it_had_ended() {
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
    let told = deviations(&[begun, more]);
    assert!(told[0].detail.contains("from block 12 on"), "{told:?}");
    // One that came to no trial added nothing.
    assert_eq!(kinds(&[begun, session(None, None)]), []);
    let cut = session(Some(0), Some(StoppedBy::Interrupted));
    let killed = session(Some(3), None);
    let resumed = [Deviation::Resumed, Deviation::Resumed];
    assert_eq!(kinds(&[cut, killed, more]), resumed);
    assert_eq!(kinds(&[begun, more, begun])[0], Deviation::Extended);
}
