//! The page for people in a real browser: what is shown, in windows of all sizes, light and dark.

use pgautoprep::admin::page::PERIOD_S;

use super::keyboard::Page;
use super::{House, PATIENCE, Program};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A database whose name would do harm if it became markup.
const HOSTILE: &str = "<i id=injected>";

/// A user's statements: some that are converted, and some that are not.
async fn work(proxy: &str) {
    let (host, port) = proxy.rsplit_once(':').unwrap();
    let port = port.parse().unwrap();
    for database in ["proxied", HOSTILE] {
        let mut config = tokio_postgres::Config::new();
        config
            .host(host)
            .port(port)
            .user("postgres")
            .dbname(database);
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        let driver = tokio::spawn(connection);
        for id in 0..200 {
            let sql =
                format!("SELECT relname FROM pg_class WHERE oid = {id} AND relname <> 'w{id}'");
            client.simple_query(&sql).await.unwrap();
            client.simple_query("SHOW work_mem").await.unwrap();
        }
        if database == HOSTILE {
            let sql = "SELECT '<script>document.body.remove()</script>' AS \"<b>bold</b>\" \
                       FROM pg_class";
            client.simple_query(sql).await.unwrap();
        }
        // The connection stays open for the page to show it.
        std::mem::forget(client);
        std::mem::forget(driver);
    }
}

/// What the browser has made of the page, without its script, after that has run for some seconds.
fn dom(browser: &Path, url: &str, more: &[&str], directory: &Path) -> String {
    let profile = format!("--user-data-dir={}", directory.join("profile").display());
    let mut command = Command::new(browser);
    // Without a sandbox, because tests may run as root; the page is our own.
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
    ]);
    command.args([
        "--no-first-run",
        "--disable-background-networking",
        &profile,
    ]);
    command.args(["--virtual-time-budget=6000", "--dump-dom"]);
    command.args(more).arg(url);
    let path = directory.join("dom");
    let output = std::fs::File::create(&path).unwrap();
    command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let text = std::fs::read_to_string(path).unwrap();
    // The page's own script holds the same words as what it shows.
    let (shown, script) = text.split_once("<script>").unwrap();
    assert!(!script.contains("<script>"), "{text}");
    shown.to_owned()
}

/// Lets statements run in both databases, the one of which is made first. Their connections stay
/// open as long as what is returned lives.
fn fill(house: &House) -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut config = tokio_postgres::Config::new();
        config
            .host("127.0.0.1")
            .port(house.server.port())
            .user("postgres");
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
            .batch_execute(&format!("CREATE DATABASE \"{HOSTILE}\""))
            .await
            .unwrap();
    });
    runtime.block_on(work(&house.proxy));
    // The charts show what was counted between two looks at the counters.
    std::thread::sleep(Duration::from_secs(2 * PERIOD_S + 1));
    runtime
}

/// What a wide window shows of the statements that have run.
fn is_all_there(light: &str) {
    for shown in [
        "serving for ",
        "passing the same queries through as they came",
        "SELECT relname FROM pg_class WHERE oid = ? AND relname &lt;&gt; ?",
        "SHOW work_mem",
        "not_preparable",
        "It is not one SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES or WITH statement.",
        "proxied, postgres",
        "&lt;i id=injected&gt;, postgres",
        "Queries a second, by route",
    ] {
        assert!(light.contains(shown), "{shown}: {light}");
    }
    assert!(
        !light.contains("<i id=") && !light.contains("<b>bold"),
        "{light}"
    );
    assert!(
        !light.contains("document.body.remove"),
        "a value is shown: {light}"
    );
    assert!(
        light.contains("<p id=\"failure\" class=\"bad\" role=\"status\"></p>"),
        "{light}"
    );
    // Each chart has a line, which is a path with some length.
    assert!(light.matches("<path class=\"line ").count() >= 3, "{light}");
}

const BROWSER: Program = Program {
    name: "chromium",
    packages: "chromium",
    commands: &["chromium", "chromium-browser", "google-chrome"],
    check: &["--version"],
};

/// Whoever has only a keyboard comes to a statement by Tab, to its story by Enter, and back by
/// Escape, to where they were, also while the page follows what happens.
#[test]
fn the_page_by_keyboard() {
    let Some(browser) = BROWSER.find() else {
        return;
    };
    let house = House::new();
    let _runtime = fill(&house);
    let url = format!("http://{}/#all", house.http);
    let mut page = Page::open(&browser, &url, house.directory.path());
    page.wait_for("document.querySelectorAll('#shapes button.text').length >= 2");
    page.wait_for("document.getElementById('view-all').ariaPressed === 'true'");
    let focused = "document.activeElement";
    let mut tabs = 0;
    while page.value(&format!("{focused}.className")) != "text" {
        page.press("Tab");
        tabs += 1;
        assert!(tabs < 20, "no statement is reached");
    }
    let first = page.value(&format!("{focused}.textContent"));
    page.press("Tab");
    let second = page.value(&format!("{focused}.textContent"));
    assert_ne!(first, second, "the next is another");
    assert_eq!(page.value("document.getElementById('story').open"), false);
    page.press("Enter");
    page.wait_for("document.getElementById('story').open");
    assert_eq!(
        page.value("document.getElementById('story-text').textContent"),
        second
    );
    let within = format!("document.getElementById('story').contains({focused})");
    assert_eq!(page.value(&within), true);
    // The page is painted anew meanwhile.
    std::thread::sleep(Duration::from_secs(PERIOD_S + 1));
    assert_eq!(page.value(&within), true);
    page.press("Escape");
    page.wait_for("!document.getElementById('story').open");
    assert_eq!(page.value(&format!("{focused}.textContent")), second);
    std::thread::sleep(Duration::from_secs(PERIOD_S + 1));
    assert_eq!(page.value(&format!("{focused}.textContent")), second);
}

#[test]
fn the_page_in_a_browser() {
    let Some(browser) = BROWSER.find() else {
        return;
    };
    let house = House::new();
    let _runtime = fill(&house);
    let url = format!("http://{}/", house.http);
    let directory = house.directory.path();
    let dom = |path: &str, more: &[&str]| dom(&browser, &format!("{url}{path}"), more, directory);

    let light = dom(
        "#all",
        &[
            "--window-size=1280,900",
            "--blink-settings=preferredColorScheme=1",
        ],
    );
    assert!(
        light.contains("data-painted=\"whole rgb(255, 255, 255)\""),
        "{light}"
    );
    is_all_there(&light);

    let dark = dom(
        "",
        &[
            "--window-size=320,700",
            "--blink-settings=preferredColorScheme=0",
        ],
    );
    assert!(
        dark.contains("data-painted=\"whole rgb(13, 17, 23)\""),
        "{dark}"
    );

    // The story of one, as it is shown behind a click.
    let rows = light.matches("<button class=\"text\" type=\"button\">");
    assert!(
        rows.count() >= 2,
        "rows are buttons, which a keyboard reaches: {light}"
    );
    let story = dom("#shape=1", &["--window-size=320,700"]);
    assert!(
        story.contains("<dialog id=\"story\" aria-labelledby=\"story-title\" open"),
        "{story}"
    );
    assert!(story.contains("data-painted=\"whole "), "{story}");
}
