//! Assembles a classic BPF program from a list of verdicts by syscall number.
//!
//! Structure: check the architecture; on x86_64 reject x32 numbers; return ENOSYS above the highest number in the
//! list (as runc does, so that programs fall back instead of giving up); then a balanced search over ranges of
//! adjacent numbers with the same answer. Since Linux 5.11 the kernel evaluates the program once for each number and
//! caches "always allowed" in a bitmap, so the structure matters only for syscalls whose arguments are tested and on
//! older kernels; the program uses no instruction that the kernel's evaluation refuses.
//! Limits: does not see arguments behind pointers. Unlike Docker's, it has no list for 32-bit programs: they get
//! EPERM for every syscall.

use std::collections::BTreeMap;

use tare_model::call_list::{Action, ArgumentTest};

use super::profile::{Profile, Verdict};

/// `AUDIT_ARCH_…` of this architecture (include/uapi/linux/audit.h).
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
/// `AUDIT_ARCH_…` of this architecture (include/uapi/linux/audit.h).
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
/// Not supported: [`compile`] refuses.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;

/// Numbers from here on belong to the x32 ABI.
const X32_BIT: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const RETURN: u16 = 0x06;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const IF_GREATER: u16 = 0x25;

/// The longest program that the kernel accepts (`BPF_MAXINSNS`).
const LONGEST: usize = 4096;
/// Most instructions of an argument test: both halves are loaded, masked and compared.
const TEST: usize = 6;
/// The longest rule: a failed test jumps over the rest of it, and conditional jumps reach only this far.
const LONGEST_RULE: usize = 255;

/// One instruction in the kernel's layout.
pub(super) type Instruction = libc::sock_filter;

/// Reason for not producing a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CompileError {
    /// The syscall numbers of this architecture are not known.
    Architecture,
    /// The program or a rule would have this many instructions.
    TooLong(usize),
}

/// Returns the action that fails with this error number.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "errors have numbers up to 4095"
)]
pub(super) const fn errno(number: libc::c_int) -> Action {
    Action::Errno(number as u16)
}

fn plain(code: u16, k: u32) -> Instruction {
    Instruction {
        code,
        jt: 0,
        jf: 0,
        k,
    }
}

fn branch(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

fn answer(action: Action) -> Instruction {
    let value = match action {
        Action::Allow => libc::SECCOMP_RET_ALLOW,
        Action::Errno(number) => libc::SECCOMP_RET_ERRNO | u32::from(number),
    };
    plain(RETURN, value)
}

/// Returns the offset of a half of an argument, in the machine's byte order.
fn half(index: u32, is_high: bool) -> u32 {
    let second = is_high == cfg!(target_endian = "little");
    ARGUMENTS + 8 * index + if second { 4 } else { 0 }
}

/// Compiles a test: falls through if it holds, else jumps `otherwise` instructions beyond its end.
fn test_code(test: &ArgumentTest, otherwise: usize) -> Vec<Instruction> {
    let low = |word: u64| (word & 0xffff_ffff) as u32;
    let halves = [
        (true, low(test.mask >> 32), low(test.value >> 32)),
        (false, low(test.mask), low(test.value)),
    ];
    let mut code = Vec::new();
    for (is_high, mask, value) in halves {
        if mask == 0 && value == 0 {
            continue;
        }
        code.push(plain(LOAD, half(test.index, is_high)));
        if mask != u32::MAX {
            code.push(plain(AND, mask));
        }
        code.push(branch(IF_EQUAL, value, 0, 0));
    }
    // Every failed comparison jumps to the same place.
    let length = code.len();
    for (position, instruction) in code.iter_mut().enumerate() {
        if instruction.code == IF_EQUAL {
            let distance = length - position - 1 + otherwise;
            instruction.jf = u8::try_from(distance).unwrap_or(u8::MAX);
        }
    }
    code
}

fn verdict_code(verdict: &Verdict, default: Action) -> Vec<Instruction> {
    let mut code = Vec::new();
    for (tests, action) in &verdict.rules {
        // From the last test to the first, since each must know how much code follows it.
        let mut rule = vec![answer(*action)];
        for test in tests.iter().rev() {
            let mut front = test_code(test, rule.len());
            front.append(&mut rule);
            rule = front;
        }
        code.append(&mut rule);
        if tests.is_empty() {
            return code;
        }
    }
    code.push(answer(default));
    code
}

/// The verdict for the numbers from `first` up to the next range's first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Range {
    first: u32,
    verdict: Verdict,
}

fn ranges(verdicts: &BTreeMap<u32, Verdict>, default: Action, highest: u32) -> Vec<Range> {
    let nothing = Verdict {
        rules: vec![(Vec::new(), default)],
    };
    let mut ranges: Vec<Range> = Vec::new();
    for number in 0..=highest {
        let verdict = verdicts.get(&number).unwrap_or(&nothing);
        if ranges.last().is_none_or(|last| last.verdict != *verdict) {
            ranges.push(Range {
                first: number,
                verdict: verdict.clone(),
            });
        }
    }
    ranges
}

fn search(ranges: &[Range], default: Action) -> Vec<Instruction> {
    if let [only] = ranges {
        return verdict_code(&only.verdict, default);
    }
    let (left, right) = ranges.split_at(ranges.len() / 2);
    let first = right[0].first;
    let left = search(left, default);
    let right = search(right, default);
    let mut code = Vec::with_capacity(left.len() + right.len() + 2);
    if let Ok(distance) = u8::try_from(left.len()) {
        code.push(branch(IF_AT_LEAST, first, distance, 0));
    } else {
        // Conditional jumps reach 255 instructions; the unconditional one has no such limit.
        code.push(branch(IF_AT_LEAST, first, 0, 1));
        let distance = u32::try_from(left.len()).unwrap_or(u32::MAX);
        code.push(plain(JUMP, distance));
    }
    code.extend(left);
    code.extend(right);
    code
}

/// Compiles the program for a profile; syscalls that are not in it get `default`.
pub(super) fn compile(
    profile: &Profile,
    default: Action,
) -> Result<Vec<Instruction>, CompileError> {
    if ARCHITECTURE == 0 {
        return Err(CompileError::Architecture);
    }
    let rules = profile.verdicts.values().flat_map(|of| &of.rules);
    let most_tests = rules.map(|(tests, _)| tests.len()).max().unwrap_or(0);
    if TEST * most_tests >= LONGEST_RULE {
        return Err(CompileError::TooLong(TEST * most_tests));
    }
    let no_such_call = answer(errno(libc::ENOSYS));
    let mut code = vec![
        plain(LOAD, ARCH),
        branch(IF_EQUAL, ARCHITECTURE, 1, 0),
        answer(errno(libc::EPERM)),
        plain(LOAD, NUMBER),
    ];
    if cfg!(target_arch = "x86_64") {
        code.extend([branch(IF_AT_LEAST, X32_BIT, 0, 1), no_such_call]);
    }
    code.extend([branch(IF_GREATER, profile.highest, 0, 1), no_such_call]);
    code.extend(search(
        &ranges(&profile.verdicts, default, profile.highest),
        default,
    ));
    if code.len() > LONGEST {
        return Err(CompileError::TooLong(code.len()));
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use tare_model::call_list::{Machine, of_docker};

    use super::super::profile::read;
    use super::super::table::number;
    use super::*;

    /// Runs a program as the kernel does; panics where the kernel would refuse to load it.
    fn run(code: &[Instruction], architecture: u32, nr: u32, arguments: [u64; 6]) -> u32 {
        let (mut at, mut register) = (0usize, 0u32);
        loop {
            let instruction = code[at];
            at += 1;
            let jump = |condition: bool| {
                usize::from(if condition {
                    instruction.jt
                } else {
                    instruction.jf
                })
            };
            match instruction.code {
                LOAD if instruction.k == NUMBER => register = nr,
                LOAD if instruction.k == ARCH => register = architecture,
                LOAD => {
                    let offset = instruction.k - ARGUMENTS;
                    let bytes = arguments[offset as usize / 8].to_ne_bytes();
                    let start = offset as usize % 8;
                    register = u32::from_ne_bytes(bytes[start..start + 4].try_into().unwrap());
                }
                AND => register &= instruction.k,
                JUMP => at += instruction.k as usize,
                IF_EQUAL => at += jump(register == instruction.k),
                IF_AT_LEAST => at += jump(register >= instruction.k),
                IF_GREATER => at += jump(register > instruction.k),
                RETURN => return instruction.k,
                other => panic!("code {other:#x}"),
            }
        }
    }

    fn docker(capabilities: &[String]) -> (Profile, Vec<Instruction>) {
        let machine = Machine {
            capabilities,
            kernel: "6.1",
        };
        let profile = read(of_docker(tare_model::launch::DockerRelease::V20), machine).unwrap();
        let code = compile(&profile, Action::Errno(1)).unwrap();
        (profile, code)
    }

    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

    #[test]
    fn the_program_answers_every_number_as_the_list_does() {
        for capabilities in [vec![], vec!["CAP_SYS_ADMIN".to_owned()]] {
            let (profile, code) = docker(&capabilities);
            for nr in 0..=profile.highest + 50 {
                for argument in [
                    0,
                    8,
                    0x2_0000,
                    0x2_0008,
                    0xffff_ffff,
                    u64::MAX,
                    0x11,
                    1 << 40,
                ] {
                    let mut expected = match profile.verdicts.get(&nr) {
                        _ if nr > profile.highest => ENOSYS,
                        None => EPERM,
                        Some(verdict) => verdict
                            .rules
                            .iter()
                            .find(|(tests, _)| {
                                tests.iter().all(|test| argument & test.mask == test.value)
                            })
                            .map_or(EPERM, |(_, action)| match action {
                                Action::Allow => ALLOW,
                                Action::Errno(number) => {
                                    libc::SECCOMP_RET_ERRNO | u32::from(*number)
                                }
                            }),
                    };
                    if cfg!(target_arch = "x86_64") && nr >= X32_BIT {
                        expected = ENOSYS;
                    }
                    let arguments = [argument, 0, 0, 0, 0, 0];
                    assert_eq!(
                        run(&code, ARCHITECTURE, nr, arguments),
                        expected,
                        "call {nr}, argument {argument:#x}"
                    );
                }
            }
        }
    }

    #[test]
    fn seccomp_clone_denies_namespaces_and_allows_fork() {
        let (_, code) = docker(&[]);
        let clone = number("clone").unwrap();
        let fork = libc::SIGCHLD as u64;
        let call = |flags: u64| run(&code, ARCHITECTURE, clone, [flags, 0, 0, 0, 0, 0]);
        assert_eq!(call(fork), ALLOW);
        for flag in [
            libc::CLONE_NEWUSER,
            libc::CLONE_NEWNS,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWNET,
        ] {
            let flags = fork | u64::from(flag.cast_unsigned());
            assert_eq!(call(flags), EPERM, "{flag:#x}");
        }
    }

    #[test]
    fn other_architectures_and_x32_get_no_call_at_all() {
        let (_, code) = docker(&[]);
        let getppid = number("getppid").unwrap();
        assert_eq!(run(&code, ARCHITECTURE, getppid, [0; 6]), ALLOW);
        assert_eq!(run(&code, 0x4000_0003, getppid, [0; 6]), EPERM);
        assert_eq!(run(&code, ARCHITECTURE, X32_BIT | getppid, [0; 6]), ENOSYS);
    }

    #[test]
    fn bpf_tree_longer_than_a_jump_reaches_right_branch() {
        let verdicts: BTreeMap<u32, Verdict> = (0..900u16)
            .map(|nr| {
                let rules = vec![(Vec::new(), Action::Errno(nr % 4000 + 2))];
                (nr.into(), Verdict { rules })
            })
            .collect();
        let profile = Profile {
            verdicts,
            highest: 899,
            skipped: Vec::new(),
        };
        let code = compile(&profile, Action::Allow).unwrap();
        for nr in 0..900 {
            let expected = libc::SECCOMP_RET_ERRNO | (nr % 4000 + 2);
            assert_eq!(run(&code, ARCHITECTURE, nr, [0; 6]), expected);
        }
    }

    #[test]
    fn bpf_rule_too_long_for_a_jump_is_an_error() {
        let compiled = |n_tests: usize| {
            let tests = (0..n_tests).map(|_| ArgumentTest {
                index: 0,
                mask: u64::MAX - 1,
                value: 2 << 40 | 2,
            });
            let rules = vec![(tests.collect(), Action::Allow)];
            let profile = Profile {
                verdicts: BTreeMap::from([(0, Verdict { rules })]),
                highest: 0,
                skipped: Vec::new(),
            };
            compile(&profile, Action::Errno(1))
        };
        let code = compiled(42).unwrap();
        assert_eq!(run(&code, ARCHITECTURE, 0, [2 << 40 | 3; 6]), ALLOW);
        assert_eq!(run(&code, ARCHITECTURE, 0, [3 << 40 | 3; 6]), EPERM);
        for n_tests in [43, 60, 1_000] {
            let refused = compiled(n_tests).unwrap_err();
            assert_eq!(refused, CompileError::TooLong(6 * n_tests));
        }
    }
}
