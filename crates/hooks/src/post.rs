//! Requests of hooks. Redirects are not followed, and the body of a response is not read.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, USER_AGENT};
use hyper::{Request, StatusCode};
use patterm_gateway::{HttpClient, error_with_causes};
use patterm_project::project_file::HookUrl;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::failure::HookFailure;

/// Sends requests; its clients are made when they are first used.
#[derive(Debug, Default)]
pub(crate) struct Poster {
    plain: OnceCell<Arc<HttpClient>>,
    tls: OnceCell<Arc<HttpClient>>,
}

impl Poster {
    /// Sends a JSON text.
    pub(crate) async fn post(
        &self,
        url: &HookUrl,
        headers: HeaderMap,
        body: String,
        patience: Duration,
    ) -> Result<(), HookFailure> {
        let host = url.host();
        let answer = timeout(patience, self.status(url, headers, body)).await;
        match answer {
            Err(_) => {
                let seconds = patience.as_secs_f64();
                Err(HookFailure::passing(format!("{host} did not answer within {seconds} s")))
            }
            Ok(Err(failure)) => Err(failure),
            Ok(Ok(status)) => outcome(host, status),
        }
    }

    async fn status(
        &self,
        url: &HookUrl,
        headers: HeaderMap,
        body: String,
    ) -> Result<StatusCode, HookFailure> {
        let host = url.host();
        let client = self.client(url.is_secure()).await?;
        let request = Request::post(url.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("patterm/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(Bytes::from(body)));
        let mut request = request
            .map_err(|error| HookFailure::lasting(format!("the URL cannot be used: {error}")))?;
        request.headers_mut().extend(headers);
        let response = client.request(request).await.map_err(|error| {
            let why = error_with_causes(&error);
            HookFailure::passing(format!("{host} cannot be reached: {why}"))
        })?;
        Ok(response.status())
    }

    async fn client(&self, secure: bool) -> Result<Arc<HttpClient>, HookFailure> {
        let cell = if secure { &self.tls } else { &self.plain };
        let make = || async move {
            // The certificates of the machine are files.
            let made = tokio::task::spawn_blocking(move || HttpClient::new(secure)).await;
            let made = made.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            made.map(Arc::new).map_err(|error| {
                HookFailure::passing(format!("cannot load trusted certificates: {error}"))
            })
        };
        cell.get_or_try_init(make).await.cloned()
    }
}

fn outcome(host: &str, status: StatusCode) -> Result<(), HookFailure> {
    let answered = format!("{host} answered {status}");
    match status {
        status if status.is_success() => Ok(()),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            Err(HookFailure::passing(answered))
        }
        status if status.is_redirection() => {
            let advice = "redirects are not followed: set `post` to the final address";
            Err(HookFailure::lasting(format!("{answered}; {advice}")))
        }
        status if status.is_server_error() => Err(HookFailure::passing(answered)),
        _ => Err(HookFailure::lasting(answered)),
    }
}
