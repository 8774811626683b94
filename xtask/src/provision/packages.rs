//! Installs packages of the distribution and targets of Rust.

use anyhow::{Result, bail};

use xtask_build::dist;
use xtask_build::shell::{program, step};

/// Programs that the tests run, each with the Debian package that contains it.
const NEEDED: &[(&str, &str)] = &[
    // Not programs, but files that a program needs; an absolute path is checked as is.
    (
        "/usr/lib/python3/dist-packages/numpy/__init__.py",
        "python3-numpy",
    ),
    (
        "/usr/share/doc/libopenblas0-pthread/copyright",
        "libopenblas0-pthread",
    ),
    ("/usr/share/doc/python3-venv", "python3-venv"),
    ("/usr/lib/wine/wine64", "wine64"),
    (
        "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
        "fonts-dejavu-core",
    ),
    // Also needed by a paper's tables.
    (
        "/usr/share/texlive/texmf-dist/tex/latex/booktabs/booktabs.sty",
        "texlive-latex-recommended",
    ),
    (
        "/usr/share/texlive/texmf-dist/tex/latex/siunitx/siunitx.sty",
        "texlive-science",
    ),
    ("bindfs", "bindfs"),
    ("busybox", "busybox-static"),
    ("chromium", "chromium"),
    ("cpio", "cpio"),
    ("crun", "crun"),
    ("dockerd", "docker.io"),
    ("fio", "fio"),
    ("fuse-overlayfs", "fuse-overlayfs"),
    ("git", "git"),
    ("hpcc", "hpcc"),
    ("iperf3", "iperf3"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mpirun", "openmpi-bin"),
    ("musl-gcc", "musl-tools"),
    ("nc", "netcat-openbsd"),
    ("newuidmap", "uidmap"),
    ("pdflatex", "texlive-latex-base"),
    ("perl", "perl"),
    ("php", "php-cli"),
    ("ping", "iputils-ping"),
    ("podman", "podman"),
    ("python3", "python3"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("redis-benchmark", "redis-tools"),
    ("redis-server", "redis-server"),
    ("runc", "runc"),
    ("setpriv", "util-linux"),
    ("slirp4netns", "slirp4netns"),
    ("sockperf", "sockperf"),
    ("ssh", "openssh-client"),
    ("sshd", "openssh-server"),
    ("sshfs", "sshfs"),
    ("strace", "strace"),
    ("stress-ng", "stress-ng"),
    ("sysbench", "sysbench"),
    ("unshare", "util-linux"),
    ("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64-win32"),
];

/// The kernel that virtual machines boot; a container image has none.
const KERNEL: &str = "linux-image-cloud-amd64";

/// Whether there is a readable kernel.
fn has_kernel() -> bool {
    let entries = std::fs::read_dir("/boot").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("vmlinuz-"))
        .any(|entry| std::fs::File::open(entry.path()).is_ok())
}

/// Installs what is missing; needs root only if something is.
pub(crate) fn ensure() -> Result<()> {
    let mut missing: Vec<&str> = NEEDED
        .iter()
        .filter(|(name, _)| !has(name))
        .map(|(_, package)| *package)
        .collect();
    if !has_kernel() {
        missing.push(KERNEL);
    }
    if !missing.is_empty() {
        step(&format!("installing {}", missing.join(", ")));
        if !has("apt-get") {
            bail!(
                "`apt-get` is not here; install by hand what corresponds to: {}",
                missing.join(", ")
            );
        }
        let quiet = |arguments: &[&str]| {
            program("apt-get", arguments)
                .variable("DEBIAN_FRONTEND", "noninteractive")
                .output()
        };
        quiet(&["update", "-q"])?;
        quiet(
            &[
                &["install", "-q", "-y", "--no-install-recommends"][..],
                &missing,
            ]
            .concat(),
        )?;
    }
    for triple in [
        "x86_64-unknown-linux-musl",
        "x86_64-pc-windows-gnu",
        "aarch64-pc-windows-gnullvm",
    ] {
        // What needs an unavailable target reports it.
        let _ = dist::is_installed(triple) || dist::add(triple);
    }
    Ok(())
}

/// Whether a program is on `PATH` or in the system folders that a user's `PATH` may lack.
pub(crate) fn has(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| folder.join(name).exists())
}
