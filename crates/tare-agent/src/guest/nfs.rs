//! A folder that the machines of an arm share by NFS: the first machine's kernel serves it, the others mount it.
//!
//! The kernel's server asks a daemon which host may mount what, over `/proc/net/rpc/*/channel`. A machine that Tare
//! made has no daemon, so the answers are written in advance and never expire. Their grammar is that of `ip_map_parse`
//! (`net/sunrpc/svcauth_unix.c`), `expkey_parse` and `svc_export_parse` (`fs/nfsd/export.c`).
//! Limits: NFS 4.2 over TCP only; the files lie in the serving machine's memory.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use tare_model::guest::SHARED_FOLDER;

use super::wait_for;
use crate::launch::sys;

/// The folder's number: 0, the root of the server's name space, because a file system in memory has no device. The time
/// is the largest that every kernel accepts.
const FOLDER_OF_NUMBER: &str = "tare 1 \\x00000000 2147483647 /tare-shared\n";

/// Who may do what with the folder: read and write as root, from any port, without checks that a file is below it, with
/// a number (`NFSEXP_INSECURE_PORT`, `NFSEXP_NOSUBTREECHECK` and `NFSEXP_FSID` of `linux/nfsd/export.h`).
const RIGHTS: &str = "tare /tare-shared 2147483647 9218 65534 65534 0\n";

/// Where the kernel notes its clients, if no daemon does.
const CLIENTS: &str = "/var/lib/nfs/v4recovery";

/// The hosts of a network other than `own`, and the first of all.
fn hosts(own: Ipv4Addr, prefix_bits: u8) -> (Ipv4Addr, Vec<Ipv4Addr>) {
    let size = u32::MAX.checked_shr(u32::from(prefix_bits)).unwrap_or(0);
    let network = own.to_bits() & !size;
    let all = (1..size).map(|host| Ipv4Addr::from_bits(network | host));
    let others = all.filter(|host| *host != own).collect();
    (Ipv4Addr::from_bits(network | 1), others)
}

/// Serves the folder if this machine is the first of its network, else mounts it.
pub(super) fn share(own: Ipv4Addr, prefix_bits: u8) -> Result<(), String> {
    let (first, others) = hosts(own, prefix_bits);
    if first == own {
        return serve(&others).map_err(|why| format!("cannot serve a folder by NFS: {why}"));
    }
    let options = format!("vers=4.2,proto=tcp,addr={first},clientaddr={own}");
    let source = format!("{first}:/");
    let mut refusal = String::new();
    wait_for("the first machine's NFS server", || {
        sys::mount(
            OsStr::new(&source),
            Path::new(SHARED_FOLDER),
            "nfs4",
            0,
            &options,
        )
        .map_err(|error| refusal = error.to_string())
        .ok()
    })
    .map_err(|late| format!("{late}: {refusal}"))
}

fn serve(clients: &[Ipv4Addr]) -> Result<(), String> {
    let at = |path: &str, error: &io::Error| format!("{path}: {error}");
    let mount = |kind: &str, path: &str| {
        sys::mount(OsStr::new(kind), Path::new(path), kind, 0, "").map_err(|error| at(path, &error))
    };
    let write = |path: &str, line: &str| fs::write(path, line).map_err(|error| at(path, &error));
    mount("tmpfs", SHARED_FOLDER)?;
    mount("nfsd", "/proc/fs/nfsd")?;
    fs::create_dir_all(CLIENTS).map_err(|error| at(CLIENTS, &error))?;
    // The first address makes the client `tare` known to the other answers.
    for client in clients {
        let line = format!("nfsd {client} 2147483647 tare\n");
        write("/proc/net/rpc/auth.unix.ip/channel", &line)?;
    }
    write("/proc/net/rpc/nfsd.fh/channel", FOLDER_OF_NUMBER)?;
    write("/proc/net/rpc/nfsd.export/channel", RIGHTS)?;
    write("/proc/fs/nfsd/versions", "-2 -3 +4 +4.1 +4.2\n")?;
    // The least that the kernel accepts, seconds: no client of an earlier server has locks to reclaim.
    write("/proc/fs/nfsd/nfsv4gracetime", "10\n")?;
    write("/proc/fs/nfsd/portlist", "tcp 2049\n")?;
    write("/proc/fs/nfsd/threads", "8\n")?;
    // Kernels that cannot note their clients refuse; the first file is then opened only after the grace period.
    let _ = write("/proc/fs/nfsd/v4_end_grace", "Y\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_host_serves_all_others_of_its_network() {
        let own = Ipv4Addr::new(198, 51, 100, 3);
        let (first, others) = hosts(own, 24);
        assert_eq!(first, Ipv4Addr::new(198, 51, 100, 1));
        assert_eq!(others.len(), 253);
        assert!(!others.contains(&own));
        assert_eq!(hosts(own, 32), (own, vec![]));
    }

    #[test]
    fn the_shared_folder_is_the_one_served() {
        for line in [FOLDER_OF_NUMBER, RIGHTS] {
            assert!(line.split_whitespace().any(|word| word == SHARED_FOLDER));
        }
    }
}
