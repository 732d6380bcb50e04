//! Writes messages (responses, requests, notifications), each as the body of one frame.

use serde::Serialize;

use crate::error::ErrorObject;
use crate::id::Id;

/// `{"jsonrpc":"2.0","id":…,"result":…}` around a JSON result.
pub fn result(id: &Id, result: &str) -> Vec<u8> {
    let id = id.as_json();
    let mut body = Vec::with_capacity(result.len() + id.len() + 40);
    body.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    body.extend_from_slice(id.as_bytes());
    body.extend_from_slice(b",\"result\":");
    body.extend_from_slice(result.as_bytes());
    body.push(b'}');
    body
}

/// An error response; `id` is `null` if the request's id could not be read.
pub fn error(id: Option<&Id>, error: &ErrorObject) -> Vec<u8> {
    let mut body = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
    body.extend_from_slice(id.map_or("null", Id::as_json).as_bytes());
    body.extend_from_slice(b",\"error\":");
    append_json(&mut body, error);
    body.push(b'}');
    body
}

/// A request; `params` is JSON.
pub fn request(id: &Id, method: &str, params: Option<&str>) -> Vec<u8> {
    let mut body = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
    body.extend_from_slice(id.as_json().as_bytes());
    body.push(b',');
    append_method(&mut body, method, params);
    body
}

/// A notification; `params` is JSON.
pub fn notification(method: &str, params: Option<&str>) -> Vec<u8> {
    let mut body = b"{\"jsonrpc\":\"2.0\",".to_vec();
    append_method(&mut body, method, params);
    body
}

/// A batch of bodies from the functions above.
pub fn batch(bodies: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![b'['];
    body.extend_from_slice(&bodies.join(&b','));
    body.push(b']');
    body
}

fn append_method(body: &mut Vec<u8>, method: &str, params: Option<&str>) {
    body.extend_from_slice(b"\"method\":");
    append_json(body, &method);
    if let Some(params) = params {
        body.extend_from_slice(b",\"params\":");
        body.extend_from_slice(params.as_bytes());
    }
    body.push(b'}');
}

/// Appends a value as JSON. Strings and error objects can always be serialized; if one ever cannot, `null`
/// keeps the frame valid.
fn append_json<T: Serialize>(body: &mut Vec<u8>, value: &T) {
    match serde_json::to_vec(value) {
        Ok(json) => body.extend_from_slice(&json),
        Err(_) => body.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::PARSE_ERROR;

    #[test]
    fn bodies() {
        let text = |body: Vec<u8>| String::from_utf8(body).unwrap();
        let id = Id::from_json("1.0").unwrap();
        assert_eq!(text(result(&id, "{}")), r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#);
        let parse = ErrorObject::new(PARSE_ERROR, "not \"JSON\"");
        assert_eq!(
            text(error(None, &parse)),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not \"JSON\""}}"#
        );
        assert_eq!(
            text(error(Some(&id), &ErrorObject::method_not_found("x"))),
            r#"{"jsonrpc":"2.0","id":1.0,"error":{"code":-32601,"message":"Method not found","data":"x"}}"#
        );
        assert_eq!(
            text(request(&id, "initialize", Some("{}"))),
            r#"{"jsonrpc":"2.0","id":1.0,"method":"initialize","params":{}}"#
        );
        assert_eq!(
            text(batch(&[notification("a", None), notification("b", Some("[]"))])),
            r#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b","params":[]}]"#
        );
    }
}
