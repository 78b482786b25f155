from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from lxml import html
from pyoxigraph import NamedNode
from sqlalchemy import delete, insert, select, update

from graphmatch.broker.db.store import StoreError
from graphmatch.broker.db.tables import (
    circuit_breakers,
    dead_letters,
    deliveries,
    feeds,
    matches,
    publications,
    read_items,
    subscriptions,
)
from graphmatch.broker.insight.insight_service import WAITING
from graphmatch.broker.page.matches import STREAMS
from graphmatch.broker.page.session import COOKIE, FILE_BYTES
from semantic.errors import Place, Problem
from semantic.vocabulary import OWL, TYPE
from tests.graphmatch.broker.live_broker import Answer
from tests.graphmatch.broker.page_client import NEWS, PageServer, Visitor, item
from tests.waiting import wait

CLIMATE = "https://graphmatch.example/news#Climate"
GERMAN = Path("data/subscriptions/feeds-climate-german.rq").read_text()
HOSTILE = "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"


@pytest.fixture(scope="module")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    with PageServer(tmp_path_factory.mktemp("page")) as made:
        yield made


@pytest.fixture
def visitor(page_server: PageServer) -> Visitor:
    return Visitor(page_server.port)


def subscribed(visitor: Visitor, **fields: str) -> str:
    """Subscribe with the form; return the path of the subscription."""
    answer = visitor.post("/subscriptions", {"way": "topics", "sink": "sse", **fields})
    assert answer.status == 303, answer.all("//*[@role='alert']")
    return urlsplit(answer.headers["location"]).path


# -- All pages ----------------------------------------------------------------------------------


def test_every_page_is_well_made(page_server: PageServer, visitor: Visitor) -> None:
    subscribed(visitor, topics="Climate", name="Well made")
    page_server.publish_item(item("Climate change", HOSTILE, "javascript:alert(1)"))
    seen, waiting = set[str](), deque(["/", "/help", "/subscriptions/new?way=example&item=3"])
    shapes = set[str]()
    while waiting:
        path = waiting.popleft()
        shape = re.sub(r"sub_\w+|\d+|below=.*|fact-0=.*|query=.*", "…", path)
        if path in seen or shape in shapes or urlsplit(path).path == "/docs":
            continue
        seen.add(path)
        shapes.add(shape)
        answer = visitor.get(path)
        assert answer.status == 200, path
        waiting += well_made(path, answer)
    assert len(seen) > 20, seen


def well_made(path: str, answer: Answer) -> list[str]:
    """Check a page; return the targets of its links."""
    page, policy = answer.page, answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy, path
    assert "unsafe" not in policy, path
    assert "frame-ancestors 'none'" in policy, path
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert page.get("lang") == "en"
    assert len(page.xpath("//h1")) == 1, path
    assert page.xpath("//a[@class='skip'][@href='#main']")
    for element in page.iter(html.etree.Element):
        named = [name for name in element.attrib if name.startswith("on") or name == "style"]
        assert not named, (path, element.tag, named)
        assert element.tag != "style", path
        if element.tag == "script":
            assert element.get("src", "").startswith("/static/"), path
            assert not element.text, path
    ids = page.xpath("//@id")
    assert len(ids) == len(set(ids)), (path, sorted(ids))
    labelled = {*page.xpath("//label/@for")}
    for field in page.xpath("//input[not(@type='hidden')] | //select | //textarea[not(@hidden)]"):
        inside = field.xpath("ancestor::label")
        assert inside or field.get("id") in labelled, (path, field.attrib)
    for button in page.xpath("//button"):
        assert button.text_content().strip() or button.get("aria-label"), path
    for link in page.xpath("//a[@href]"):
        href = link.get("href")
        is_own = href.startswith(("/", "#", "?"))
        assert is_own or href.startswith(("https://", "http://")), (path, href)
        assert is_own or "noopener" in link.get("rel", ""), (path, href)
    base = urlsplit(path).path
    links = [h for h in page.xpath("//main//a/@href | //nav//a/@href") if not h.startswith("#")]
    return [base + h if h.startswith("?") else h for h in links if h.startswith(("/", "?"))]


def test_published_markup_is_shown_as_text(page_server: PageServer, visitor: Visitor) -> None:
    title = f"{HOSTILE} {{{{ 7 * 7 }}}} &lt;/title&gt;"
    seq = page_server.publish_item(item(title, HOSTILE, "javascript:alert(document.cookie)"))
    huge = page_server.publish_item(item("climate " * 4_000, "x" * 300_000))
    for path in ("/", "/items", f"/items/{seq}", f"/items/{huge}"):
        answer = visitor.get(path)
        assert "<script>alert" not in answer.text
        assert "<img src=x" not in answer.text
        assert 'href="javascript' not in answer.text
        assert len(answer.text) < 200_000, path
    assert "alert(1)" in visitor.get(f"/items/{seq}").all("//h1")[0]
    assert "{{ 7 * 7 }}" in visitor.get(f"/items/{seq}").all("//h1")[0]


def test_typed_markup_is_shown_as_text(visitor: Visitor) -> None:
    said = '"><script>alert(1)</script>'
    for path in (f"/items?q={quote(said)}", f"/ontology?q={quote(said)}"):
        answer = visitor.get(path)
        assert "<script>alert" not in answer.text
        assert answer.page.xpath("//input[@name='q']/@value") == [said]
    answer = visitor.post(
        "/subscriptions/preview", {"way": "sparql", "query": f"</textarea>{said}"}
    )
    assert answer.status == 200
    assert "<script>alert" not in answer.text
    assert answer.page.xpath("//textarea[@id='query-text']")[0].text == f"</textarea>{said}"


def test_a_missing_page_is_named(visitor: Visitor) -> None:
    for path in ("/items/999999", "/subscriptions/sub_0", "/static/../x"):
        answer = visitor.get(path)
        assert answer.status == 404, path
    assert visitor.get("/items/999999").all("//h1") == ["Not found"]
    assert visitor.part("/items/999999/why?subscription=x").text.count("<h1") == 0
    assert visitor.get("/items/x").status == 422


def test_the_root_is_a_page_for_browsers_only(visitor: Visitor) -> None:
    for accepted in ("", "*/*", "application/ld+json"):
        answer = visitor.get("/", Accept=accepted)
        assert json.loads(answer.text)["inbox"].endswith("/v1/publications")
    answer = visitor.get("/", Accept="text/html,*/*;q=0.8")
    assert answer.all("//h1")[0].startswith("Latest matches")
    assert "ldp#inbox" in answer.headers["link"]


def test_static_files_are_cached(visitor: Visitor) -> None:
    page = visitor.get("/").page
    for path in page.xpath("//script/@src | //link[@rel='stylesheet']/@href"):
        answer = visitor.get(path)
        assert answer.status == 200
        assert answer.headers["cache-control"] == "no-cache"
        assert visitor.get(path, **{"If-None-Match": answer.headers["etag"]}).status == 304


# -- Subscribing --------------------------------------------------------------------------------


def test_a_subscription_to_topics_shows_matches_with_reasons(
    page_server: PageServer, visitor: Visitor
) -> None:
    path = subscribed(visitor, topics="Umwelt", **{"not-words": "coal"}, name="Green")
    assert "Green" in " ".join(visitor.get("/subscriptions").all("//tbody//a"))
    seq = page_server.publish_item(item("Climate change reaches the vineyards"))
    page_server.publish_item(item("Climate change and coal"))
    answer = visitor.get(path)
    assert answer.all("//ol[@id='matches']//a[@class='title']") == [
        "Climate change reaches the vineyards"
    ]
    why = visitor.part(answer.page.xpath("//ol[@id='matches']//@hx-get")[0])
    assert "It matches." in why.text
    assert "the item dcterms:subject news:Environment" in " ".join(why.all("//p[@class='by']"))
    assert "“Climate change” in rss:title names news:ClimateChange" in why.text
    assert "<html" not in why.text
    assert any("Green" in one for one in visitor.get("/").all("//a[contains(@class, 'tag')]"))
    assert "Green" in visitor.get(f"/items/{seq}").all("//section[2]//a[@class='title']")


def test_a_miss_is_explained(page_server: PageServer, visitor: Visitor) -> None:
    path = subscribed(visitor, way="sparql", query=GERMAN)
    seq = page_server.publish_item(item("Climate change in English"))
    id = path.rpartition("/")[2]
    answer = visitor.get(f"/items/{seq}/why?subscription={id}")
    assert "does not match" in answer.text
    assert "dc:language" in answer.text
    before = subscribed(visitor, topics="Climate").rpartition("/")[2]
    answer = visitor.part(f"/items/{seq}/why?subscription={before}")
    assert "It would match, but it came before the subscription" in answer.text


def test_a_preview_shows_number_and_titles_of_matches(visitor: Visitor) -> None:
    answer = visitor.post(
        "/subscriptions/preview", {"way": "topics", "topics": "Climate"}, **{"HX-Request": "true"}
    )
    assert re.match(r"\d+ matches among all \d+ items", answer.all("//p[@data-say]")[0])
    assert len(answer.page.xpath("//figure//*[@class='slot']")) == 14
    assert len(answer.page.xpath("//figure//*[@class='value']")) > 2
    assert "Der Klimawandel erreicht die Almen" in answer.text
    assert "Near misses" in answer.text
    assert "dcterms:subject" in answer.all("//pre")[0]


def test_a_problem_is_shown_at_its_place(visitor: Visitor) -> None:
    text = "SELECT ?item {\n  ?item foo:bar 3 }"
    fields = {"way": "sparql", "query": text}
    part = visitor.post("/subscriptions/preview", fields, **{"HX-Request": "true"})
    whole = visitor.post("/subscriptions/preview", fields)
    for answer in (part, whole):
        assert answer.all("//mark") == ["foo:bar"]
        assert answer.page.xpath("//*[@data-line='2'][@data-column='9']")
        assert "The prefix foo: is not declared." in answer.text
    assert part.page.xpath("//*[@id='query-problem'][@hx-swap-oob]")
    assert whole.page.xpath("//textarea[@id='query-text']")[0].text == text
    refused = visitor.post("/subscriptions", fields)
    assert refused.status == 422
    assert refused.page.text_content().count("The prefix foo: is not declared") == 1


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"way": "topics"}, "Nothing was entered"),
        ({"way": "topics", "topics": "Klimate"}, "Klimate"),
        ({"way": "topics", "topics": "Climate", "sink": "webhook", "target": "x"}, "https://"),
        ({"way": "topics", "topics": "Climate", "sink": "email", "target": "x"}, "address"),
        ({"way": "sparql", "query": "x" * 200_000}, "100,000 characters"),
        ({"way": "example", "item": "3"}, "Nothing was entered"),
    ],
)
def test_a_refused_subscription_stays_in_the_form(
    visitor: Visitor, fields: dict[str, str], said: str
) -> None:
    answer = visitor.post("/subscriptions", fields)
    assert answer.status == 422
    assert said in " ".join(answer.all("//*[@role='alert']"))
    if "topics" in fields:
        assert answer.page.xpath("//input[@id='topics']/@value") == [fields["topics"]]


def test_the_form_survives_a_full_disk(
    page_server: PageServer, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise StoreError(Problem("the disk is full", Place("store"), "Free some space."))

    monkeypatch.setattr(page_server.broker.subscriptions, "subscribe", full)
    answer = visitor.post("/subscriptions", {"way": "topics", "words": "kept"})
    assert answer.status == 503
    assert "The disk is full" in " ".join(answer.all("//*[@role='alert']"))
    assert answer.page.xpath("//input[@id='words']/@value") == ["kept"]


def test_an_example_is_generalised(page_server: PageServer, visitor: Visitor) -> None:
    found = visitor.get("/items?q=sea+walls").page.xpath("//main//a[@class='title']/@href")[0]
    seq = found.rpartition("/")[2]
    editor = visitor.get(f"/subscriptions/new?way=example&item={seq}")
    ladder = editor.page.xpath("//fieldset[@class='ladder'][1]")[0]
    labels = [" ".join(one.text_content().split()) for one in ladder.xpath(".//label")]
    names = [label.rsplit(" ", 1)[0] for label in labels]
    assert names[1:3] == ["Climate summit", "Climate policy"]
    counts = dict(label.rsplit(" ", 1) for label in labels[1:])
    assert int(counts["Climate summit"]) <= int(counts["Climate policy"])
    assert int(counts["Climate policy"]) <= int(counts["Climate"]) <= int(counts["Environment"])
    key = ladder.xpath(".//label[contains(., 'Climate change')]//input/@value")[0]
    path = subscribed(visitor, way="example", item=seq, **{"fact-0": key})
    assert "news:ClimateChange" in visitor.get(path).all("//pre")[0]
    one = visitor.get(f"/items/{seq}").page.xpath("//ul[@class='facts']//a/@href")[0]
    assert visitor.get(one).page.xpath("//input[@checked][@value!=''][starts-with(@name, 'fact-')]")


def test_the_secret_of_a_webhook_is_shown_once(visitor: Visitor) -> None:
    fields = {"way": "topics", "topics": "Health", "sink": "webhook", "name": "Hook"}
    answer = visitor.post("/subscriptions", {**fields, "target": "https://hooks.example/a"})
    assert answer.status == 201
    (secret,) = (text for text in answer.all("//code") if text.startswith("whsec_"))
    path = answer.page.xpath("//main//a[@class='button']/@href")[0]
    assert secret not in visitor.get(path).text


def test_a_feed_reader_can_use_the_address_on_the_page(
    page_server: PageServer, visitor: Visitor
) -> None:
    path = subscribed(visitor, topics="Climate", sink="feed")
    page_server.publish_item(item("Climate change for feed readers"))
    address = visitor.get(path).all("//dt[.='Feeds']/following-sibling::dd[1]//a/@href")[0]
    assert address.startswith(f"{page_server.url}/v1/subscriptions/")
    # A remote reader has only the key.
    answer = visitor.get(address.removeprefix(page_server.url), **{"X-Forwarded-For": "192.0.2.1"})
    assert answer.status == 200
    assert "Climate change for feed readers" in answer.text


def filled(visitor: Visitor, path: str) -> dict[str, str]:
    """Return the fields that a browser sends for the unchanged editor."""
    (form,) = visitor.get(f"{path}/edit").page.xpath("//form[@id='editor']")
    assert form.get("action") == f"{path}/edit"
    return dict(form.form_values())


def kept(page_server: PageServer, path: str) -> dict[str, Any]:
    id, table = path.rpartition("/")[2], subscriptions
    chosen = select(table).where(table.c.id == id)
    return dict(page_server.broker.store.read_now(lambda db: db.execute(chosen).mappings().one()))


def test_query_and_sink_are_changed_on_the_page(page_server: PageServer, visitor: Visitor) -> None:
    hook = {"sink": "webhook", "target": "https://hooks.example/a", "digest": "daily"}
    without = {"not-topics": "Sport or Politics", "not-words": "tax"}
    fields = {"way": "topics", "topics": "Health or Science, Energy", **without, **hook}
    made = visitor.post("/subscriptions", fields)
    path = made.page.xpath("//main//a[@class='button']/@href")[0]
    assert f"{path}/edit" in visitor.get(path).all("//main//a/@href")
    before = kept(page_server, path)
    assert before["definition"]["topics"] == ["Health or Science", "Energy"]
    assert before["name"].startswith("(Health or Science) and Energy, not (Sport or Pol")
    shown = filled(visitor, path)
    assert {key: shown[key] for key in fields} == fields
    visitor.post(f"{path}/edit", {**shown, "name": "Renamed"})
    same = kept(page_server, path)
    changed = {key for key in before if before[key] != same[key]}
    assert changed == {"name", "change"}  # The secret, the matches and the end stay.
    visitor.post(f"{path}/edit", {**shown, "topics": "Climate"})
    other = kept(page_server, path)
    excluded = {"not-topics": ["Sport or Politics"], "not-words": ["tax"]}
    assert other["definition"] == {"topics": ["Climate"], **excluded}
    settings = visitor.get(path).all("//dl[1]/*")
    assert settings[2:] == ["Not on topics", "Sport or Politics", "Without words", "tax"]
    assert (other["generation"], other["sink"]) == (2, before["sink"])
    shown = filled(visitor, path)
    moved = visitor.post(f"{path}/edit", {**shown, "target": "https://hooks.example/b"})
    (secret,) = (text for text in moved.all("//code") if text.startswith("whsec_"))
    assert kept(page_server, path)["sink"]["secret"] == secret != before["sink"]["secret"]
    visitor.post(f"{path}/edit", {**filled(visitor, path), "sink": "feed", "digest": ""})
    last = kept(page_server, path)
    assert (last["sink"], last["digest"]) == ({"kind": "feed"}, None)


def test_settings_that_the_form_lacks_stay(page_server: PageServer, visitor: Visitor) -> None:
    """Keep attributes, the time of a digest, and the setting for reasons."""
    sink = {"kind": "ntfy", "url": "https://ntfy.example/a", "include_reasons": True}
    body = {"where": {"dcterms:title": "x"}, "sink": sink, "digest": {"at": ["09:30"]}}
    path = f"/subscriptions/{page_server.call('POST', '/v1/subscriptions', body).json['id']}"
    before, shown = kept(page_server, path), filled(visitor, path)
    assert (shown["way"], shown["query"]) == ("sparql", before["query"].strip())
    assert visitor.post(f"{path}/edit", {**shown, "target": "https://ntfy.example/b"}).status == 303
    after = kept(page_server, path)
    assert after["sink"] == {**sink, "url": "https://ntfy.example/b"}
    assert all(after[key] == before[key] for key in ("definition", "digest", "generation"))


def test_a_mistake_in_a_change_is_shown_in_the_editor(
    page_server: PageServer, visitor: Visitor
) -> None:
    path = subscribed(visitor, way="sparql", query=GERMAN, name="Deutsch")
    before, fields = kept(page_server, path), {**filled(visitor, path), "query": "SELECT"}
    for to in (f"{path}/edit", "/subscriptions/preview"):
        answer = visitor.post(to, fields)
        assert answer.page.xpath("//form[@id='editor']/@action") == [f"{path}/edit"]
        assert answer.all("//h1") == ["Change Deutsch"]
        assert answer.page.xpath("//textarea[@id='query-text']")[0].text == "SELECT"
    empty = visitor.post(f"{path}/edit", {**fields, "query": " "})
    assert "Nothing was entered" in " ".join(empty.all("//*[@role='alert']"))
    assert kept(page_server, path) == before


def test_a_subscription_is_paused_resumed_renewed_and_ended(
    page_server: PageServer, visitor: Visitor
) -> None:
    path = subscribed(visitor, words="zeppelin", valid="day")
    for action, state in (("pause", "paused"), ("resume", "active")):
        assert visitor.post(f"{path}/{action}", {}).status == 303
        assert state in visitor.get(path).all("//span[contains(@class, 'state')]")
    before = visitor.get(path).all("//dt[.='Ends']/following-sibling::dd[1]//@datetime")[0]
    visitor.post(f"{path}/renew", {"valid": "year"})
    after = visitor.get(path).all("//dt[.='Ends']/following-sibling::dd[1]//@datetime")[0]
    assert after > before
    assert visitor.post(f"{path}/explode", {}).status == 422
    visitor.post(f"{path}/end", {})
    assert path not in visitor.get("/subscriptions").text
    assert path in visitor.get("/subscriptions?ended=1").text


def test_matches_appear_live(page_server: PageServer, visitor: Visitor) -> None:
    path = subscribed(visitor, words="zeppelins", name="Airships")
    id = path.rpartition("/")[2]
    live = visitor.get(path).page.xpath("//@data-live")[0]
    page_server.publish_item(
        item("Two zeppelins over the harbour", HOSTILE, "https://e.example/z1")
    )
    title = r"Zeppelins <b>again</b>\revent: forged"
    rss = "http://purl.org/rss/1.0/"
    page_server.publish_item(f'<urn:z2> a <{rss}item> ; <{rss}title> "{title}" .'.encode())
    first, second = visitor.events(live, 2)
    assert "Two zeppelins over the harbour" in first["data"]
    assert "&lt;b&gt;again" in second["data"]
    assert "\r" not in second["data"]  # It would end a line of the stream.
    (again,) = visitor.events(live, 1, **{"Last-Event-ID": first["id"]})
    assert again["data"] == second["data"]
    assert visitor.get("/live?subscription=sub_0").status == 404
    assert id in live
    wait(lambda: page_server.page.streams == 0)  # The broker notices that a client has left.


# -- The list of matches ------------------------------------------------------------------------


def entries(answer: Answer) -> list[dict[str, Any]]:
    """Return the entries of a list of matches: title, subscriptions, excerpt, and unread or not."""
    return [
        {
            "title": " ".join(row.xpath("./a[@class='title']")[0].text_content().split()),
            "names": [tag.text_content() for tag in row.xpath(".//a[@class='tag']")],
            "excerpt": row.xpath("string(./p[@class='excerpt'])"),
            "unread": "unread" in row.get("class").split(),
        }
        for row in answer.page.xpath("//ol[@id='matches']/li")
    ]


def test_an_item_is_one_entry_until_it_is_read(page_server: PageServer, visitor: Visitor) -> None:
    for name in ("Velocipedes", "Velocipedes and tandems"):
        subscribed(visitor, words="velocipede", name=name)
    seq = page_server.publish_item(
        item(
            "A velocipede",
            "Its <b>wheels</b> are wooden.".replace("<", "&lt;"),
            "https://e.example/v",
        )
    )
    summary = update(publications).where(publications.c.seq == seq)
    page_server.store.write_now(
        lambda db: db.execute(summary.values(summary="Wooden <b>wheels</b>"))
    )
    first = entries(visitor.get("/"))[0]
    assert first["title"] == "A velocipede"
    assert sorted(first["names"]) == ["Velocipedes", "Velocipedes and tandems"]
    assert (first["excerpt"], first["unread"]) == ("Wooden <b>wheels</b>", True)
    assert "Wooden &lt;b&gt;wheels" in visitor.get("/").text
    visitor.get(f"/items/{seq}")
    assert not entries(visitor.get("/"))[0]["unread"]


def test_all_items_are_marked_as_read(page_server: PageServer, visitor: Visitor) -> None:
    subscribed(visitor, words="unicycle", name="Unicycles")
    page_server.publish_item(item("A unicycle", "", "https://e.example/u1"))
    page = visitor.get("/")
    assert entries(page)[0]["unread"]
    page_server.publish_item(item("Another unicycle", "", "https://e.example/u2"))
    (action,) = page.page.xpath("//form[starts-with(@action, '/read/')]/@action")
    assert visitor.post(action, {}).headers["location"] == "/"
    later, *others = entries(visitor.get("/"))
    assert (later["title"], later["unread"]) == ("Another unicycle", True)
    assert not any(entry["unread"] for entry in others)


def test_items_with_the_same_link_are_one_entry(page_server: PageServer, visitor: Visitor) -> None:
    path = subscribed(visitor, words="rickshaw", name="Rickshaws")
    link = "https://e.example/rickshaw"
    first, second = (page_server.publish_item(item(f"A rickshaw {n}", "", link)) for n in "ab")
    for list_path in (path, "/"):
        titles = [entry["title"] for entry in entries(visitor.get(list_path))]
        assert [title for title in titles if "rickshaw" in title] == ["A rickshaw b"]
    assert first < second
    visitor.get(f"/items/{first}")
    assert not entries(visitor.get(path))[0]["unread"]


def test_a_deleted_publication_is_not_read_any_more(
    page_server: PageServer, visitor: Visitor
) -> None:
    seq = page_server.publish_item(item("A sedan chair", "", "https://e.example/chair"))
    visitor.get(f"/items/{seq}")
    chosen = select(read_items).where(read_items.c.publication == seq)
    assert len(page_server.read(lambda db: db.execute(chosen).all())) == 1
    gone = [
        delete(table).where(column == seq)
        for table, column in ((matches, matches.c.publication), (publications, publications.c.seq))
    ]
    page_server.store.write_now(lambda db: [db.execute(one) for one in gone])
    assert page_server.read(lambda db: db.execute(chosen).all()) == []


def test_older_matches_are_on_the_next_page(
    page_server: PageServer, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmatch.broker.db.read_items.LISTED", 2)
    path = subscribed(visitor, words="gondola", name="Gondolas")
    for number in range(5):
        page_server.publish_item(item(f"Gondola {number}", "", f"https://e.example/g{number}"))
    titles: list[str] = []
    address = path
    for _ in range(3):
        answer = visitor.get(address)
        titles += [entry["title"] for entry in entries(answer)]
        older = answer.page.xpath("//a[.='Older matches']/@href")
        address = path + older[0] if older else path
    assert titles == [f"Gondola {number}" for number in (4, 3, 2, 1, 0)]


def test_lists_are_searched_and_sorted(page_server: PageServer, visitor: Visitor) -> None:
    for name in ("beta 100%", "Alpha 100%", "gamma"):
        subscribed(visitor, words=name.split()[0], name=name)
    found = visitor.get("/subscriptions?q=100%25&sort=name").all("//tbody//a")
    assert found == ["Alpha 100%", "beta 100%"]
    assert visitor.get("/subscriptions?q=100%25&sort=ends").all("//tbody//a")[0] == "beta 100%"
    assert visitor.get("/subscriptions?q=absent").all("//tbody//a") == []
    assert visitor.get("/subscriptions?sort=absent").status == 200
    assert visitor.get("/feeds?q=HARBOUR").all("//tbody/tr/td[1]/span[1]") == ["The Harbour Daily"]
    assert visitor.get("/feeds").all("//tbody/tr/td[1]/span[1]")[0] == "Late"  # It fails.


# -- Items and ontology -------------------------------------------------------------------------


def test_the_triples_of_an_item_include_those_of_the_ontology(visitor: Visitor) -> None:
    path = visitor.get("/items?q=sea+walls").page.xpath("//main//a[@class='title']/@href")[0]
    rows = visitor.get(path).page.xpath("//table[contains(@class, 'triples')]//tr[td]")
    origins = {row[2].text_content(): row[3].text_content() for row in rows}
    assert origins["Ines Okafor"] == "item"
    assert origins["Environment"] == "ontology"


def test_the_ontology_is_a_tree(visitor: Visitor) -> None:
    roots = visitor.get("/ontology")
    assert "Environment" in " ".join(roots.all("//ul[@class='tree']//summary"))
    below = visitor.part(f"/ontology?below={quote(CLIMATE, safe='')}")
    assert "Climate change" in below.text
    assert "<h1" not in below.text
    alone = visitor.get(f"/ontology?below={quote(CLIMATE, safe='')}")
    assert "Climate change" in " ".join(alone.all("//ul[@class='tree']//summary"))
    found = visitor.get("/ontology?q=Klimawandel")
    assert found.all("//main//a[@class='title']")[0] == "Climate change"
    editor = visitor.get(found.page.xpath("//main//a[@class='title']/@href")[0])
    assert editor.page.xpath("//input[@id='topics']/@value") == ["Climate change"]
    assert re.match(r"\d+ matches", editor.all("//p[@data-say]")[0])
    assert visitor.get("/ontology?below=no%20iri").status == 422
    for start in ("Energy%2C%20", "Energy%20or%20"):
        suggested = visitor.part(f"/ontology/suggest?topics={start}clim")
        assert "Climate change" in suggested.all("//button/@data-add")


def test_the_ontology_counts_unused_axioms(page_server: PageServer, visitor: Visitor) -> None:
    assert "not used by" not in visitor.get("/ontology").text
    engine = page_server.broker.engine
    added = [(NamedNode("urn:partOf"), TYPE, OWL["TransitiveProperty"])]
    engine.update_ontology(added=added)
    shown = visitor.get("/ontology").all("//main//p")
    engine.update_ontology(removed=added)
    text = "Axioms: 1 transitive property: not used by rdfs; 1 of them is used by owl-rl."
    assert text in shown


def test_what_if_shows_gained_and_lost_matches(page_server: PageServer, visitor: Visitor) -> None:
    path = subscribed(visitor, topics="Sport", name="Sporting")
    page_server.publish_item(item("The half-marathon was won by a baker"))
    text = NEWS.read_text()
    sooner = '"Sport"@en'
    assert sooner in text
    less = re.sub(r"(skos:broader [^;]*?)news:Sport\b", r"\1news:Culture", text)
    answer = visitor.upload("/what-if", ontology=("news.ttl", less.encode()))
    assert answer.status == 200, answer.all("//*[@role='alert']")
    rows = answer.page.xpath(f"//tbody/tr[.//a[@href='{path}']]")
    assert rows
    assert "\N{MINUS SIGN}" in rows[0].text_content()
    for name, data, said in (
        ("news.exe", b"x", "cannot be an ontology"),
        ("news.ttl", b"<a> <b> .", "news.ttl"),
        ("news.ttl", b"", "No file was chosen"),
    ):
        refused = visitor.upload("/what-if", ontology=(name, data))
        assert refused.status == 422
        assert said in refused.text


def test_facts_are_in_words(visitor: Visitor) -> None:
    path = visitor.get("/items?q=velodrome").page.xpath("//main//a[@class='title']/@href")[0]
    facts = {
        row.xpath("./span")[0].text_content(): row.xpath("./a")[0].text_content()
        for row in visitor.get(path).page.xpath("//ul[@class='facts']/li")
    }
    assert facts["author"] == "Noor Haddad"
    assert facts["publisher title"] == "Second Listening"
    assert facts["enclosure type"] == "video/mp4"
    assert not any(":" in text for text in (*facts, *facts.values()))


def test_health_names_findings(page_server: PageServer, visitor: Visitor) -> None:
    subscribed(
        visitor,
        way="sparql",
        name="Impossible",
        query="SELECT ?x { ?x dc:date ?d FILTER(?date > 5) }",
    )
    subscribed(visitor, words="dirigible", name="First of two")
    subscribed(visitor, words="dirigible", name="Second of two")
    page_server.settled()
    found = visitor.get("/health").all("//li[contains(@class, 'finding')]")
    assert any("can never match" in one and "Impossible" in one for one in found)
    assert any("duplicate" in one and "First of two" in one for one in found)


def test_health_names_all_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with PageServer(tmp_path, filled=False) as page_server:
        visitor, store = Visitor(page_server.port), page_server.store
        admin = Visitor(page_server.port)

        def problems(visitor: Visitor) -> list[str]:
            answer = visitor.get("/health")
            found = answer.all("//li[contains(@class, 'finding')]")
            assert ("All is well" in answer.text) != bool(found)
            return found

        assert problems(visitor) == []
        supervisor = page_server.broker.supervisor
        supervisor.failed("deliveries", "OSError: no route", outage=False)
        (found,) = problems(visitor)
        assert "OSError: no route" in found
        supervisor.succeeded("deliveries")
        letter = {"task": "matching", "record": "publication 7", "error": "ValueError: odd"}
        store.write_now(lambda db: db.execute(insert(dead_letters).values(letter | {"at": 0})))
        (found,) = problems(visitor)
        assert "dead letters" in found
        letters = " ".join(visitor.get("/health").all("//h2[.='Dead letters']/following::li"))
        assert "publication 7" in letters
        assert "ValueError: odd" in letters
        other = page_server.token("bob", "subscribe")
        assert admin.post("/login", {"token": other}).status == 303
        (found,) = problems(admin)
        assert "Ask its operator" in found
        assert "publication 7" not in admin.get("/health").text
        store.write_now(lambda db: db.execute(delete(dead_letters)))
        breaker = {"host": "slow.example:443", "failures": 9, "last_at": 0, "open_until": 2**42}
        store.write_now(lambda db: db.execute(insert(circuit_breakers).values(breaker)))
        (found,) = problems(visitor)
        assert "slow.example" in found
        store.write_now(lambda db: db.execute(delete(circuit_breakers)))
        state = {"title": "Late", "errors": 3, "problem": "status 503"}
        feed = {"url": "https://late.example/", "state": state, "created_at": 0}
        store.write_now(lambda db: db.execute(insert(feeds).values(feed)))
        (found,) = problems(visitor)
        assert "late.example" in found
        store.write_now(lambda db: db.execute(delete(feeds)))
        disk_usage = "graphmatch.broker.db.store.disk_usage"
        monkeypatch.setattr(disk_usage, lambda _: SimpleNamespace(free=1000))
        (found,) = problems(visitor)
        assert "disk" in found


def test_a_refused_webhook_is_on_the_health_page_until_one_is_accepted(
    page_server: PageServer, visitor: Visitor
) -> None:
    fields = {"way": "topics", "words": "catamaran", "sink": "webhook", "name": "Refused"}
    visitor.post("/subscriptions", {**fields, "target": "https://refused.example/a"})
    page_server.publish_item(item("A catamaran", "", "https://e.example/c1"))
    page_server.publish_item(item("A second catamaran", "", "https://e.example/c2"))
    table = deliveries.c
    first, second = page_server.read(
        lambda db: db.scalars(select(table.id).where(table.host.like("refused%"))).all()
    )

    def attempted(id: int, **values: Any) -> None:
        changed = update(deliveries).where(table.id == id).values(attempt=1, **values)
        page_server.store.write_now(lambda db: db.execute(changed))

    attempted(first, status=500)
    assert "refused.example" in " ".join(visitor.get("/health").all("//li"))
    attempted(second, state="delivered", status=204)
    assert "refused.example" not in " ".join(visitor.get("/health").all("//li"))


# -- Feeds and deliveries -----------------------------------------------------------------------


def test_feeds_are_added_listed_and_removed(page_server: PageServer, visitor: Visitor) -> None:
    answer = visitor.get("/feeds")
    assert "The Harbour Daily" in answer.text
    assert "503, 3 times" in answer.text
    assert visitor.post("/feeds", {"url": "https://new.example/feed"}).status == 303
    assert "https://new.example/feed" in visitor.get("/feeds").text
    refused = visitor.post("/feeds", {"url": "file:///etc/passwd"})
    assert refused.status == 422
    opml = b"<opml><body><outline text='E' xmlUrl='https://e.example/a'/></body></opml>"
    assert visitor.upload("/feeds", list=("feeds.opml", opml)).headers["location"].endswith("=1")
    assert visitor.upload("/feeds", list=("feeds.opml", b"<opml/>")).status == 422
    mixed = visitor.upload("/feeds", list=("a.txt", b"https://e.example/b\nsoup\n"))
    assert "'soup' is not a feed's address" in mixed.page.text_content()
    assert visitor.post("/feeds/remove", {"url": "https://new.example/feed"}).status == 303
    assert "https://new.example/feed" not in visitor.get("/feeds").text


def test_deliveries_can_be_retried(page_server: PageServer, visitor: Visitor) -> None:
    fields = {"way": "topics", "words": "blimp", "sink": "webhook", "name": "Blimps"}
    visitor.post("/subscriptions", {**fields, "target": "https://hooks.example/blimps"})
    page_server.publish_item(item("A blimp lands"))
    answer = visitor.get("/deliveries?state=waiting")
    (action,) = answer.page.xpath("//tr[contains(., 'Blimps')]//form/@action")
    assert visitor.post(action, {}).headers["location"] == "/deliveries"
    assert page_server.retried == [int(action.split("/")[2])]
    assert visitor.post("/deliveries/999999/retry", {}).status == 404


# -- Permissions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "", "Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://[broken"},
    ],
)
def test_forms_of_other_pages_are_refused(visitor: Visitor, headers: dict[str, str]) -> None:
    for path in ("/subscriptions", "/login", "/logout", "/what-if", "/read/1"):
        answer = visitor.post(path, {"way": "topics", "words": "forged"}, **headers)
        assert answer.status == 403, path
        assert "set-cookie" not in answer.headers
    assert "forged" not in visitor.get("/subscriptions").text


def test_another_name_for_loopback_is_refused(visitor: Visitor) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
        assert visitor.get("/", Host=host).status in (403, 421)


def test_forms_are_bounded(visitor: Visitor) -> None:
    big = visitor.upload("/what-if", ontology=("a.ttl", b"#" * (FILE_BYTES + 1)))
    assert big.status == 422
    assert "the file has more than 4,000,000 bytes" in big.text.lower()
    many = visitor.post("/subscriptions", [(f"fact-{n}", "x") for n in range(300)])
    assert many.status == 400
    answer = visitor.ask(
        "POST",
        "/what-if",
        b"not a form",
        {"Origin": f"http://127.0.0.1:{visitor.port}", "Content-Type": "multipart/form-data"},
    )
    assert answer.status == 400


def test_too_many_requests_are_refused(
    page_server: PageServer, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server.page.api.insight.short, "waiting", WAITING)
    answer = visitor.get("/ontology")
    assert answer.status == 503
    assert "Too many requests are running" in answer.text
    busy = visitor.post("/subscriptions/preview", {"way": "topics", "words": "kept"})
    assert "Too many requests are running" in " ".join(busy.all("//*[@role='alert']"))
    assert busy.page.xpath("//input[@id='words']/@value") == ["kept"]
    monkeypatch.setattr(page_server.page, "streams", STREAMS)
    assert visitor.get("/live").status == 503


def test_users_log_in_with_tokens(tmp_path: Path) -> None:
    with PageServer(tmp_path, local=False, filled=False) as page_server:
        ada, bob = Visitor(page_server.port), Visitor(page_server.port)
        answer = ada.get("/subscriptions")
        assert answer.status == 303
        assert answer.headers["location"] == "/login?back=/subscriptions"
        assert ada.part("/items").headers["hx-redirect"].startswith("/login")
        assert ada.post("/login", {"token": "gmk_wrong"}).status == 403
        assert ada.post("/login", {"token": page_server.token("p", "publish")}).status == 403
        for visitor, name in ((ada, "ada"), (bob, "bob")):
            token = page_server.token(name, "subscribe")
            answer = visitor.post("/login", {"token": token, "back": "https://evil.example/"})
            assert answer.headers["location"] == "/"
            cookie = answer.headers["set-cookie"].lower()
            assert "httponly" in cookie
            assert "samesite=strict" in cookie
            assert token not in visitor.get("/").text + str(visitor.cookies)
        path = subscribed(ada, topics="Climate", name="Only Ada's")
        page_server.publish_item(item("Climate change"))
        assert "Climate change" in ada.get(path).text
        assert bob.get(path).status == 404
        assert bob.post(f"{path}/end", {}).status == 404
        assert bob.get(f"{path}/edit").status == 404
        words = {"way": "topics", "words": "mine now"}
        assert bob.post(f"{path}/edit", words).status == 404
        own = {**words, "id": path.rpartition("/")[2]}
        assert bob.post("/subscriptions/preview", own).status == 404
        assert "Only Ada" not in bob.get("/").text + bob.get("/items/1").text
        assert ada.post("/feeds", {"url": "https://e.example/feed"}).status == 403
        session = dict(ada.cookies)
        assert ada.post("/logout", {}).headers["location"] == "/login"
        assert COOKIE not in ada.cookies
        assert ada.get("/").status == 303
        ada.cookies = session
        assert ada.get("/").status == 303


def test_a_session_ends_after_12_hours_or_with_its_token(tmp_path: Path) -> None:
    with PageServer(tmp_path, local=False, filled=False) as page_server:
        ada, bob = Visitor(page_server.port), Visitor(page_server.port)
        for visitor, name in ((ada, "ada"), (bob, "bob")):
            visitor.post("/login", {"token": page_server.token(name, "subscribe")})
            assert visitor.get("/").status == 200
        [row] = page_server.wait_for(page_server.broker.accounts.tokens("bob"))
        page_server.wait_for(page_server.broker.accounts.revoke_token(row["id"]))
        assert (ada.get("/").status, bob.get("/").status) == (200, 303)
        page_server.clock.forward = timedelta(hours=11, minutes=59)
        assert ada.get("/").status == 200
        page_server.clock.forward = timedelta(hours=12, minutes=1)
        assert ada.get("/").status == 303


def test_the_cookie_of_a_session_is_secure_behind_tls(tmp_path: Path) -> None:
    for number, url in enumerate(("https://broker.example", None)):
        (folder := tmp_path / str(number)).mkdir()
        with PageServer(folder, local=False, filled=False, url=url) as page_server:
            visitor = Visitor(page_server.port)
            answer = visitor.post("/login", {"token": page_server.token("ada", "subscribe")})
            assert ("secure" in answer.headers["set-cookie"].lower()) == (url is not None)


def test_wrong_tokens_are_slowed_down(tmp_path: Path) -> None:
    with PageServer(tmp_path, local=False, filled=False) as page_server:
        visitor = Visitor(page_server.port)
        found = [visitor.post("/login", {"token": f"gmk_{n}"}).status for n in range(30)]
        assert found[0] == 403
        assert 429 in found
