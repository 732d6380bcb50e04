//! How a hook fails.

/// Why a hook failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookFailure {
    /// Why, without anything that may be secret.
    pub(crate) reason: String,
    /// Why, for the person who tests it: with the last line of output.
    pub(crate) details: String,
    /// It may succeed later.
    pub(crate) may_pass: bool,
}

impl HookFailure {
    /// A failure that lasts.
    pub(crate) fn lasting(reason: String) -> Self {
        Self { details: reason.clone(), reason, may_pass: false }
    }

    /// A failure that may pass.
    pub(crate) fn passing(reason: String) -> Self {
        Self { details: reason.clone(), reason, may_pass: true }
    }
}
