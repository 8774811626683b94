//! Collects what a process started here inherits: variables that size its threads and memory, the C library, the init
//! process, the kind of its stdout.
//!
//! Variables are recorded by name from a fixed list; those that may hold a password only as `set`.
//! Limits: variables that a program's start script sets are missed.

use std::path::Path;

use tare_model::fact;

use super::Collector;

/// Variables that change a program's parallelism or its code path.
const VARIABLES: &[&str] = &tare_model::rows! {
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
    "NUMEXPR_MAX_THREADS", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS",
    "UV_THREADPOOL_SIZE", "NODE_OPTIONS", "DOTNET_PROCESSOR_COUNT", "DOTNET_gcServer", "JAVA_TOOL_OPTIONS",
    "MALLOC_ARENA_MAX", "GLIBC_TUNABLES", "LD_PRELOAD", "PYTHONDONTWRITEBYTECODE", "LANG", "LC_ALL", "TZ",
};

/// Variables of which only the presence is recorded, because their values may hold passwords.
const SECRET: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "all_proxy",
];

/// Collects all process facts.
pub(super) fn collect(facts: &mut Collector) {
    for name in VARIABLES {
        if let Some(value) = std::env::var_os(name) {
            facts.set(
                &fact::name_for(fact::VARIABLE, name),
                value.to_string_lossy(),
            );
        }
    }
    for name in SECRET {
        if std::env::var_os(name).is_some_and(|value| !value.is_empty()) {
            facts.set(&fact::name_for(fact::VARIABLE, name), "set");
        }
    }
    facts.set(fact::LIBC, c_library());
    facts.set(fact::PID, std::process::id().to_string());
    match std::fs::read_to_string("/proc/1/status") {
        Ok(status) => {
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.map(|value| value.trim_start_matches(':').trim())
            };
            if let Some(name) = field("Name") {
                facts.set(fact::INIT_NAME, name);
            }
            let mask = |name: &str| u64::from_str_radix(field(name)?, 16).ok();
            if let (Some(caught), Some(blocked)) = (mask("SigCgt"), mask("SigBlk")) {
                let sigterm = 1u64 << (libc::SIGTERM - 1);
                // Small inits block SIGTERM and wait for it with sigwait(3). While they wait, Linux shows it as not
                // blocked, and only wchan reveals the wait. A signal that init neither catches nor waits for is lost.
                let place = std::fs::read_to_string("/proc/1/wchan").unwrap_or_default();
                let is_heard = (caught | blocked) & sigterm != 0 || place.contains("sigtimedwait");
                facts.set(fact::INIT_SIGTERM, is_heard.to_string());
            }
        }
        Err(error) => facts.unreadable("init", &error),
    }
    facts.try_set(
        fact::FD_1,
        std::fs::read_link("/proc/self/fd/1").map(|target| target.to_string_lossy().into_owned()),
    );
    if let Ok(entries) = std::fs::read_dir("/proc/sys/fs/binfmt_misc") {
        let names = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names
            .filter(|name| name != "register" && name != "status")
            .collect();
        names.sort_unstable();
        facts.set(fact::BINFMT_HANDLERS, names.join(" "));
    }
}

/// Returns which C library's dynamic loader is installed, for programs that are not static.
fn c_library() -> &'static str {
    let has = |prefix: &str| {
        let folders = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"].map(Path::new);
        folders.iter().any(|folder| {
            std::fs::read_dir(folder).is_ok_and(|entries| {
                let mut names = entries.flatten().map(|entry| entry.file_name());
                names.any(|name| name.to_string_lossy().starts_with(prefix))
            })
        })
    };
    match (has("ld-linux"), has("ld-musl")) {
        (true, true) => "glibc and musl",
        (true, false) => "glibc",
        (false, true) => "musl",
        (false, false) => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_facts_include_init_libc_and_stdout() {
        let mut facts = Collector::default();
        collect(&mut facts);
        for name in ["libc", "pid", "init.name", "init.handles_sigterm", "fd.1"] {
            assert!(facts.facts.contains_key(name), "{name}: {facts:?}");
        }
        assert_eq!(facts.facts["pid"], std::process::id().to_string());
    }
}
