//! Derives HPCC's problem: the size of the matrix and the arrangement of the processes.
//!
//! The rule, from the number of nodes, the processes on each and the memory of each:
//! - there are `nodes × cores` processes, arranged as P × Q with P ≤ Q and P the largest possible divisor, because
//!   HPL prefers a grid that is as square as possible with fewer rows than columns (HPL's tuning notes);
//! - the matrix of N × N numbers of 8 bytes fills 80 % of the memory of all nodes, the usual advice, which leaves the
//!   rest to the system and to MPI's buffers; N is then scaled and rounded down to whole blocks of NB, because a
//!   partial block takes as long as a whole one.
//!
//! HPCC derives the sizes of its other tests from N. Equal parameters therefore give an equal problem on every
//! machine, without asking the machine.

use tare_model::whole_part;

/// The part of the memory that the matrix fills.
const FILL: f64 = 0.8;
/// Bytes of one number.
const NUMBER_BYTES: f64 = 8.0;

/// The problem that HPL solves, and the process grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Order of the matrix.
    pub n: u64,
    /// Order of its blocks.
    pub nb: u64,
    /// Rows of the grid of processes.
    pub p: u64,
    /// Columns of the grid of processes.
    pub q: u64,
}

impl Problem {
    /// The problem for this many nodes with this many processes and mebibytes each, at `scale` percent of the largest
    /// order; `None` if not even one block fits.
    pub fn derive(nodes: u64, cores: u64, memory_mib: u64, nb: u64, scale: u64) -> Option<Self> {
        let numbers = (nodes * memory_mib) as f64 * f64::from(1 << 20) * FILL / NUMBER_BYTES;
        let largest = numbers.sqrt() * scale as f64 / 100.0;
        let n = (whole_part(largest) / nb) * nb;
        let (p, q) = grid(nodes * cores);
        (n > 0).then_some(Self { n, nb, p, q })
    }

    /// The number of processes.
    pub fn processes(&self) -> u64 {
        self.p.saturating_mul(self.q)
    }

    /// The input file. Each line is a value and its meaning; HPCC reads by position.
    pub fn input(&self) -> String {
        let Self { n, nb, p, q } = self;
        format!(
            "HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out  output file name
8        device out (a file)
1        # of problem sizes
{n}  Ns
1        # of NBs
{nb}  NBs
0        process mapping (row-major)
1        # of process grids
{p}  Ps
{q}  Qs
16.0     threshold of the residual
1        # of panel factorizations
2        PFACTs (right)
1        # of recursive stopping criteria
4        NBMINs
1        # of panels in recursion
2        NDIVs
1        # of recursive panel factorizations
1        RFACTs (Crout)
1        # of broadcasts
1        BCASTs (increasing ring, modified)
1        # of lookahead depths
1        DEPTHs
2        SWAP (mix)
64       swapping threshold
0        L1 in transposed form
0        U in transposed form
1        equilibration
8        memory alignment in numbers
##### This line is ignored: it separates the tests. #####
0        # of additional problem sizes for PTRANS
1200     values of N
0        # of additional blocking sizes for PTRANS
40       values of NB
"
        )
    }

    /// Parses an input file written by [`Problem::input`].
    pub fn of_input(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let value = |line: usize| {
            let first = lines.get(line)?.split_whitespace().next()?;
            first.parse().ok()
        };
        Some(Self {
            n: value(5)?,
            nb: value(7)?,
            p: value(10)?,
            q: value(11)?,
        })
    }
}

/// The most square grid with no more rows than columns.
fn grid(processes: u64) -> (u64, u64) {
    let p = (1..=processes.isqrt())
        .rev()
        .find(|rows| processes.is_multiple_of(*rows))
        .unwrap_or(1);
    (p, processes / p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_grid_saturates_process_count() {
        let problem = Problem {
            n: 224,
            nb: 32,
            p: u64::MAX,
            q: 3,
        };
        assert_eq!(problem.processes(), u64::MAX);
    }

    #[test]
    fn grid_is_near_square_with_rows_at_most_columns() {
        for (processes, expected) in [
            (1, (1, 1)),
            (3, (1, 3)),
            (4, (2, 2)),
            (6, (2, 3)),
            (12, (3, 4)),
            (17, (1, 17)),
        ] {
            assert_eq!(grid(processes), expected);
        }
    }

    #[test]
    fn matrix_fits_memory_in_whole_blocks() {
        for nodes in [1, 2, 3, 7] {
            for cores in [1, 2, 8] {
                for memory_mib in [8, 100, 4096] {
                    for nb in [32, 64, 192] {
                        let Some(problem) = Problem::derive(nodes, cores, memory_mib, nb, 100)
                        else {
                            continue;
                        };
                        let all = (nodes * memory_mib) << 20;
                        assert!(problem.n * problem.n * 8 <= all * 8 / 10, "{problem:?}");
                        // One block more would not fit.
                        let more = problem.n + nb;
                        assert!(more * more * 8 > all * 8 / 10, "{problem:?}");
                        assert!(problem.n.is_multiple_of(nb));
                        assert_eq!(problem.processes(), nodes * cores);
                        assert!(problem.p <= problem.q);
                    }
                }
            }
        }
    }

    #[test]
    fn scale_shrinks_order_and_below_one_block_is_none() {
        let full = Problem::derive(3, 1, 1024, 64, 100).unwrap();
        let tenth = Problem::derive(3, 1, 1024, 64, 10).unwrap();
        assert_eq!((full.n, tenth.n), (17_920, 1_792));
        assert_eq!(Problem::derive(1, 1, 1, 512, 1), None);
    }

    #[test]
    fn an_input_file_can_be_read_back() {
        let problem = Problem::derive(3, 2, 512, 64, 20).unwrap();
        let text = problem.input();
        assert_eq!(Problem::of_input(&text), Some(problem));
        assert!(text.lines().nth(31).unwrap().contains("ignored"));
        assert_eq!(Problem::of_input("x\n"), None);
    }
}
