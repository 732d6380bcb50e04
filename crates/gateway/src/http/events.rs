//! `GET /events`: the project's events as server-sent events. The id of each is its number, so a client that connects
//! again continues without a gap.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::EventFeed;
use super::admission::Principal;
use super::context::{HttpContext, NATIVE};
use super::response::HttpError;

/// The tool that reads events: a token needs the right to call it.
const TOOL: &str = "get_events";

/// How often a stream without events sends a comment, so that both sides notice a broken connection.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);

/// Answers with a stream that begins after `Last-Event-ID`, or at `?since=SEQ`, or with the next event.
pub(super) fn serve(context: &HttpContext, uri: &Uri, headers: &HeaderMap) -> Response {
    match open(context, uri, headers) {
        Ok((feed, principal)) => stream(context.clone(), feed, principal),
        Err(error) => error.into_response(),
    }
}

fn open(
    context: &HttpContext,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(Box<dyn EventFeed>, Principal), HttpError> {
    let principal = context.admit(uri, headers)?;
    if !principal.scope.has_server(NATIVE) || !principal.scope.has_tool(TOOL) {
        let why = format!("this token does not permit the tool `{TOOL}` of `{NATIVE}`");
        return Err(HttpError::new(StatusCode::FORBIDDEN, why));
    }
    let feed = context.config().native_tools.events(since(uri, headers)?);
    let feed = feed.ok_or_else(|| {
        HttpError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "there is no log of events, or it has ended",
        )
    })?;
    Ok((feed, principal))
}

/// The number of the first event that the client wants.
fn since(uri: &Uri, headers: &HeaderMap) -> Result<Option<u64>, HttpError> {
    let number = |what: &str, text: &str| {
        text.trim().parse::<u64>().map_err(|_| {
            let why = format!("`{what}` is the number of an event, not `{text}`");
            HttpError::new(StatusCode::BAD_REQUEST, why)
        })
    };
    if let Some(last) = headers.get("last-event-id") {
        let last = number("Last-Event-ID", last.to_str().unwrap_or_default())?;
        return Ok(Some(last.saturating_add(1)));
    }
    let asked = uri.query().into_iter().flat_map(|query| query.split('&'));
    let since = asked.filter_map(|part| part.strip_prefix("since=")).next();
    since.map(|since| number("since", since)).transpose()
}

fn stream(context: HttpContext, feed: Box<dyn EventFeed>, principal: Principal) -> Response {
    // The first bytes are sent at once: a client waits for the head of the response.
    let first = Some(Bytes::from_static(b": events\n\n"));
    let events = futures_util::stream::unfold(
        (context, feed, principal, first),
        |(context, mut feed, principal, first)| async move {
            let piece = match first {
                Some(first) => first,
                None => next(&context, &mut *feed, &principal).await?,
            };
            Some((Ok::<_, Infallible>(piece), (context, feed, principal, None)))
        },
    );
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The next events, or a comment; `None` at the end.
async fn next(context: &HttpContext, feed: &mut dyn EventFeed, who: &Principal) -> Option<Bytes> {
    tokio::select! {
        () = context.until_revoked(&who.name) => None,
        () = tokio::time::sleep(COMMENT_INTERVAL) => Some(Bytes::from_static(b":\n\n")),
        events = feed.next() => {
            let mut text = String::new();
            for (seq, json) in events? {
                text.push_str(&format!("id: {seq}\ndata: {json}\n\n"));
            }
            Some(Bytes::from(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_continues_after_its_last_event() {
        let asked = |uri: &'static str, last: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(last) = last {
                headers.insert("last-event-id", HeaderValue::from_static(last));
            }
            since(&Uri::from_static(uri), &headers).map_err(|error| error.status())
        };
        assert_eq!(asked("/events", None), Ok(None));
        assert_eq!(asked("/events?x=1&since=7", None), Ok(Some(7)));
        assert_eq!(asked("/events?since=7", Some("11")), Ok(Some(12)), "the later one counts");
        assert_eq!(asked("/events", Some("x")), Err(StatusCode::BAD_REQUEST));
        assert_eq!(asked("/events?since=-1", None), Err(StatusCode::BAD_REQUEST));
    }
}
