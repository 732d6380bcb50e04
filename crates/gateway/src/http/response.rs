//! Responses: JSON, errors, and their headers.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use patterm_wire::{ErrorObject, Id, reply};

use crate::{GatewayError, GatewayErrorKind};

/// A request that is refused.
#[derive(Debug)]
pub(super) struct HttpError {
    status: StatusCode,
    error: ErrorObject,
    id: Option<Id>,
}

/// The code of errors that JSON-RPC has no code for.
const REFUSED_CODE: i64 = -32000;

impl HttpError {
    pub(super) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, error: ErrorObject::new(REFUSED_CODE, why), id: None }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn with_error(status: StatusCode, id: Option<Id>, error: ErrorObject) -> Self {
        Self { status, error, id }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let mut response = json(self.status, reply::error(self.id.as_ref(), &self.error));
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// An error as a response: the status reports what the client did wrong, JSON-RPC what happened to
/// the server, where a model sees it.
impl From<&GatewayError> for HttpError {
    fn from(error: &GatewayError) -> Self {
        Self::with_error(status_of(error), None, error.to_error_object())
    }
}

/// The HTTP status of an error.
pub(super) fn status_of(error: &GatewayError) -> StatusCode {
    match error.kind {
        GatewayErrorKind::Limit => StatusCode::TOO_MANY_REQUESTS,
        GatewayErrorKind::Unknown => StatusCode::NOT_FOUND,
        GatewayErrorKind::Unavailable
        | GatewayErrorKind::Ended
        | GatewayErrorKind::Timeout
        | GatewayErrorKind::Cancelled => StatusCode::OK,
    }
}

/// A JSON body.
pub(super) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Appends a number as decimal digits.
pub(super) fn append_number(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut from, mut rest) = (digits.len(), number);
    loop {
        from -= 1;
        digits[from] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[from..]);
}

/// No body.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// A method that a path does not have, and those that it has.
pub(super) fn not_allowed(methods: &'static str) -> Response {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
    response
}
