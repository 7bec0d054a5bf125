//! What a server says to a login that it accepts at once, kept to be said again.

use super::manner::reported;
use crate::wire::frame::{self, HEADER};
use crate::wire::{answers, backend};

/// The most bytes that are kept of it: a server's take less than a tenth of that.
const MAX_BYTES: usize = 16 * 1024;

/// The server's replies to a login, and the key of the process.
#[derive(Debug, Clone, Default)]
pub struct Welcome {
    /// The replies as they came, but for the key.
    frames: Vec<u8>,
    /// Where the key stands among them, which process it is for, and what it is.
    key: Option<(usize, u32, Vec<u8>)>,
    /// AuthenticationOk has come, and no challenge before it.
    is_open: bool,
    is_whole: bool,
    /// The settings of which something else was reported since, and what.
    others: Vec<Other>,
}

/// A setting, and what was reported of it.
type Other = (Box<[u8]>, Box<[u8]>);

/// The bytes of AuthenticationOk.
const OPEN: usize = 9;

/// The most settings of which something else may have been reported.
const MAX_OTHERS: usize = 32;

impl Welcome {
    /// Keeps a reply. Returns false if the login is not one that could be answered again: the
    /// server has asked for something, or has said what it does not say to everybody.
    pub fn keep(&mut self, tag: u8, frame: &[u8]) -> bool {
        const OK: &[u8] = &[0, 0, 0, 0];
        let body = frame.get(HEADER..).unwrap_or_default();
        let fits = self.frames.len() + frame.len() <= MAX_BYTES;
        let is_expected = match tag {
            backend::AUTHENTICATION => {
                let is_first = !std::mem::replace(&mut self.is_open, true);
                is_first && body == OK
            }
            backend::BACKEND_KEY_DATA => {
                let key = backend::backend_key_data(body);
                let is_first = self.key.is_none();
                self.key = key.map(|(pid, secret)| (self.frames.len(), pid, secret.to_vec()));
                return fits && is_first && self.key.is_some();
            }
            backend::READY_FOR_QUERY => {
                self.is_whole = self.is_open && self.key.is_some();
                self.is_whole && body == b"I"
            }
            backend::PARAMETER_STATUS | backend::NEGOTIATE_VERSION => true,
            _ => false,
        };
        if is_expected && fits {
            self.frames.extend_from_slice(frame);
        }
        if self.is_whole {
            // It is kept for as long as the connection.
            self.frames.shrink_to_fit();
        }
        is_expected && fits
    }

    /// Whether the client has been told nothing yet, or only that it may come in.
    #[must_use]
    pub const fn says_nothing(&self) -> bool {
        self.key.is_none() && self.frames.len() <= OPEN
    }

    /// Whether all of it is here.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Notes what the server reports of a setting later. Returns false if that is too much.
    pub fn reported(&mut self, name: &[u8], value: &[u8]) -> bool {
        if !self.is_whole {
            return true;
        }
        self.others.retain(|(other, _)| **other != *name);
        if self.value(name) != Some(value) {
            self.others.push((name.into(), value.into()));
        }
        self.others.len() <= MAX_OTHERS
    }

    /// What it said of a setting.
    fn value(&self, name: &[u8]) -> Option<&[u8]> {
        reported(&self.frames, name)
    }

    /// What was reported of the settings, that which was last if something else was since. `None`
    /// before all of it is here.
    #[must_use]
    pub fn reports(&self) -> Option<Box<[u8]>> {
        let mut reports = Vec::new();
        let mut rest = &*self.frames;
        while let Ok(Some(header)) = frame::header(rest) {
            let (frame, tail) = rest.split_at_checked(header.size)?;
            let status = backend::parameter_status(frame.get(HEADER..)?);
            let is_status = header.tag == backend::PARAMETER_STATUS;
            let is_other =
                |(name, _): (&[u8], &[u8])| self.others.iter().any(|(other, _)| **other == *name);
            if is_status && !status.is_some_and(is_other) {
                reports.extend_from_slice(frame);
            }
            rest = tail;
        }
        for (name, value) in &self.others {
            answers::parameter_status(&mut reports, name, value);
        }
        self.is_whole.then(|| reports.into_boxed_slice())
    }

    /// The server process, and its secret.
    #[must_use]
    pub fn key(&self) -> Option<(u32, &[u8])> {
        let (_, pid, secret) = self.key.as_ref()?;
        Some((*pid, secret))
    }

    /// Whether it is still what the server would say of its settings.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.is_whole && self.others.is_empty()
    }

    /// Says it again, with as many bytes of this secret in the place of the server's own. Returns
    /// the process id, the server's secret and the one given.
    pub fn say<'k>(&self, ours: &'k [u8; 32], out: &mut Vec<u8>) -> Option<(u32, &[u8], &'k [u8])> {
        let (_, pid, secret) = self.key.as_ref()?;
        let ours = self.say_as(*pid, ours, out)?;
        Some((*pid, secret, ours))
    }

    /// The same, but with this in the place of the process id. Returns the secret given.
    pub fn say_as<'k>(&self, pid: u32, ours: &'k [u8; 32], out: &mut Vec<u8>) -> Option<&'k [u8]> {
        let (at, _, secret) = self.key.as_ref().filter(|_| self.is_whole)?;
        let ours = given(secret, ours);
        let (before, behind) = self.frames.split_at_checked(*at)?;
        out.extend_from_slice(before);
        backend::put_backend_key_data(out, pid, ours);
        out.extend_from_slice(behind);
        Some(ours)
    }
}

/// As much of our secret as the server's has: protocol 3.0 knows keys of four bytes only.
#[must_use]
pub fn given<'k>(secret: &[u8], ours: &'k [u8; 32]) -> &'k [u8] {
    &ours[..secret.len().clamp(4, ours.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[tag][..], &length.to_be_bytes(), body].concat()
    }

    fn kept(frames: &[(u8, &[u8])]) -> Option<Welcome> {
        let mut welcome = Welcome::default();
        let keep = |(tag, body): &(u8, &[u8])| welcome.keep(*tag, &frame(*tag, body));
        frames.iter().all(keep).then_some(welcome)
    }

    #[test]
    fn a_welcome_is_said_again_with_another_key() {
        let ok: (u8, &[u8]) = (b'R', &[0; 4]);
        let key: (u8, &[u8]) = (b'K', b"\0\0\0\x07abcd");
        let status: (u8, &[u8]) = (b'S', b"a\0b\0");
        let ready: (u8, &[u8]) = (b'Z', b"I");
        let welcome = kept(&[ok, status, key, ready]).unwrap();
        let mut out = Vec::new();
        let ours = [b'x'; 32];
        let key = Some((7, &b"abcd"[..], &b"xxxx"[..]));
        assert_eq!(welcome.say(&ours, &mut out), key);
        let other = frame(b'K', b"\0\0\0\x07xxxx");
        let frames = [ok, status].map(|(tag, body)| frame(tag, body)).concat();
        assert_eq!(out, [&frames[..], &other, &frame(b'Z', b"I")].concat());
        out.clear();
        assert_eq!(welcome.say_as(8, &ours, &mut out), Some(&b"xxxx"[..]));
        let other = frame(b'K', b"\0\0\0\x08xxxx");
        assert_eq!(out, [&frames[..], &other, &frame(b'Z', b"I")].concat());
    }

    #[test]
    fn what_is_reported_later_makes_it_false_until_it_is_taken_back() {
        let frames: [(u8, &[u8]); 4] = [
            (b'R', &[0; 4]),
            (b'S', b"a\0b\0"),
            (b'K', b"\0\0\0\x07abcd"),
            (b'Z', b"I"),
        ];
        let mut welcome = kept(&frames).unwrap();
        assert!(welcome.is_true());
        assert!(welcome.reported(b"a", b"c") && !welcome.is_true());
        assert!(welcome.reported(b"new", b"x") && welcome.reported(b"a", b"b"));
        assert!(!welcome.is_true(), "one was never reported");
        let mut numbers = 0..=MAX_OTHERS;
        assert!(!numbers.all(|number| welcome.reported(&[number as u8], b"x")));
    }

    #[test]
    fn who_is_asked_or_told_something_is_not_welcomed_again() {
        let ok: (u8, &[u8]) = (b'R', &[0; 4]);
        let key: (u8, &[u8]) = (b'K', b"\0\0\0\x07abcd");
        let ready: (u8, &[u8]) = (b'Z', b"I");
        assert!(kept(&[ok, key, ready]).is_some_and(|welcome| welcome.is_whole()));
        assert!(kept(&[(b'R', b"\0\0\0\x05salt"), ok, key, ready]).is_none());
        assert!(kept(&[ok, ok, key, ready]).is_none());
        assert!(kept(&[ok, (b'N', b"SNOTICE\0\0"), key, ready]).is_none());
        assert!(kept(&[ok, key, (b'Z', b"T")]).is_none());
        assert!(kept(&[ok, ready]).is_none(), "without a key");
        assert!(kept(&[key, ready]).is_none(), "nobody was let in");
        assert!(kept(&[ok, (b'K', b"\0"), ready]).is_none());
        let long = [b'x'; MAX_BYTES];
        assert!(kept(&[ok, (b'S', &long), key, ready]).is_none());
        assert_eq!(Welcome::default().say(&[0; 32], &mut Vec::new()), None);
    }
}
