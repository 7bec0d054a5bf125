//! The port for operators: HTTP with what the proxy counts, and whether it is well.
//!
//! It runs in the acceptor's runtime and touches no worker but by its mailbox. Requests are read by
//! hyper, within bounds: the head in 16 KiB and five seconds, a connection in a minute, and of 64
//! connections at once the oldest makes room for the next. There is no TLS and nobody is asked for
//! a password, so the port belongs where only operators' programs are. The page for people, which
//! shows statements, is for those whom a setting names.

mod health;
mod page;

use super::console::Console;
use super::files::HTTP_CONNECTIONS;
use super::listener::Listener;
use super::phase::Phase;
use super::places::Places;
use super::stream::Plain;
use crate::admin::exposition::{self, Format};
use crate::admin::page::{HTML, policy};
use crate::admin::{ServerCounts, Snapshot, status};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

pub(super) use health::Health;
use page::From;
pub(super) use page::Gallery;

/// How long a connection lasts, in case its peer neither ends it nor reads.
const LIFETIME: Duration = Duration::from_secs(60);

/// How long the head of a request may take to come, also behind another request.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most bytes of a request's head; hyper takes no less than 8 KiB.
const MAX_HEAD: usize = 16 * 1024;

/// How long what workers have told is told to others, too.
const FRESH: Duration = Duration::from_secs(1);

/// Pause after an accept that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

const CONTENTS: &str = "\
/         a page for people\n\
/metrics  the counters, for Prometheus\n\
/status   the main figures as JSON\n\
/healthz  whether every worker answers\n\
/readyz   whether clients are taken, not held back, and the server can be reached\n";

/// What those are told who are not shown the page.
const FORBIDDEN: &str = "\
The setting http_page does not show the page to who asks from here, or by this name.\n\
From elsewhere: ssh -L 9187:localhost:PORT HOST, then http://localhost:9187/\n";

/// Whoever answers requests.
#[derive(Debug)]
pub(super) struct Desk {
    console: Arc<Console>,
    health: Health,
    gallery: Arc<Gallery>,
    policy: HeaderValue,
    places: Mutex<Places>,
    /// How many server connections there were when workers were asked last, if they have answered.
    servers: tokio::sync::Mutex<Option<(Instant, Option<ServerCounts>)>>,
}

impl Desk {
    pub(super) fn new(console: Arc<Console>, health: Health, gallery: Arc<Gallery>) -> Self {
        // It is made of hashes and words, and a browser that is told none runs nothing either.
        let policy = HeaderValue::from_str(&policy());
        let policy = policy.unwrap_or(HeaderValue::from_static("default-src 'none'"));
        Self {
            console,
            health,
            gallery,
            policy,
            places: Mutex::new(Places::new(HTTP_CONNECTIONS)),
            servers: tokio::sync::Mutex::default(),
        }
    }

    /// Has what is counted be noted from now on, for the charts.
    pub(super) fn begin_notes(&self) {
        tokio::spawn(Arc::clone(&self.gallery).note());
    }

    /// Answers whoever comes, until another process does.
    pub(super) async fn serve_until(
        self: Arc<Self>,
        listener: Arc<Listener>,
        mut phase: watch::Receiver<Phase>,
    ) {
        tokio::select! {
            () = self.serve(&listener) => {}
            _ = phase.wait_for(|phase| *phase == Phase::Succeeded) => {}
        }
    }

    async fn serve(self: Arc<Self>, listener: &Listener) {
        loop {
            match listener.accept_plain().await {
                Ok(Plain::Tcp(stream)) => {
                    let peer = stream.peer_addr();
                    let from = peer.map_or(From::Unknown, |peer| From::Address(peer.ip()));
                    self.meet(stream, from);
                }
                Ok(Plain::Unix(stream)) => self.meet(stream, From::Socket),
                Err(error) => {
                    tracing::debug!(%error, "accepting an HTTP connection failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn meet(
        self: &Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        from: From,
    ) {
        let places = self.places.lock();
        let place = places.unwrap_or_else(PoisonError::into_inner).take();
        let desk = Arc::clone(self);
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let desk = Arc::clone(&desk);
                async move { Ok::<_, Infallible>(desk.answer(&request, from).await) }
            });
            let mut server = http1::Builder::new();
            server
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .max_buf_size(MAX_HEAD);
            let served = server.serve_connection(TokioIo::new(stream), answer);
            tokio::select! {
                // A peer that breaks off or sends no HTTP has been told, if it could be.
                _ = served => {}
                _ = place => {}
                () = tokio::time::sleep(LIFETIME) => {}
            }
        });
    }

    async fn answer(&self, request: &Request<Incoming>, from: From) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refused = respond(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n");
            let methods = HeaderValue::from_static("GET, HEAD");
            refused.headers_mut().insert(ALLOW, methods);
            return refused;
        }
        match request.uri().path() {
            "/" | "/page.json" => self.page(request, from).await,
            "/metrics" => {
                let accept = request.headers().get(ACCEPT);
                let accept = accept.and_then(|accept| accept.to_str().ok());
                let format = Format::wanted(accept.unwrap_or_default());
                let figures = exposition::metrics(&self.snapshot().await, format);
                respond(StatusCode::OK, format.content_type(), figures)
            }
            "/status" | "/status.json" => {
                let figures = status::status(&self.snapshot().await);
                respond(StatusCode::OK, JSON, figures)
            }
            "/healthz" => tell(self.health.is_alive().await),
            "/readyz" => tell(self.health.is_ready().await),
            _ => respond(
                StatusCode::NOT_FOUND,
                TEXT,
                format!("there is:\n{CONTENTS}"),
            ),
        }
    }

    /// The page, or what it asks for, for those who may see it.
    async fn page(&self, request: &Request<Incoming>, from: From) -> Response<Full<Bytes>> {
        if !self.gallery.admits(from, request.headers()) {
            return respond(StatusCode::FORBIDDEN, TEXT, FORBIDDEN);
        }
        if request.uri().path() == "/" {
            let mut page = respond(StatusCode::OK, "text/html; charset=utf-8", HTML);
            let headers = page.headers_mut();
            headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
            headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
            return page;
        }
        let shape = request.uri().query().map(|query| {
            let number = query.strip_prefix("shape=");
            number.and_then(|number| number.parse().ok())
        });
        let told = match shape {
            None => self.gallery.overview().await.map(Some),
            Some(Some(id)) => self.gallery.story(id).await,
            Some(None) => Ok(None),
        };
        match told {
            Ok(Some(text)) => respond(StatusCode::OK, JSON, text),
            Ok(None) => respond(StatusCode::NOT_FOUND, TEXT, "there is no such shape\n"),
            Err(why) => respond(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
        }
    }

    async fn snapshot(&self) -> Snapshot {
        let mut known = self.servers.lock().await;
        let fresh = known.filter(|(at, _)| at.elapsed() < FRESH);
        let (at, servers) = match fresh {
            Some(fresh) => fresh,
            // A worker that does not answer must not keep the other figures back.
            None => {
                let servers = self.console.server_counts().await.ok();
                (Instant::now(), servers)
            }
        };
        *known = Some((at, servers));
        drop(known);
        Snapshot {
            servers,
            ..self.console.snapshot()
        }
    }
}

fn tell(outcome: Result<(), String>) -> Response<Full<Bytes>> {
    match outcome {
        Ok(()) => respond(StatusCode::OK, TEXT, "ok\n"),
        Err(why) => respond(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
    }
}

fn respond(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Nobody is to take it for anything else.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
