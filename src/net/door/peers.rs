//! The users of this machine, by their numbers.

use std::fs::File;
use std::io::{self, Read as _};

/// Where they are.
const FILE: &str = "/etc/passwd";

/// The largest file that is read.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// The name of the user of this machine with this number. Who is in no file is nobody.
pub(super) fn name(uid: u32) -> Option<Vec<u8>> {
    match read() {
        Ok(text) => name_of(&text, uid).map(<[u8]>::to_vec),
        Err(error) => {
            tracing::warn!(%error, "cannot read {FILE}");
            None
        }
    }
}

fn read() -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let count = File::open(FILE)?
        .take(MAX_FILE + 1)
        .read_to_end(&mut text)?;
    match count as u64 > MAX_FILE {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(text),
    }
}

/// The name of a user in the text of such a file: the first, as the system has it.
fn name_of(text: &[u8], uid: u32) -> Option<&[u8]> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':');
        let is_name = |name: &&[u8]| !name.is_empty() && !name.starts_with(b"#");
        let name = fields.next().filter(is_name)?;
        let number = std::str::from_utf8(fields.nth(1)?).ok()?;
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        let is_it = is_plain && number.parse() == Ok(uid);
        is_it.then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_first_name_of_its_number() {
        let text = b"# root:x:0:\nroot:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:\n:x:5:\nshort\n\
                     me:x:1000:100::/:\nodd:x:+7:\nother:x:10001:\nlast:x:5";
        assert_eq!(name_of(text, 0), Some(&b"root"[..]));
        assert_eq!(name_of(text, 1000), Some(&b"me"[..]));
        assert_eq!(name_of(text, 5), Some(&b"last"[..]));
        for uid in [1, 7, 100, u32::MAX] {
            assert_eq!(name_of(text, uid), None);
        }
        assert_eq!(name_of(b"", 0), None);
    }
}
