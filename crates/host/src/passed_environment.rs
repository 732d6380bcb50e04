//! The environment and folder that a connection passed for the programs it starts.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use patterm_panes::environment::{self, Environment};
use patterm_project::declared::GivenEnvironment;
use patterm_wire::environment::CallerEnvironment;

/// What a connection passed.
#[derive(Debug)]
pub struct PassedEnvironment {
    /// The variables that programs get, without those of patterm and of the caller's terminal.
    pub variables: Environment,
    /// Those of them that the caller set by name.
    pub set: BTreeSet<String>,
    /// The caller's folder.
    pub working_dir: Option<PathBuf>,
    /// They also apply to processes that the connection restarts.
    pub restarts: bool,
}

impl PassedEnvironment {
    /// The variables, for declared processes.
    pub(crate) fn given(&self, is_persons: bool) -> GivenEnvironment<'_> {
        GivenEnvironment { variables: &self.variables, is_persons }
    }

    /// Checks what a caller sent. An error names the invalid variable but never contains a value.
    pub(crate) fn read(passed: CallerEnvironment) -> Result<Self, String> {
        let (working_dir, restarts) = (passed.working_dir.clone(), passed.restarts);
        let set = passed.set.clone();
        if let Some(folder) = working_dir.as_ref().filter(|folder| !folder.is_absolute()) {
            let message = format!("`working_dir` takes an absolute path, not {}", folder.display());
            return Err(message);
        }
        let mut variables = Environment::default();
        for (name, value) in passed.into_variables() {
            let bytes = name.as_bytes();
            let is_bad = bytes.is_empty() || bytes.contains(&b'=') || bytes.contains(&0);
            if is_bad || value.as_bytes().contains(&0) {
                let message = format!(
                    "the variable {name:?} cannot be passed: a name needs at least one character and \
                     no `=`, and neither name nor value may contain a NUL byte"
                );
                return Err(message);
            }
            variables.insert(name, value);
        }
        let variables = environment::of_a_caller(variables, &set);
        // Now and not at the first start: the connection keeps them for as long as it is open.
        variables.check().map_err(|too_large| too_large.message)?;
        Ok(Self { variables, set, working_dir, restarts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_variable_is_refused_and_the_error_contains_only_its_name() {
        let read = |name: &[u8], value: &[u8]| {
            let encode = |bytes| patterm_wire::base64::encode(bytes);
            let base64 = vec![(encode(name), encode(value))];
            PassedEnvironment::read(CallerEnvironment { base64, ..CallerEnvironment::default() })
        };
        for (name, value) in [(&b""[..], &b"secret"[..]), (b"A=B", b"secret"), (b"N", b"secret\0")]
        {
            let error = read(name, value).unwrap_err();
            assert!(error.contains("cannot be passed") && !error.contains("secret"), "{error}");
        }
        let passed = read(b"N\xff", b"\xfe").unwrap();
        assert_eq!(passed.variables.iter().count(), 3, "TERM and COLORTERM are always set");
    }

    #[test]
    fn an_environment_that_no_program_could_get_is_refused_when_it_is_passed() {
        let read = |bytes: usize, times: usize| {
            let mut sent = CallerEnvironment::default();
            let named = |n: usize| (format!("V{n:05}"), "x".repeat(bytes));
            sent.variables.extend((0..times).map(named));
            PassedEnvironment::read(sent)
        };
        assert!(read(1000, 60).is_ok());
        let together = read(1000, 60_000).unwrap_err();
        assert!(together.contains("a quarter of the stack limit"), "{together:?}");
        let single = read(128 << 10, 1).unwrap_err();
        assert!(single.starts_with("the variable `V00000` is"), "{single:?}");
        assert!(!format!("{together:?} {single:?}").contains("xxx"), "no value is shown");
    }

    #[test]
    fn an_identity_cannot_be_passed() {
        let mut sent = CallerEnvironment::default();
        sent.variables.insert("PATTERM_IDENTITY_FILE".into(), "/other".into());
        sent.set("PATTERM_SOCKET".as_ref(), Some("/other".as_ref()));
        let passed = PassedEnvironment::read(sent).unwrap();
        assert!(passed.variables.get("PATTERM_IDENTITY_FILE").is_none());
        assert!(passed.variables.get("PATTERM_SOCKET").is_none());
    }
}
