//! An allow-list as a search tree over the numbers of the system calls.
//!
//! `seccompiler` asks for one call after the other, with five instructions for each. The kernel checks and
//! compiles all of them when a filter is installed, and then runs the filter once for every number there
//! is, to remember which calls are always allowed: about a millisecond of every sandbox's start. The crate
//! has no other way to lay a filter out. A list without conditions on arguments is no more than a few
//! ranges of numbers, and among their borders a handful of comparisons finds any number. The deny-list looks
//! at arguments and stays with the crate.

use std::collections::BTreeSet;
use std::io;

use seccompiler::{BackendError, BpfProgram, Error, SeccompAction, TargetArch, sock_filter};

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;

/// Where the kernel's `struct seccomp_data` has the number of the call, and the architecture.
const NUMBER: u32 = std::mem::offset_of!(libc::seccomp_data, nr) as u32;
const ARCHITECTURE: u32 = std::mem::offset_of!(libc::seccomp_data, arch) as u32;

/// The longest program that the kernel takes.
const MAX_LEN: usize = libc::BPF_MAXINSNS as usize;

/// Makes the filter that allows `calls` and answers every other with `otherwise`. A call of another
/// architecture than `arch`, whose numbers mean other calls, kills the process.
///
/// # Errors
/// A call has a number that the kernel cannot see, or the filter is longer than the kernel takes.
pub(super) fn compile(
    calls: &BTreeSet<libc::c_long>,
    otherwise: SeccompAction,
    arch: TargetArch,
) -> Result<BpfProgram, Error> {
    let borders = borders(calls)?;
    let mut program = Backwards::default();
    let allow = program.push(RETURN, SeccompAction::Allow.into());
    // Of the two answers this one is first, because without a single border it is the whole tree.
    let refuse = program.push(RETURN, otherwise.into());
    program.push_tree(&borders, refuse, allow)?;
    let load_number = program.push(LOAD, NUMBER);
    let kill = program.push(RETURN, SeccompAction::KillProcess.into());
    program.push_branch(IF_EQUAL, audit_value(arch), load_number, kill)?;
    program.push(LOAD, ARCHITECTURE);
    Ok(program.finish()?)
}

/// The numbers at which the answer changes: below the first calls are refused, from it on allowed, from the
/// second on refused again.
fn borders(calls: &BTreeSet<libc::c_long>) -> Result<Vec<u32>, Error> {
    let mut borders = Vec::new();
    for &call in calls {
        let number = u32::try_from(call).map_err(|_| no_such_number(call))?;
        // A range ends where the next one starts: they are one.
        if borders.last() == Some(&number) {
            borders.pop();
        } else {
            borders.push(number);
        }
        // Nothing is above the greatest number.
        borders.extend(number.checked_add(1));
    }
    Ok(borders)
}

fn no_such_number(call: libc::c_long) -> Error {
    Error::Seccomp(io::Error::new(io::ErrorKind::InvalidInput, format!("no system call has number {call}")))
}

/// What the kernel calls an architecture, `AUDIT_ARCH_…` in `linux/audit.h`: its number in ELF headers, and
/// the marks of 64 bits and of little-endian. The crate keeps its own to itself.
fn audit_value(arch: TargetArch) -> u32 {
    let machine = match arch {
        TargetArch::x86_64 => libc::EM_X86_64,
        TargetArch::aarch64 => libc::EM_AARCH64,
        TargetArch::riscv64 => libc::EM_RISCV,
    };
    u32::from(machine) | 0x8000_0000 | 0x4000_0000
}

/// A program that is written from its end: jumps go forward only, so that their targets stand before they do.
#[derive(Default)]
struct Backwards(Vec<sock_filter>);

/// An instruction, counted from the program's end.
#[derive(Clone, Copy)]
struct Place(usize);

impl Backwards {
    fn push(&mut self, code: u16, k: u32) -> Place {
        self.push_instruction(sock_filter { code, jt: 0, jf: 0, k })
    }

    /// Finds the answer among `borders`: `below` the first of them, `above` it up to the second, and so on
    /// in turn.
    fn push_tree(&mut self, borders: &[u32], below: Place, above: Place) -> Result<Place, BackendError> {
        let middle = borders.len() / 2;
        let Some(border) = borders.get(middle) else {
            return Ok(below);
        };
        let (until, from) = if middle.is_multiple_of(2) { (below, above) } else { (above, below) };
        let greater = self.push_tree(&borders[middle + 1..], from, until)?;
        let less = self.push_tree(&borders[..middle], below, above)?;
        self.push_branch(IF_AT_LEAST, *border, greater, less)
    }

    fn push_branch(&mut self, code: u16, k: u32, yes: Place, no: Place) -> Result<Place, BackendError> {
        let yes = self.within_reach(yes)?;
        let no = self.within_reach(no)?;
        let (jt, jf) = (self.distance(yes)?, self.distance(no)?);
        Ok(self.push_instruction(sock_filter { code, jt, jf, k }))
    }

    /// The target itself or, where a branch's eight bits do not get there, a jump to it, which has 32.
    fn within_reach(&mut self, target: Place) -> Result<Place, BackendError> {
        // One is left for the jump that the branch's other side may need in between.
        let near = self.distance::<u8>(target).is_ok_and(|distance| distance < u8::MAX);
        if near { Ok(target) } else { Ok(self.push(JUMP, self.distance(target)?)) }
    }

    /// How many instructions lie between the next one to be pushed and the target.
    fn distance<T: TryFrom<usize>>(&self, target: Place) -> Result<T, BackendError> {
        T::try_from(self.0.len() - target.0 - 1).map_err(|_| BackendError::FilterTooLarge(self.0.len()))
    }

    fn push_instruction(&mut self, instruction: sock_filter) -> Place {
        self.0.push(instruction);
        Place(self.0.len() - 1)
    }

    /// The program from its beginning. One that is too long must end here: `seccompiler::apply_filter` would
    /// cut its length to 16 bits.
    fn finish(mut self) -> Result<BpfProgram, BackendError> {
        if self.0.len() > MAX_LEN {
            return Err(BackendError::FilterTooLarge(self.0.len()));
        }
        self.0.reverse();
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use seccompiler::SeccompFilter;

    use super::super::{ARCH, Rules, allowed};
    use super::*;

    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;

    const ARCHS: [TargetArch; 3] = [TargetArch::x86_64, TargetArch::aarch64, TargetArch::riscv64];

    /// `int 0x80` on x86-64 comes with this one.
    const AUDIT_ARCH_I386: u32 = 3 | 0x4000_0000;

    fn enosys() -> SeccompAction {
        SeccompAction::Errno(libc::ENOSYS.unsigned_abs())
    }

    fn tree_of(calls: impl IntoIterator<Item = libc::c_long>) -> BpfProgram {
        compile(&calls.into_iter().collect(), enosys(), ARCH).unwrap()
    }

    fn chain_of(calls: impl IntoIterator<Item = libc::c_long>, arch: TargetArch) -> BpfProgram {
        let rules: Rules = calls.into_iter().map(|call| (call, Vec::new())).collect();
        SeccompFilter::new(rules, enosys(), SeccompAction::Allow, arch).unwrap().try_into().unwrap()
    }

    /// Runs a filter as the kernel would and returns its answer. The codes are those of `linux/filter.h`, and
    /// not the names from above, so that a mistake in those shows.
    fn run(program: &[sock_filter], number: u32, arch: u32) -> u32 {
        let mut accumulator = 0;
        let mut next = 0;
        loop {
            let sock_filter { code, jt, jf, k } = program[next].clone();
            next += 1;
            let branch = |condition: bool| usize::from(if condition { jt } else { jf });
            match code {
                0x20 if k == 0 => accumulator = number,
                0x20 if k == 4 => accumulator = arch,
                0x05 => next += usize::try_from(k).unwrap(),
                0x15 => next += branch(accumulator == k),
                0x35 => next += branch(accumulator >= k),
                0x06 => return k,
                _ => panic!("instruction {code:#x} with {k}"),
            }
        }
    }

    /// All numbers that Linux uses with room above, the same ones of x32, and those where signs change.
    fn numbers() -> impl Iterator<Item = u32> {
        let x32 = 0x4000_0000;
        let edges = [i32::MAX as u32 - 1, i32::MAX as u32, 1 << 31, (1 << 31) + 1, u32::MAX - 1, u32::MAX];
        (0..=1100).chain(x32 - 1..x32 + 1100).chain(edges)
    }

    #[track_caller]
    fn assert_allows_exactly(calls: &BTreeSet<libc::c_long>) {
        let program = tree_of(calls.iter().copied());
        for number in numbers() {
            let expected = if calls.contains(&libc::c_long::from(number)) { ALLOW } else { REFUSE };
            assert_eq!(run(&program, number, audit_value(ARCH)), expected, "call {number}");
            assert_eq!(run(&program, number, AUDIT_ARCH_I386), KILL, "call {number} by another entry");
        }
    }

    #[test]
    fn the_tree_of_our_list_allows_what_is_on_it_and_nothing_else() {
        assert_allows_exactly(&allowed::calls());
    }

    #[test]
    fn any_set_of_calls_is_allowed_exactly() {
        let sets: [&mut dyn Iterator<Item = libc::c_long>; 10] = [
            &mut std::iter::empty(),
            &mut std::iter::once(0),
            &mut std::iter::once(7),
            &mut std::iter::once(libc::c_long::from(u32::MAX)),
            &mut (0..500),
            &mut (3..=3 + 1000),
            &mut (0..=1000).step_by(2),
            &mut (1..=1000).step_by(2),
            &mut (0..=1000).filter(|call| call % 7 < 3),
            &mut (0..=1000).filter(|call| call * call % 11 > 4),
        ];
        for set in sets {
            assert_allows_exactly(&set.collect());
        }
    }

    #[test]
    fn the_tree_answers_like_the_chain_that_seccompiler_makes() {
        let calls = allowed::calls();
        for arch in ARCHS {
            let tree = compile(&calls, enosys(), arch).unwrap();
            let chain = chain_of(calls.iter().copied(), arch);
            for from in ARCHS.map(audit_value).into_iter().chain([AUDIT_ARCH_I386, 0, u32::MAX]) {
                for number in numbers() {
                    let answers = [&tree, &chain].map(|program| run(program, number, from));
                    assert_eq!(answers[0], answers[1], "{arch:?}, call {number} from {from:#x}");
                }
            }
        }
    }

    #[test]
    fn the_tree_of_our_list_is_less_than_a_quarter_of_the_chain() {
        let (tree, chain) = (tree_of(allowed::calls()), chain_of(allowed::calls(), ARCH));
        assert!(tree.len() * 4 < chain.len(), "{} and {} instructions", tree.len(), chain.len());
    }

    #[test]
    fn a_target_that_a_branch_cannot_reach_is_reached_by_a_jump() {
        assert!(tree_of((0..=1000).step_by(2)).iter().any(|instruction| instruction.code == JUMP));
        // Some of these have targets that are just within reach, and some just not.
        for end in 0..1000 {
            let program = tree_of((0..end).step_by(2));
            for number in 0..=1000 {
                let expected = if number % 2 == 0 && i64::from(number) < end { ALLOW } else { REFUSE };
                assert_eq!(run(&program, number, audit_value(ARCH)), expected, "call {number} below {end}");
            }
        }
    }

    #[test]
    fn a_number_that_the_kernel_cannot_see_is_an_error() {
        for call in [-1, 1 << 32] {
            let refused = compile(&BTreeSet::from([call]), enosys(), ARCH);
            assert!(matches!(refused, Err(Error::Seccomp(_))), "{call}: {refused:?}");
        }
    }

    #[test]
    fn a_program_longer_than_the_kernel_takes_is_an_error() {
        // Past 16 bits as well, where a length cut to 16 would look right again.
        for count in [5_000, 70_000] {
            let refused = compile(&(0..count).step_by(2).collect(), enosys(), ARCH);
            assert!(matches!(refused, Err(Error::Backend(BackendError::FilterTooLarge(_)))));
        }
    }
}
