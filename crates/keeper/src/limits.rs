//! Limits on a program's arguments and environment: checked before anything is sent or forked, so
//! that an error names the size.

use rustix::process::{Resource, getrlimit};

use crate::environment::Environment;
use crate::spawn::{Program, SpawnError, SpawnFault};

/// The longest single argument or variable, including its terminating zero: the kernel's
/// MAX_ARG_STRLEN, 32 pages.
const STRING_PAGES: usize = 32;

/// The kernel always accepts this much in total: ARG_MAX.
const MIN_TOTAL: u64 = 128 << 10;

/// And never more than this, however large the stack limit: three quarters of the default stack.
const MAX_TOTAL: u64 = 6 << 20;

impl Environment {
    /// Checks that the kernel can start a program with this environment and no arguments.
    pub fn check(&self) -> Result<(), SpawnError> {
        check(&[], self)
    }
}

impl Program {
    /// Checks that the kernel can start a program with these arguments and this environment. An
    /// error names what is too large.
    pub fn check(&self) -> Result<(), SpawnError> {
        check(&self.argv, &self.env)
    }
}

fn check(argv: &[String], env: &Environment) -> Result<(), SpawnError> {
    let longest = STRING_PAGES * rustix::param::page_size();
    let too_long = |what: &dyn std::fmt::Display, bytes: usize| {
        let most = longest - 1;
        let message = format!(
            "{what} is {bytes} bytes long, but the system accepts at most {most}; put it in a file"
        );
        Err(SpawnError::new(SpawnFault::Request, message))
    };
    let mut total = 0;
    // Each string has a terminating zero and a pointer.
    let mut add = |bytes: usize| total += bytes + 1 + size_of::<usize>();
    for (n, argument) in argv.iter().enumerate() {
        if argument.len() >= longest {
            return too_long(&format_args!("argument {n} of the program"), argument.len());
        }
        add(argument.len());
    }
    for (name, value) in env.iter() {
        let bytes = name.len() + 1 + value.len();
        if bytes >= longest {
            // The name itself may be too long.
            let start: String = name.to_string_lossy().chars().take(64).collect();
            return too_long(&format_args!("the variable `{start}`"), bytes);
        }
        add(bytes);
    }
    let most = total_limit();
    if total as u64 > most {
        let message = format!(
            "the program's arguments and environment take {total} bytes together, but the system \
                 accepts at most {most} (a quarter of the stack limit); pass less, or put it in a file"
        );
        return Err(SpawnError::new(SpawnFault::Request, message));
    }
    Ok(())
}

/// The total that execve accepts: a quarter of the stack limit, within bounds.
fn total_limit() -> u64 {
    let stack = getrlimit(Resource::Stack).current.unwrap_or(u64::MAX);
    (stack / 4).clamp(MIN_TOTAL, MAX_TOTAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::Size;

    fn program(argument: usize, times: usize, value: usize) -> Program {
        let argv = std::iter::repeat_n("x".repeat(argument), times).collect();
        let env = [("NAME", "y".repeat(value))].into();
        Program { argv, env, working_dir: "/".into(), size: Size { rows: 24, columns: 80 } }
    }

    #[test]
    fn arguments_that_the_kernel_would_refuse_are_refused_with_their_size() {
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
