//! Limits that a flag or an environment variable sets.

use clap::Args;
use patterm_store::limits::LEAST_LOG_BYTES;

// No doc comments on these structs: clap would show them as the help of the verb they are flattened into.
#[derive(Debug, Args)]
pub(crate) struct MessageLimit {
    /// The longest message accepted, in bytes [env: PATTERM_MAX_MESSAGE_BYTES] [default: 67108864]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1024..))]
    max_message_bytes: Option<u64>,
}

impl MessageLimit {
    /// The limit from the flag, the environment, or the default.
    pub(crate) fn bytes(&self) -> anyhow::Result<usize> {
        Ok(self.given()?.unwrap_or(patterm_wire::DEFAULT_MESSAGE_LIMIT))
    }

    /// The limit from the flag or the environment.
    pub(crate) fn given(&self) -> anyhow::Result<Option<usize>> {
        let bytes = limit(self.max_message_bytes, "PATTERM_MAX_MESSAGE_BYTES", 1024)?;
        Ok(bytes.map(usize::try_from).transpose()?)
    }
}

#[derive(Debug, Args)]
pub(crate) struct LogLimit {
    /// Output stored on disk for each process, in bytes [env: PATTERM_MAX_LOG_BYTES] [default: 67108864]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(LEAST_LOG_BYTES..))]
    max_log_bytes: Option<u64>,
}

impl LogLimit {
    /// The limit from the flag or the environment.
    pub(crate) fn bytes(&self) -> anyhow::Result<Option<u64>> {
        limit(self.max_log_bytes, "PATTERM_MAX_LOG_BYTES", LEAST_LOG_BYTES)
    }
}

/// A limit from a flag or an environment variable.
fn limit(flag: Option<u64>, variable: &str, least: u64) -> anyhow::Result<Option<u64>> {
    let (None, Ok(text)) = (flag, std::env::var(variable)) else { return Ok(flag) };
    match text.parse::<u64>() {
        Ok(bytes) if bytes >= least => Ok(Some(bytes)),
        _ => anyhow::bail!("{variable} takes a number of bytes from {least} up, not {text:?}"),
    }
}
