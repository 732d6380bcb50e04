//! How much a program may be given: what execve takes is checked before anything is sent or forked,
//! so that too much is refused with its size.

use rustix::process::{Resource, getrlimit};

use crate::spawn::{Program, SpawnError, SpawnFault};

/// The longest single argument or variable, its final zero included: the kernel's MAX_ARG_STRLEN,
/// 32 pages.
const STRING_PAGES: usize = 32;

/// All of them together take at least this: the kernel's ARG_MAX.
const LEAST_TOTAL: u64 = 128 << 10;

/// And at most this, however large the stack may be: three quarters of the kernel's default stack.
const MOST_TOTAL: u64 = 6 << 20;

impl Program {
    /// Whether the kernel can start a program with these arguments and this environment. An error
    /// names what is too large.
    pub fn check(&self) -> Result<(), SpawnError> {
        let longest = STRING_PAGES * rustix::param::page_size();
        let too_long = |what: &dyn std::fmt::Display, bytes: usize| {
            let most = longest - 1;
            let message = format!(
                "{what} is {bytes} bytes long, and the system takes {most} at most; put it in a file"
            );
            Err(SpawnError::new(SpawnFault::Request, message))
        };
        let mut total = 0;
        // Each string has a final zero and a pointer.
        let mut add = |bytes: usize| total += bytes + 1 + size_of::<usize>();
        for (n, argument) in self.argv.iter().enumerate() {
            if argument.len() >= longest {
                return too_long(&format_args!("argument {n} of the program"), argument.len());
            }
            add(argument.len());
        }
        for (name, value) in &self.env {
            let bytes = name.len() + 1 + value.len();
            if bytes >= longest {
                // A name can be what is too long.
                let start: String = name.chars().take(64).collect();
                return too_long(&format_args!("the variable `{start}`"), bytes);
            }
            add(bytes);
        }
        let most = total_bound();
        if total as u64 > most {
            let message = format!(
                "the program's arguments and environment take {total} bytes together, and the system \
                 takes {most} at most (a quarter of the stack's limit); pass less, or put it in a file"
            );
            return Err(SpawnError::new(SpawnFault::Request, message));
        }
        Ok(())
    }
}

/// What execve takes in all: a quarter of the stack's limit, within bounds.
fn total_bound() -> u64 {
    let stack = getrlimit(Resource::Stack).current.unwrap_or(u64::MAX);
    (stack / 4).clamp(LEAST_TOTAL, MOST_TOTAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::Size;

    fn program(argument: usize, times: usize, value: usize) -> Program {
        let argv = std::iter::repeat_n("x".repeat(argument), times).collect();
        let env = [("NAME".to_owned(), "y".repeat(value))].into();
        Program { argv, env, working_dir: "/".into(), size: Size { rows: 24, columns: 80 } }
    }

    #[test]
    fn what_the_kernel_would_refuse_is_refused_with_its_size() {
        let longest = STRING_PAGES * rustix::param::page_size() - 1;
        assert_eq!(program(longest, 1, 10).check(), Ok(()));
        let refused = |program: Program| program.check().unwrap_err();
        let error = refused(program(longest + 1, 1, 10));
        assert_eq!(error.fault, SpawnFault::Request);
        assert!(error.message.starts_with("argument 0 of the program is 131072 bytes"), "{error}");
        let error = refused(program(1, 1, longest));
        assert!(error.message.starts_with("the variable `NAME` is"), "{error}");
        let error = refused(program(100_000, 90, 10));
        assert!(error.message.contains("take 9000"), "{error}");
    }
}
