//! Tests a disk that fills up, is read-only, or fails under the store of a run: the run ends with an error that says
//! what to do, earlier data is kept, and nothing else is left.

use crate::prelude::*;

use crate::product::{stored, with_own_mounts};

/// Many short trials.
const STUDY: &str = r#"id = "mine"
[design]
trial = "2ms"
alternate = false
blocks_min = 100
blocks_max = 100
[[arm]]
id = "host"
[[workload]]
id = "getppid"
"#;

/// Trials of a whole run of it: the host and its copy.
const WHOLE: usize = 200;

/// Asserts that a store has a beginning and every trial in order, completed; returns their number.
#[track_caller]
fn assert_kept(store: &Path) -> usize {
    let sequences = stored(store, "SELECT sequence FROM trial ORDER BY sequence");
    let expected: Vec<String> = (0..sequences.len()).map(|it| it.to_string()).collect();
    assert_eq!(sequences, expected);
    let others = stored(store, "SELECT kind FROM trial WHERE kind <> 'completed'");
    assert_eq!(others, [""; 0]);
    assert_eq!(stored(store, "PRAGMA integrity_check"), ["ok"]);
    sequences.len()
}

/// Asserts that the run ended early, said where and what to do, and lost none of its data.
#[track_caller]
fn assert_ended_well(product: &Product, ended: &Ended, store: &Path, words: &str) {
    assert!(matches!(ended.code, Some(5 | 2)), "{ended}");
    ended.does_not_complain("panicked");
    ended.complains("store.sqlite");
    ended.complains(words);
    ended.advises("--store");
    let n_trials = assert_kept(store);
    assert!((5..WHOLE).contains(&n_trials), "{n_trials}: {ended}");
    product.assert_nothing_left();
    // The stored part can be shown.
    let path = store.display().to_string();
    product
        .run(["show", "--store", &path])
        .expect(0)
        .shows("INCOMPLETE");
}

/// Runs a script in a separate mount namespace; `None` if mounting is not possible.
pub(crate) fn with_mounts(
    product: &Product,
    script: &str,
    first: &[&Path],
    inner: &Command,
) -> Option<Ended> {
    if !is_root() {
        skip("root", "only root can mount");
        return None;
    }
    let mut command = with_own_mounts(script, first, inner);
    product.set_variables(&mut command);
    let ended = product.finish(command);
    if ended.code == Some(99) {
        skip("root", &format!("nothing can be mounted here: {ended}"));
        return None;
    }
    Some(ended)
}

#[test]
fn full_disk_ends_run_and_it_resumes_with_space() {
    let product = Product::new();
    product.file("study.toml", STUDY);
    for place in ["disk", "kept"] {
        fs::create_dir(product.folder().join(place)).unwrap();
    }
    // Files on the small disk are copied out before it disappears with its namespace.
    let script =
        "mount -t tmpfs -o size=2m tmpfs disk && head -c 1700000 /dev/zero > disk/filler || exit 99
        \"$@\"; code=$?
        rm disk/filler; cp disk/store.sqlite* kept || exit 98
        exit $code";
    let inner = product.command(line("run study.toml --store disk/store.sqlite", &[]));
    let ended = needed!(with_mounts(&product, script, &[], &inner));
    let store = product.folder().join("kept/store.sqlite");
    assert_ended_well(&product, &ended, &store, "no space left");
    ended.complains("trials are stored").advises("tare resume");
    let before = assert_kept(&store);
    let path = store.display().to_string();
    product.run(["resume", "--store", &path]).expect(0);
    assert_eq!(assert_kept(&store), WHOLE);
    assert!(before < WHOLE);
}

#[test]
fn unwritable_store_disk_is_refused_before_start() {
    let product = Product::new();
    product.file("study.toml", STUDY.replace("100", "3"));
    fs::create_dir(product.folder().join("disk")).unwrap();
    product
        .tare("run study.toml --store disk/store.sqlite", &[])
        .expect(0);
    let script = "mount --bind disk disk && mount -o remount,bind,ro disk && ! touch disk/x 2>/dev/null || exit 99
        exec \"$@\"";
    let store = product.folder().join("disk/store.sqlite");
    let n_trials = assert_kept(&store);
    for arguments in tare_model::rows! {
        &["run", "study.toml", "--store", "disk/store.sqlite"][..],
        &["resume", "--budget", "10s", "--store", "disk/store.sqlite"],
        &["run", "study.toml", "--store", "disk/other.sqlite"],
    } {
        let inner = product.command(arguments);
        let ended = needed!(with_mounts(&product, script, &[], &inner));
        let ended = ended.expect(5);
        ended.complains(".sqlite");
        assert!(ended.stderr.to_lowercase().contains("read-only"), "{ended}");
        ended.advises("--store");
        product.assert_nothing_left();
        assert_eq!(assert_kept(&store), n_trials);
    }
}

/// Runs a command under strace; `None` if tracing is not possible.
fn traced(product: &Product, options: &[String], arguments: &[&str]) -> Option<Ended> {
    if Command::new("strace").arg("-V").output().is_err() {
        skip("strace", "strace is not installed");
        return None;
    }
    let inner = product.command(arguments);
    let options = options.iter().map(String::as_str);
    let options: Vec<&str> = ["-qq"].into_iter().chain(options).chain(["--"]).collect();
    let ended = product.finish(product.under("strace", &options, &inner));
    if ended.stderr.contains("PTRACE") || ended.stderr.contains("ptrace") {
        skip("strace", &format!("nothing can be traced here: {ended}"));
        return None;
    }
    Some(ended)
}

/// Makes writes to the store fail after some time, like a disk that has just broken.
fn failing(product: &Product, error: &str) -> Option<(Ended, PathBuf)> {
    // Fewer of them: under strace every call is slow.
    product.file("study.toml", STUDY.replace("100", "60"));
    let store = product
        .folder()
        .canonicalize()
        .unwrap()
        .join("store.sqlite");
    let options = [
        "--output=/dev/null".to_owned(),
        format!("--trace-path={}", store.display()),
        format!("--trace-path={}-wal", store.display()),
        format!("--inject=write,pwrite64,pwritev,writev:error={error}:when=200+"),
    ];
    let arguments = ["run", "study.toml", "--store", "store.sqlite"];
    traced(product, &options, &arguments).map(|ended| (ended, store))
}

#[test]
fn failing_or_read_only_disk_keeps_earlier_trials() {
    for error in ["EIO", "EROFS"] {
        let product = Product::new();
        let (ended, store) = needed!(failing(&product, error));
        assert_ended_well(&product, &ended, &store, "disk");
        ended.complains("what it holds is kept");
        ended.advises("dmesg");
        // On a working disk it resumes.
        let path = store.display().to_string();
        product.run(["resume", "--store", &path]).expect(0);
        assert_eq!(assert_kept(&store), WHOLE * 3 / 5);
    }
}

#[test]
fn replacement_is_synced_before_and_after_rename() {
    let product = Product::new();
    product.file("study.toml", STUDY.replace("100", "2"));
    let folder = product.folder().canonicalize().unwrap();
    let calls = folder.join("calls");
    let options = [
        "--follow-forks".to_owned(),
        "--decode-fds=path".to_owned(),
        "--trace=fsync,fdatasync,rename,renameat,renameat2".to_owned(),
        format!("--output={}", calls.display()),
    ];
    let wanted = folder.join("out.json");
    let named = wanted.display().to_string();
    let arguments = ["run", "study.toml", "--json", &named];
    let ended = needed!(traced(&product, &options, &arguments));
    ended.expect(0);
    let calls = contents(calls);
    let at = |what: &str, path: &Path, end: &str| {
        let message = format!("{}{end}", path.display());
        calls
            .lines()
            .position(|call| call.contains(what) && call.contains(&message))
            .unwrap_or_else(|| panic!("no {what} of {message} in:\n{calls}"))
    };
    let synced = at("sync(", &folder.join("out.json.part"), ">");
    let renamed = at("rename", &wanted, "\"");
    let lasting = at("sync(", &folder, ">");
    assert!(synced < renamed && renamed < lasting, "{calls}");
}
