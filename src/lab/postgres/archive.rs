//! Unpacks a downloaded server: a zip file that holds one tar archive compressed with xz.
//!
//! The archive comes from the network. Nothing is written outside the target directory, and how
//! much is written is bounded, whatever the archive says.

use std::borrow::Cow;
use std::fs;
use std::io::{Cursor, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use super::Error;

/// Bytes written at most; a server is about 60 MB.
const MAX_BYTES: u64 = 512 << 20;
/// Entries at most; a server has about 1,100.
const MAX_ENTRIES: usize = 20_000;
/// Memory the decompressor may ask for; `xz -9` needs 65 MB.
const MAX_DICTIONARY: u64 = 256 << 20;

/// Unpacks the archive inside the zip file `zipped` into the existing directory `target`.
pub(super) fn unpack(zipped: &[u8], target: &Path) -> Result<(), Error> {
    let mut zip =
        zip::ZipArchive::new(Cursor::new(zipped)).map_err(|error| invalid(target, error))?;
    let names = zip.file_names().filter_map(Result::ok).map(Cow::into_owned);
    let name = names.into_iter().find(|name| name.ends_with(".txz"));
    let Some(name) = name else {
        let entry = "the zip file".to_owned();
        return Err(Error::Archive {
            entry,
            why: "it holds no .txz archive",
        });
    };
    let inner = zip.by_name(&name).map_err(|error| invalid(target, error))?;
    let stream = liblzma::stream::Stream::new_stream_decoder(MAX_DICTIONARY, 0)
        .map_err(|error| invalid(target, error))?;
    let plain = liblzma::read::XzDecoder::new_stream(inner, stream);
    unpack_tar(plain.take(MAX_BYTES), target)?;
    open_directories(target)
}

fn invalid(target: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::io("unpack into", target)(std::io::Error::new(std::io::ErrorKind::InvalidData, source))
}

/// Unpacks files, directories and links that stay inside; refuses the archive at anything else.
fn unpack_tar(reader: impl Read, target: &Path) -> Result<(), Error> {
    let mut archive = tar::Archive::new(reader);
    let entries = archive.entries().map_err(|error| invalid(target, error))?;
    for (count, entry) in entries.enumerate() {
        let mut entry = entry.map_err(|error| invalid(target, error))?;
        let path = entry
            .path()
            .map_err(|error| invalid(target, error))?
            .into_owned();
        let refuse = |why| {
            Err(Error::Archive {
                entry: path.to_string_lossy().into_owned(),
                why,
            })
        };
        if count >= MAX_ENTRIES {
            return refuse("too many entries");
        }
        if !stays_inside(&path) {
            return refuse("its path leads out of the directory");
        }
        let kind = entry.header().entry_type();
        let link = entry.link_name().map_err(|error| invalid(target, error))?;
        let above = path.parent().unwrap_or_else(|| Path::new(""));
        match (kind.is_file() || kind.is_dir(), kind.is_symlink(), link) {
            (true, ..) => {}
            // A hard link's target counts from the top, and none of these archives has one.
            (_, true, Some(link)) if stays_inside(&above.join(&link)) => {}
            (_, true, _) => return refuse("its link leads out of the directory"),
            _ => return refuse("it is no file, directory or symbolic link"),
        }
        // `unpack_in` checks again, and also that no parent is a link to somewhere else.
        if !entry
            .unpack_in(target)
            .map_err(|error| invalid(target, error))?
        {
            return refuse("its path leads out of the directory");
        }
    }
    Ok(())
}

/// Whether `path` is relative and never climbs above where it starts.
fn stays_inside(path: &Path) -> bool {
    let mut depth = 0_u32;
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

/// Lets everybody pass through `directory` and all below it: our umask may say otherwise, and the
/// server may run as another user.
fn open_directories(directory: &Path) -> Result<(), Error> {
    let failed = |source| Error::io("set the mode of", directory)(source);
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    for entry in fs::read_dir(directory).map_err(Error::io("read", directory))? {
        let entry = entry.map_err(Error::io("read", directory))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_directories(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// One tar entry with a raw name, as a hostile archive would have it.
    fn tar_with(name: &str, kind: tar::EntryType, link: &str) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o644);
        let content: &[u8] = if kind.is_file() { b"content" } else { b"" };
        header.set_size(content.len() as u64);
        header.set_cksum();
        let mut builder = tar::Builder::new(Vec::new());
        builder.append(&header, content).unwrap();
        builder.into_inner().unwrap()
    }

    #[test]
    fn paths_that_lead_out_are_refused() {
        for path in ["../x", "/x", "a/../../x", "a/b/../../../x"] {
            assert!(!stays_inside(Path::new(path)), "{path}");
        }
        for path in ["x", "./a/b", "a/../b", "lib/libpq.so"] {
            assert!(stays_inside(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn hostile_entries_write_nothing_outside() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("target");
        fs::create_dir(&target).unwrap();
        let cases = [
            tar_with("../escaped", tar::EntryType::Regular, ""),
            tar_with("/escaped-pgautoprep-test", tar::EntryType::Regular, ""),
            tar_with("link", tar::EntryType::Symlink, "../.."),
            tar_with("link", tar::EntryType::Symlink, "/etc/passwd"),
            tar_with("link", tar::EntryType::Link, "/etc/passwd"),
            tar_with("fifo", tar::EntryType::Fifo, ""),
        ];
        for case in cases {
            let error = unpack_tar(&case[..], &target).unwrap_err();
            assert!(matches!(error, Error::Archive { .. }), "{error}");
        }
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn unpacks_the_archive_in_the_zip_and_opens_its_directories() {
        let root = tempfile::tempdir().unwrap();
        let tar = tar_with("share/x/file", tar::EntryType::Regular, "");
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
        encoder.write_all(&tar).unwrap();
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("server.txz", zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(&encoder.finish().unwrap()).unwrap();
        let zipped = zip.finish().unwrap().into_inner();

        unpack(&zipped, root.path()).unwrap();
        assert_eq!(
            fs::read(root.path().join("share/x/file")).unwrap(),
            b"content"
        );
        let mode = fs::metadata(root.path().join("share"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o755);
        assert!(unpack(b"no zip file", root.path()).is_err());
    }
}
