//! Holds what `packaging/` and the package of Debian name to the files that are there.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper's failure is the test's failure"
)]

use pgautoprep::config::{Config, SETTINGS, Setting};
use std::fs;
use std::path::{Path, PathBuf};

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &str) -> String {
    fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What the package of Debian is made of.
fn deb() -> toml::Table {
    let manifest: toml::Table = text("Cargo.toml").parse().unwrap();
    manifest["package"]["metadata"]["deb"]
        .as_table()
        .unwrap()
        .clone()
}

/// For each file of the package what it is made from, and where it is installed.
fn assets() -> Vec<(String, PathBuf)> {
    let deb = deb();
    let assets = deb["assets"].as_array().unwrap();
    let asset = |asset: &toml::Value| {
        let from = asset[0].as_str().unwrap().to_owned();
        let mut to = PathBuf::from("/").join(asset[1].as_str().unwrap());
        if asset[1].as_str().unwrap().ends_with('/') {
            to = to.join(Path::new(&from).file_name().unwrap());
        }
        (from, to)
    };
    assets.iter().map(asset).collect()
}

#[test]
fn the_package_is_made_of_files_that_are_there() {
    for (from, _) in assets() {
        let is_made = from == "target/release/pgautoprep";
        let path = from.trim_end_matches("/*");
        assert!(is_made || top().join(path).exists(), "{from} is not there");
    }
    let deb = deb();
    let units = &deb["systemd-units"];
    let unit = units["unit-name"].as_str().unwrap();
    let folder = units["unit-scripts"].as_str().unwrap();
    assert!(top().join(folder).join(format!("{unit}.service")).exists());
    let scripts = deb["maintainer-scripts"].as_str().unwrap();
    let postinst = text(&format!("{scripts}postinst"));
    assert!(
        postinst.contains("\n#DEBHELPER#\n"),
        "the unit's part is put there"
    );
}

#[test]
fn the_unit_runs_what_the_package_installs() {
    let unit = text("packaging/systemd/pgautoprep.service");
    let installed: Vec<_> = assets().into_iter().map(|(_, to)| to).collect();
    let mut commands = 0;
    for line in unit.lines().filter(|line| line.starts_with("ExecStart")) {
        commands += 1;
        let words = line.split(['=', ' ']).filter(|word| word.starts_with('/'));
        for path in words {
            assert!(installed.contains(&path.into()), "{path} is not installed");
        }
    }
    assert_eq!(commands, 2);
    let user = unit
        .lines()
        .find_map(|line| line.strip_prefix("User="))
        .unwrap();
    let made = text("packaging/systemd/pgautoprep.sysusers");
    assert!(
        made.lines()
            .any(|line| line.starts_with(&format!("u {user} "))),
        "{made}"
    );
}

/// What a unit says, in order, without comments.
fn said(path: &str) -> Vec<String> {
    let text = text(path);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_template_of_units_differs_from_the_unit_only_in_its_description() {
    let unit = said("packaging/systemd/pgautoprep.service");
    let template = said("packaging/systemd/pgautoprep@.service");
    assert_eq!(unit.len(), template.len());
    let others = unit
        .iter()
        .zip(&template)
        .filter(|(one, other)| one != other);
    for (one, other) in others {
        assert_eq!(*other, format!("{one} (instance %i)"));
    }
    // Otherwise the first to stop would take the sockets of the other with it.
    assert!(template.contains(&"RuntimeDirectoryPreserve=yes".to_owned()));
    let parts = [
        "usr/share/doc/pgautoprep/",
        "packaging/systemd/pgautoprep@.service",
    ];
    let installed = assets().into_iter().find(|(from, _)| from == parts[1]);
    assert!(installed.is_some_and(|(_, to)| to.starts_with(format!("/{}", parts[0]))));
}

#[test]
fn the_socket_unit_listens_where_the_program_does() {
    let unit = text("packaging/systemd/pgautoprep.socket");
    let listens: Vec<_> = unit
        .lines()
        .filter_map(|line| line.strip_prefix("ListenStream="))
        .collect();
    let config = Config::from_text("upstream = 'h:1'").unwrap();
    let configured: Vec<_> = config.listen.iter().map(ToString::to_string).collect();
    assert_eq!(listens, configured);
}

#[test]
fn several_instances_have_settings_that_there_are_and_one_port_each() {
    let variables: Vec<_> = SETTINGS.iter().map(Setting::variable).collect();
    let manifest = text("packaging/kubernetes/pgautoprep.yaml");
    let named = manifest
        .split("name: ")
        .filter_map(|rest| rest.split(',').next());
    let named: Vec<_> = named.filter(|it| it.starts_with("PGAUTOPREP_")).collect();
    assert!(named.len() >= 5);
    for name in named {
        assert!(variables.iter().any(|it| it == name), "{name}");
    }
    let balancer = text("packaging/haproxy/haproxy.cfg");
    let commented = balancer
        .lines()
        .filter_map(|line| line.strip_prefix("#   "));
    let configuration: String = commented.map(|line| format!("{line}\n")).collect();
    let config = Config::from_text(&format!("upstream = 'h:1'\n{configuration}")).unwrap();
    let servers = balancer.lines().filter_map(|line| {
        let mut words = line.trim().strip_prefix("server ")?.split(' ');
        words.nth(1)
    });
    let peers: Vec<_> = config.peers.iter().map(ToString::to_string).collect();
    assert_eq!(servers.collect::<Vec<_>>(), peers);
    assert_eq!(config.listen[0], config.peers[0]);
}

#[test]
fn the_image_is_made_of_files_that_are_there_and_starts_a_command() {
    let recipe = text("packaging/container/Containerfile");
    let copies = recipe.lines().filter_map(|line| line.strip_prefix("COPY "));
    let mut copied = 0;
    for line in copies.filter(|line| !line.starts_with("--from")) {
        let mut words: Vec<_> = line.split(' ').collect();
        words.pop();
        for path in words {
            copied += 1;
            assert!(top().join(path).exists(), "{path} is not there");
        }
    }
    assert!(copied >= 5);
    let listen = recipe
        .lines()
        .find_map(|line| line.strip_prefix("ENV PGAUTOPREP_LISTEN="));
    let port = listen.unwrap().rsplit(':').next().unwrap();
    assert!(recipe.contains(&format!("EXPOSE {port}\n")));
    assert!(recipe.contains("CMD [\"serve\"]"));
}
