//! Tests bundles: replayed and measured again elsewhere, and files that are no bundle or were changed.

use crate::product::Product;
use crate::reports::measured;

#[test]
fn bundle_replays_bit_for_bit_and_rejects_changes() {
    let product = measured();
    product
        .tare("report latest --bundle run.tar", &[])
        .expect(0);
    product
        .tare("report latest --bundle again.tar", &[])
        .expect(0);
    let bundle = std::fs::read(product.folder().join("run.tar")).unwrap();
    let again = std::fs::read(product.folder().join("again.tar")).unwrap();
    assert!(bundle == again, "the same run is the same archive");

    let elsewhere = Product::new();
    let replay = |name: &str, bytes: &[u8]| {
        std::fs::write(elsewhere.folder().join(name), bytes).unwrap();
        elsewhere.run(["replay", name])
    };
    replay("run.tar", &bundle).expect(0).shows("bit for bit");
    // The run is not in this home, and replaying does not add it.
    assert!(elsewhere.run(["runs"]).expect(0).stdout.is_empty());

    // A digit of the dossier, with and without its checksum.
    let at = find(&bundle, b"\"wall_s\": ").unwrap() + 10;
    let mut changed = bundle.clone();
    changed[at] = if changed[at] == b'9' { b'8' } else { b'9' };
    replay("changed.tar", &changed)
        .expect(5)
        .complains("dossier.json");
    let (old, new) = (
        sum_of("dossier.json", &bundle),
        sum_of("dossier.json", &changed),
    );
    let sums = find(&changed, old.as_bytes()).unwrap();
    changed[sums..sums + old.len()].copy_from_slice(new.as_bytes());
    replay("forged.tar", &changed)
        .expect(5)
        .shows("/cost/wall_s");

    // Of a version that is unknown here.
    let (version, next) = ("\"dossier\": 1", "\"dossier\": 2");
    let later = forged(&bundle, "dossier.json", version, next);
    replay("later.tar", &later)
        .expect(2)
        .complains("of version 2")
        .advises("newer");

    for (name, bytes) in [("cut.tar", &bundle[..1000]), ("text.tar", b"no archive")] {
        replay(name, bytes).expect(2).complains("not a bundle");
    }
    elsewhere.run(["replay", "absent.tar"]).expect(2);
}

#[test]
fn command_output_is_stored_only_on_request() {
    let product = Product::new();
    let secret = "s3cr3t-9f";
    let file = product.file("secret", secret);
    let study = |flag: &str| {
        let head =
            "id = \"printing\"\n[design]\nblocks_min = 1\nblocks_max = 1\n[[arm]]\nid = \"host\"\n";
        let call = format!("{{\"argv\":[\"cat\",\"{file}\"]{flag}}}");
        format!("{head}[[workload]]\nid = \"user-command\"\n[workload.params]\ncall = '{call}'\n")
    };
    let has = |bytes: &[u8]| find(bytes, secret.as_bytes()).is_some();
    let bundled = |more: &[&str]| {
        let begin = ["report", "latest", "--bundle", "run.tar"];
        let ended = product.run([&begin[..], more].concat()).expect(0);
        (
            std::fs::read(product.folder().join("run.tar")).unwrap(),
            ended,
        )
    };
    product.file("study.toml", study(""));
    product.run(["run", "study.toml"]).expect(0);
    let (bundle, ended) = bundled(&[]);
    assert!(
        !has(&bundle) && !ended.stderr.contains("--redact"),
        "{ended}"
    );

    product.file("study.toml", study(",\"keep_output\":true"));
    product.run(["run", "study.toml"]).expect(0);
    let (bundle, ended) = bundled(&[]);
    assert!(has(&bundle), "it was to be kept");
    ended.complains("2 of its trials hold what your command printed; `--redact`");
    let (bundle, ended) = bundled(&["--redact"]);
    assert!(!has(&bundle) && !ended.stderr.contains("note:"), "{ended}");
    product
        .run(["replay", "run.tar"])
        .expect(0)
        .shows("bit for bit");
}

/// Returns the archive with some bytes of a file replaced by as many others, and with a matching checksum.
fn forged(archive: &[u8], name: &str, old: &str, new: &str) -> Vec<u8> {
    let (old, new) = (old.as_bytes(), new.as_bytes());
    assert_eq!(old.len(), new.len());
    let before = sum_of(name, archive);
    let mut changed = archive.to_vec();
    let mut places = tar::Archive::new(archive);
    let entry = places.entries().unwrap().map(Result::unwrap);
    let mut entry = entry.filter(|entry| entry.path().unwrap().ends_with(name));
    let entry = entry.next().unwrap();
    let from = usize::try_from(entry.raw_file_position()).unwrap();
    let file = &mut changed[from..from + usize::try_from(entry.size()).unwrap()];
    assert!(find(file, old).is_some(), "{name}");
    while let Some(at) = find(file, old) {
        file[at..at + new.len()].copy_from_slice(new);
    }
    let after = sum_of(name, &changed);
    let at = find(&changed, before.as_bytes()).unwrap();
    changed[at..at + after.len()].copy_from_slice(after.as_bytes());
    changed
}

#[test]
fn bundle_repeat_compares_costs_there_and_here() {
    let product = measured();
    product.tare("report --bundle run.tar", &[]).expect(0);
    let bundle = std::fs::read(product.folder().join("run.tar")).unwrap();
    let elsewhere = Product::new();
    elsewhere.file("run.tar", &bundle);

    // Its study runs a program that came from the publisher of the bundle.
    elsewhere
        .run(["repeat", "run.tar"])
        .expect(2)
        .advises("--trust");
    assert_eq!(elsewhere.run(["runs"]).expect(0).stdout, "");
    let chosen = ["repeat", "run.tar", "--trust", "--workload", "pipe"];
    elsewhere.run(chosen).expect(2);
    elsewhere.run(["run", "--trust"]).expect(2);

    let output = elsewhere.tare("repeat run.tar --trust", &[]);
    let stdout_text = output.expect(0).stdout;
    for said in [
        "there: run ",
        "here: run ",
        "here ÷ there",
        "of 2 costs are the same",
    ] {
        assert!(stdout_text.contains(said), "{said}: {stdout_text}");
    }
    let dossier = |product: &Product| product.run(["show", "--json"]).expect(0).json();
    let (there, here) = (dossier(&product), dossier(&elsewhere));
    assert_eq!(
        there["study"], here["study"],
        "the same plan in the same order"
    );
    assert_ne!(there["run"], here["run"]);

    // The user who began it need not be asked, unless the bundle holds another study under its name.
    product.run(["repeat", "run.tar"]).expect(0);
    let other = forged(&bundle, "store.db", "\"getppid\"", "\"integer\"");
    // Then the study that is read is not the one that would run, whatever is trusted.
    product.file("forged.tar", &other);
    for arguments in [
        &["repeat", "forged.tar"][..],
        &["repeat", "forged.tar", "--trust"],
        &["replay", "forged.tar"],
    ] {
        product
            .run(arguments)
            .expect(5)
            .complains("`study.json`")
            .complains("integer");
    }
    let both = forged(&other, "study.json", "\"getppid\"", "\"integer\"");
    product.file("forged.tar", &both);
    product
        .run(["repeat", "forged.tar"])
        .expect(2)
        .complains("was not begun here")
        .complains("workload integer");
    product.file("cut.tar", &bundle[..2_000]);
    product.tare("repeat cut.tar --trust", &[]).expect(2);
}

#[test]
fn replay_checks_files_derived_from_raw_output() {
    let product = measured();
    product.tare("report --bundle run.tar", &[]).expect(0);
    let bundle = std::fs::read(product.folder().join("run.tar")).unwrap();
    product
        .run(["replay", "run.tar"])
        .expect(0)
        .shows("`report.html`");
    for (name, old, new) in [
        ("report.html", "Two", "Ten"),
        ("versions.json", "\"bundle\": 1", "\"bundle\": 7"),
        ("README.txt", "for a browser", "run it: sh -c"),
    ] {
        product.file("changed.tar", forged(&bundle, name, old, new));
        product.run(["replay", "changed.tar"]).expect(5).shows(name);
    }
    // A report derived by another version is not checked, and the output says so.
    let by = format!("\"derived_by_tare\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let other = by.replace('.', "9");
    let older = forged(&bundle, "versions.json", &by, &other);
    let older = forged(&older, "report.html", "Two", "Ten");
    product.file("older.tar", older);
    product
        .run(["replay", "older.tar"])
        .expect(0)
        .shows("not checked: `report.html`");
}

#[test]
fn foreign_bundle_entry_is_not_read_into_memory() {
    let product = measured();
    product.tare("report --bundle run.tar", &[]).expect(0);
    let bundle = std::fs::read(product.folder().join("run.tar")).unwrap();
    let more = |header: &mut tar::Header, name: &str, content: &[u8]| {
        let mut archive = tar::Builder::new(Vec::new());
        archive.append_data(header, name, content).unwrap();
        let mut more = archive.into_inner().unwrap();
        more.extend(&bundle);
        more
    };
    let header = |kind: tar::EntryType, size: u64| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o644);
        header
    };
    // A file of a tebibyte that takes one block.
    let mut holes = header(tar::EntryType::GNUSparse, 512);
    {
        let sparse = holes.as_gnu_mut().unwrap();
        sparse.realsize = *b"20000000000\0";
        sparse.sparse[0].offset = *b"00000000000\0";
        sparse.sparse[0].numbytes = *b"00000001000\0";
    }
    holes.set_cksum();
    let (text, folder, link) = (
        header(tar::EntryType::Regular, 4),
        header(tar::EntryType::Directory, 0),
        header(tar::EntryType::Symlink, 0),
    );
    for (what, mut header, path, bytes) in [
        ("holes", holes, "tare/store.db", &[b'x'; 512][..]),
        ("twice", text.clone(), "tare/study.json", b"text"),
        ("another", text, "tare/extra.bin", b"text"),
        ("folder", folder, "tare/store.db", b""),
        ("link", link, "tare/store.db", b""),
    ] {
        let archive = more(&mut header, path, bytes);
        product.file("odd.tar", archive);
        let ended = product.run(["replay", "odd.tar"]).expect(2);
        assert!(ended.stderr.contains("not a bundle"), "{what}: {ended}");
    }
    let pipe = product.folder().join("pipe.tar");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    product.run(["replay", "pipe.tar"]).expect(2);
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

/// Returns the SHA-256 of a file in an archive.
fn sum_of(name: &str, archive: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    use std::io::Read as _;
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.path().unwrap().ends_with(name) {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            let digest = Sha256::digest(&bytes);
            let digits: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            return digits.concat();
        }
    }
    panic!("no {name} in the archive");
}
