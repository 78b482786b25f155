"""The page in a browser: Debian's Chromium, driven by Selenium."""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.graphmatch.broker.page_client import PageServer, Visitor, item

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--hide-scrollbars", "--window-size=1280,900", "--disable-background-networking"),
    *("--disable-component-update", "--no-first-run", "--disable-sync", "--disable-quic"),
)
PHONE = 360
SECONDS = 10
GUIDE = Path("docs/guides/page.md")
PAGES = (
    *("/", "/subscriptions", "/subscriptions?ended=1", "/subscriptions/new", "/items"),
    *("/subscriptions/new?way=example", "/subscriptions/new?way=example&item=19"),
    *(
        "/subscriptions/new?way=sparql&query=SELECT%20%3Fitem%20%7B%20%3Fitem%20foo%3Abar%203%20%7D",
    ),
    *("/items/19", "/items/27", "/feeds", "/deliveries", "/ontology", "/ontology?q=climate"),
    *("/ontology?below=https://graphmatch.example/news%23Climate", "/what-if", "/health"),
    *("/help", "/login"),
)
PICTURES = os.environ.get("GRAPHMATCH_PICTURES")
"""Folder for the screenshots of the documentation."""


class Browser:
    """A browser that shows a broker's page."""

    def __init__(self, page_server: PageServer) -> None:
        options = Options()
        options.binary_location = str(CHROMIUM)
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.page_server = page_server
        self.driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))

    def see(self, width: int = 1280, scheme: str = "light", height: int = 900) -> None:
        """Set the size of the screen and its colour scheme."""
        is_phone = width < 600
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        likes = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": likes})

    def open(self, path: str) -> None:
        """Open a page of the broker."""
        self.driver.get(self.page_server.url + path)

    def one(self, selector: str) -> WebElement:
        """Return an element once it is visible."""

        def seen(driver: webdriver.Chrome) -> WebElement | None:
            found = driver.find_elements(By.CSS_SELECTOR, selector)
            return next((each for each in found if each.is_displayed()), None)

        return self.wait(seen, selector)

    def wait(self, until: Callable[[webdriver.Chrome], Any], what: str = "") -> Any:
        return WebDriverWait(self.driver, SECONDS, 0.05).until(until, what)

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def text(self, selector: str) -> str:
        return self.one(selector).text

    def wait_for(self, selector: str, text: str) -> None:
        """Wait until an element has a text; it may be replaced meanwhile."""
        read = f"const e = document.querySelector({selector!r}); return e ? e.innerText : ''"
        self.wait(lambda driver: text in driver.execute_script(read), f"{text} in {selector}")

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def complaints(self) -> list[str]:
        """Return the browser's log: errors and violations of the content security policy."""
        log = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [one["message"] for one in log if one["level"] in ("SEVERE", "WARNING")]

    def picture(self, name: str, height: int = 0) -> None:
        """Save a screenshot for the documentation if a folder is set."""
        if PICTURES:
            whole = self.run("return document.documentElement.scrollHeight")
            width = self.run("return innerWidth")
            clip = {"x": 0, "y": 0, "width": width, "height": min(whole, height or whole)}
            taken = self.driver.execute_cdp_cmd(
                "Page.captureScreenshot",
                {"captureBeyondViewport": True, "clip": {**clip, "scale": 1}},
            )
            Path(PICTURES, f"broker-{name}.png").write_bytes(base64.b64decode(taken["data"]))


@pytest.fixture(scope="module")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("Chromium is missing: install Debian's packages chromium and chromium-driver")
    with PageServer(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture(scope="module")
def started(page_server: PageServer) -> Iterator[Browser]:
    made = Browser(page_server)
    yield made
    made.driver.quit()


@pytest.fixture
def browser(started: Browser) -> Iterator[Browser]:
    started.driver.delete_all_cookies()
    started.see()
    started.complaints()
    yield started
    assert started.complaints() == []


def test_the_guide_describes_the_page(browser: Browser, page_server: PageServer) -> None:
    """Follow the guide: an example, the preview, a live match, and its explanation."""
    told = re.findall(r"\*\*(.+?)\*\*", GUIDE.read_text(encoding="utf-8"))
    seen: list[str] = []
    look = "return document.body.innerText.replace(/\\s+/g, ' ')"
    browser.open("/items?q=sea+walls")
    seen.append(browser.run(look))
    browser.one("main .title").click()
    browser.one(".facts a.chip").click()
    ladder = browser.one(".ladder")
    assert "Climate summit" in ladder.text
    browser.wait_for("#preview", "1 match")
    steps = ladder.find_elements(By.CSS_SELECTOR, "label.chip")
    next(step for step in steps if step.text.startswith("Climate change")).click()
    browser.wait_for("#preview .summary", "6 matches")
    assert browser.one("#preview svg .value").is_displayed()
    seen.append(browser.run(look))
    browser.picture("example", 670)
    browser.one("#name").send_keys("More on the climate")
    browser.one("#editor .button").click()
    browser.wait_for("h1", "More on the climate")
    browser.wait_for(".pulse", "live")
    page_server.publish_item(
        item(
            "Global warming reaches the vineyards",
            "&lt;img src=x onerror=\"document.title='hit'\"&gt;Vines grow where barley grew.",
        )
    )
    browser.wait_for("#matches .title", "Global warming reaches the vineyards")
    assert browser.text("#h-matches").startswith("1 match")
    browser.one("#matches summary").click()
    browser.wait_for("#matches .why", "“global warming” in rss:title names news:ClimateChange")
    seen.append(browser.run(look))
    browser.picture("match", 640)
    assert len(told) >= 6
    assert [text for text in told if not any(text in one for one in seen)] == []
    assert "hit" not in browser.driver.title


def test_a_problem_is_shown_while_typing(browser: Browser) -> None:
    browser.open("/subscriptions/new?way=sparql")
    field = browser.one("#query-text")
    field.send_keys(
        "PREFIX news: <https://graphmatch.example/news#>\n"
        "SELECT ?item WHERE {\n  ?item dcterms:subjet"
    )
    browser.wait_for("#query-problem", "Line 3")
    assert field.get_attribute("aria-invalid") == "true"
    browser.one("[data-goto]").click()
    assert browser.run("return document.activeElement.id") == "query-text"
    assert browser.run("return document.activeElement.selectionStart") > 60
    field.send_keys(Keys.CONTROL, Keys.END)
    field.send_keys(
        Keys.BACKSPACE
        + 'ct news:Climate ; dc:language ?language .\n  FILTER(LANGMATCHES(?language, "de"))\n}'
    )
    browser.wait_for("#preview .summary", "match")
    assert browser.run("return document.querySelector('#query-problem').innerText") == ""
    status = "return document.querySelector('#status').textContent"
    browser.wait(lambda driver: driver.execute_script(status).startswith("1 match"))
    browser.picture("sparql", 850)
    browser.run("document.querySelector('#preview').replaceChildren()")
    browser.one("[formaction]").click()
    browser.wait_for("#preview .summary", "1 match")
    assert browser.driver.current_url.endswith("/subscriptions/new?way=sparql")


@pytest.mark.long
def test_topics_are_suggested(browser: Browser) -> None:
    browser.open("/subscriptions/new")
    field = browser.one("#topics")
    assert browser.run("return document.activeElement.id") == "topics"
    field.send_keys("Energy, Health or Raumf")
    chip = browser.one("#suggest button")
    assert chip.text == "Spaceflight"
    chip.click()
    assert field.get_property("value") == "Energy, Health or Spaceflight"
    browser.one("input[name=match][value=any]").click()
    browser.wait_for("#preview .summary", "matches")


@pytest.mark.long
def test_the_page_works_with_the_keyboard_alone(browser: Browser) -> None:
    browser.open("/")
    browser.press(Keys.TAB)
    assert browser.run("return document.activeElement.className") == "skip"
    browser.press(Keys.ENTER)
    assert browser.run("return document.activeElement.id") == "main"
    browser.press("?")
    browser.wait_for("h1", "Help")
    browser.press("g", "i")
    browser.wait_for("h1", "Items")
    browser.press("/")
    assert browser.run("return document.activeElement.name") == "q"
    browser.press("n")  # The key is input here, not a shortcut.
    assert browser.run("return document.activeElement.value") == "n"
    browser.press(Keys.ESCAPE)
    browser.press("j", "j", "k", Keys.ENTER)
    browser.wait(lambda driver: "/items/" in driver.current_url)
    browser.press("n")
    browser.wait_for("h1", "New subscription")
    browser.press("Sport", Keys.TAB)
    browser.wait_for("#preview .summary", "match")
    reached: list[str] = []
    for _ in range(40):
        browser.press(Keys.TAB)
        reached.append(browser.run("return document.activeElement.textContent.trim()"))
        if reached[-1] == "Subscribe":
            break
    outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    browser.press(Keys.ENTER)
    browser.wait_for(".done", "Subscribed")


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, 800, 1280])
def test_no_page_is_wider_than_the_screen(browser: Browser, width: int, scheme: str) -> None:
    browser.page_server.publish_item(item("W" * 400, "x" * 4_000, "https://e.example/" + "y" * 800))
    browser.see(width, scheme)
    for path in PAGES:
        browser.open(path)
        assert browser.run("return document.documentElement.scrollWidth") <= width, path
        assert contrast(browser) >= 4.5, path
    if width == PHONE:
        browser.open("/")
        assert not browser.run("return document.querySelector('nav').offsetParent")
        browser.one(".menu").click()
        browser.one("nav a[href='/health']").click()
        browser.wait_for("h1", "Health")


def contrast(browser: Browser) -> float:
    """Return the lowest contrast between text and background (WCAG 2.2, 1.4.3)."""
    return float(
        browser.run(
            """
            const options = {willReadFrequently: true};
            const canvas = document.createElement('canvas').getContext('2d', options);
            const rgba = (text) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text;
              canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
            const light = (c) => c.slice(0, 3).map((v) => v / 255)
              .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
              .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
            const behind = (e) => { for (; e; e = e.parentElement) {
              const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; }
              return [255, 255, 255, 255]; };
            let least = 21;
            for (const e of document.querySelectorAll('body *')) {
              if (!e.checkVisibility() || e.closest('svg, .hidden, .skip')) continue;
              if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
              const a = light(rgba(getComputedStyle(e).color)), b = light(behind(e));
              least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
            }
            return least;
            """
        )
    )


BROKEN = """
const table = document.querySelector("table"), broken = [];
const texts = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const text = texts.currentNode, range = document.createRange();
  for (const found of text.data.matchAll(/(?<!\\S)[\\p{L}\\d,]+(?!\\S)/gu)) {
    range.setStart(text, found.index);
    range.setEnd(text, found.index + found[0].length);
    if (new Set([...range.getClientRects()].map((one) => one.top)).size > 1) broken.push(found[0]);
  }
}
return broken;
"""
"""The words of a table that are broken across lines; addresses do not count."""


@pytest.mark.parametrize("width", [1280, 700, 390])
def test_words_in_tables_are_not_broken(
    browser: Browser, page_server: PageServer, width: int
) -> None:
    fields = {"way": "topics", "words": "airship", "name": "A name that needs some room " * 4}
    to = {"sink": "webhook", "target": f"https://{'a' * 60}.example/{'b' * 60}"}
    Visitor(page_server.port).post("/subscriptions", {**fields, **to})
    page_server.publish_item(item("An airship"))
    browser.see(width, height=2000)
    for path in ("/subscriptions", "/feeds", "/deliveries", "/items/19"):
        browser.open(path)
        assert browser.run(BROKEN) == [], path
        assert browser.run("return document.documentElement.scrollWidth") <= width, path


@pytest.mark.long
def test_the_page_is_light_or_dark_as_the_system(browser: Browser) -> None:
    browser.see(1280, "light")
    browser.open("/items/19")
    paper = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(paper)
    browser.see(1280, "dark")
    browser.wait(lambda _: browser.run(paper) != light)


@pytest.mark.long
def test_the_tree_of_the_ontology_opens(browser: Browser) -> None:
    browser.open("/ontology")
    for name in ("Environment", "Climate", "Climate change"):
        found = browser.wait(
            lambda driver, name=name: [
                one
                for one in driver.find_elements(By.CSS_SELECTOR, ".tree summary span:first-child")
                if one.text == name
            ]
        )
        found[0].click()
    browser.wait_for("main > .tree", "Climate policy")
    assert "Extreme weather" in browser.text("main > .tree")


@pytest.mark.long
def test_the_page_works_without_javascript(browser: Browser, page_server: PageServer) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open("/subscriptions/new?way=sparql")
        browser.one("#query-text").send_keys('SELECT ?x { ?x dc:language "fr" }')
        browser.one("[formaction]").click()
        assert "match" in browser.text("#preview .summary")
        browser.one("#editor .button").click()
        browser.one(".done")
        page_server.publish_item(item("Rien"))
        browser.open("/")
        browser.one("#matches summary").click()
        for summary in browser.driver.find_elements(
            By.CSS_SELECTOR, "#matches li:first-child details details:first-of-type summary"
        ):  # An item that several subscriptions match has one summary for each.
            summary.click()
        browser.one("#matches details a").click()
        assert "It matches." in browser.text(".why")
        assert browser.one("nav").is_displayed()
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.long
def test_a_live_entry_replaces_the_older_one(browser: Browser, page_server: PageServer) -> None:
    browser.open("/")
    browser.wait_for(".pulse", "live")
    for title in ("Climate change, first edition", "Climate change, second edition"):
        page_server.publish_item(item(title, "", "https://e.example/edition"))
        browser.wait_for("#matches .title", title)
    titles = browser.run(
        "return [...document.querySelectorAll('#matches .title')].map(a => a.text)"
    )
    assert titles.count("Climate change, second edition") == 1
    assert "Climate change, first edition" not in titles
    assert "Climate" in browser.text("#matches .unread .meta")
    browser.one("#matches .title").click()
    browser.wait_for("h1", "second edition")
    browser.open("/")
    first = "return document.querySelector('#matches .match').classList.contains('unread')"
    assert not browser.run(first)


@pytest.mark.long
def test_screenshots_of_the_documentation_are_taken(started: Browser, tmp_path: Path) -> None:
    """Take the pictures of an item and of a phone, without the publications of other tests."""
    shared = started.page_server
    with PageServer(tmp_path) as started.page_server:
        started.see()
        started.open("/items?q=sea+walls")
        started.one("main .title").click()
        started.picture("item")
        started.see(PHONE, "dark", 720)
        started.open("/")
        assert len(started.driver.find_elements(By.CSS_SELECTOR, "#matches .match")) > 1
        started.picture("phone", 720)
        started.driver.get("about:blank")
    started.page_server = shared
