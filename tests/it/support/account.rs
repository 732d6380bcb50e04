//! Short summaries of responses, for comparisons.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// `id code` for an error, `id result` for a result, with the id as it was sent; those of a batch
/// are sorted.
pub(crate) fn account(body: &[u8]) -> String {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Answer<'a> {
        jsonrpc: &'a str,
        #[serde(borrow)]
        id: &'a RawValue,
        result: Option<&'a RawValue>,
        error: Option<Value>,
    }
    if body.starts_with(b"[") {
        let batch: Vec<&RawValue> = serde_json::from_slice(body).unwrap();
        let mut answers: Vec<_> = batch.iter().map(|one| account(one.get().as_bytes())).collect();
        answers.sort();
        return format!("[{}]", answers.join(", "));
    }
    let answer: Answer<'_> = serde_json::from_slice(body).unwrap();
    assert_eq!(answer.jsonrpc, "2.0");
    match (answer.result, answer.error) {
        (Some(result), None) => format!("{} {}", answer.id, result),
        (None, Some(error)) => format!("{} {}", answer.id, error["code"]),
        _ => panic!("neither result nor error, or both: {}", body.escape_ascii()),
    }
}
