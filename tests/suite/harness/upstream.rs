//! A scripted server over a real socket, and the scenes that are played on it.

use super::client::{Client, PATIENCE};
use super::frames;
use super::proxy::Proxy;
use super::scene::{self, Stage};
use super::script::{self, Oracle, greeting};
use socket2::Socket;
use std::net::{TcpListener, TcpStream};

/// One connection of the proxy, seen from the server.
pub(crate) type Peer = script::Peer<TcpStream>;

/// A scene on real sockets.
pub(crate) type Scene = scene::Scene<Sockets>;

/// A proxy in this process, and the server it will look for.
pub(crate) struct Sockets {
    pub(crate) proxy: Proxy,
    pub(crate) upstream: Upstream,
}

impl Stage for Sockets {
    type Client = Socket;
    type Server = TcpStream;

    fn with(changes: &[(&str, &str)]) -> Self {
        let upstream = Upstream::listen();
        let proxy = Proxy::with(&upstream.address(), changes);
        Self { proxy, upstream }
    }

    fn login(&self) -> (Client, Peer) {
        self.upstream.login(&self.proxy)
    }
}

/// A client on real sockets that has logged in and sent nothing.
pub(crate) fn met(changes: &[(&str, &str)]) -> Scene {
    scene::met(changes)
}

/// A client on real sockets whose query has been learned and executed once.
pub(crate) fn learned(sql: &str, oracle: &Oracle<'_>, changes: &[(&str, &str)]) -> Scene {
    scene::learned(sql, oracle, changes)
}

/// Listens where the proxy will look for its server.
pub(crate) struct Upstream {
    listener: TcpListener,
}

impl From<TcpListener> for Upstream {
    fn from(listener: TcpListener) -> Self {
        Self { listener }
    }
}

impl Upstream {
    pub(crate) fn listen() -> Self {
        TcpListener::bind("127.0.0.1:0").unwrap().into()
    }

    pub(crate) fn address(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    /// The proxy's next connection.
    pub(crate) fn accept(&self) -> Peer {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Peer { stream }
    }

    /// Fails if the proxy has made a connection that was not accepted yet.
    pub(crate) fn nobody_waits(&self) {
        self.listener.set_nonblocking(true).unwrap();
        assert!(self.listener.accept().is_err(), "an unexpected connection");
    }

    /// Logs a client in through the proxy.
    pub(crate) fn login(&self, proxy: &Proxy) -> (Client, Peer) {
        self.login_at(proxy.address())
    }

    /// Logs a client in through the proxy at this address.
    pub(crate) fn login_at(&self, address: &str) -> (Client, Peer) {
        let mut client = Client::connect(address);
        let packet = frames::startup(&[("user", "me"), ("database", "db")]);
        client.send(&packet);
        let mut peer = self.accept();
        peer.expect(&packet);
        peer.send(&greeting());
        client.logged_in();
        (client, peer)
    }
}
