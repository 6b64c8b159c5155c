"""The answers of the console's addresses, to valid and invalid requests; over a recording."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from bettong.config.access import Grants, digest, parse
from bettong.inspection.accounts import shown
from bettong.inspection.deployment import DeploymentAnswers, inspection
from bettong.inspection.latency_parts import sink_parts
from bettong.inspection.services import remote_rows
from bettong.inspection.status_form import status_form
from bettong.topics import DEAD_LETTERS
from bettong_console.access import COOKIE, SESSIONS_MAX, Access, is_loopback_name
from bettong_console.history import SPANS
from bettong_console.site import PAGES
from bettong_console.views import VIEWS
from tests.console.recordings import explained, held, miscounted, recorded, timed, unmeasured
from tests.console.sites import client, recorded_site

TOKEN, FEED = "of a person", "of a feed"
TEXT = (
    f'[person]\nsha256 = "{digest(TOKEN)}"\nconsole = true\n[feed]\nsha256 = "{digest(FEED)}"\nread = ["*"]\n'
)


@pytest.fixture(scope="module")
def plain() -> Iterator[TestClient]:
    """Asks a site without tokens."""
    with client(recorded_site()) as asking:
        yield asking


@pytest.fixture
def guarded() -> Iterator[TestClient]:
    """Asks a site with tokens; a browser of its own for each test."""
    grants = parse(TEXT)
    with client(recorded_site(lambda: grants)) as asking:
        yield asking


@pytest.mark.parametrize("path", PAGES)
def test_every_place_is_the_page(plain: TestClient, path: str) -> None:
    answer = plain.get(path)
    assert answer.status_code == 200
    assert "/static/main.js" in answer.text


def test_all_that_the_page_loads_comes_from_here(plain: TestClient) -> None:
    for path in (
        "main.js",
        "layout.css",
        "vendor/uplot/uPlot.mjs",
        "vendor/dagre/dagre.mjs",
        "vendor/inter/inter.woff2",
    ):
        answer = plain.get(f"/static/{path}")
        assert answer.status_code == 200
        again = plain.get(f"/static/{path}", headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    policy = plain.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    "path",
    [
        "/static/../site.py",
        "/static/%2e%2e/site.py",
        "/static/..%2fsite.py",
        "/static//etc/passwd",
        "/static/",
        "/static/vendor",
        "/api/",
        "/api/nothing",
        "/applications",
        "/%00",
        "/a" * 1000,
    ],
)
def test_what_is_not_there_is_404_and_nothing_else(plain: TestClient, path: str) -> None:
    answer = plain.get(path)
    assert answer.status_code == 404
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "import" not in answer.text.partition("<body>")[0]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60), st.sampled_from(["/api/now?view=", "/api/history?span=", "/api/key?key=", "/"]))
def test_garbage_in_an_address_is_refused_with_a_reason(plain: TestClient, garbage: str, start: str) -> None:
    answer = plain.get(start + quote(garbage, safe="", errors="replace"))
    assert answer.status_code in {200, 400, 404}
    if answer.status_code != 200 and start.startswith("/api"):
        assert answer.json()["error"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_but_a_session_can_be_changed(plain: TestClient, method: str) -> None:
    for path in (*PAGES, "/api/now", "/api/key?key=ann", "/static/main.js"):
        assert plain.request(method, path).status_code == 405


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_json_with_a_status_and_no_number_that_json_has_not(plain: TestClient, view: str) -> None:
    found = plain.get("/api/now", params={"view": view})
    values = json.loads(found.text, parse_constant=pytest.fail)
    assert values["status"]["application"] == "visits"
    assert values["status"]["word"]


def test_the_views_hold_what_was_recorded(plain: TestClient) -> None:
    last = recorded("visits")[-1]
    partitions = plain.get("/api/now?view=partitions").json()
    assert partitions["total"] == len(last.answers.partitions)
    shown = {(row["stage"], row["partition"]) for row in partitions["rows"]}
    assert shown == {tuple(each) for each in last.answers.partitions}
    assert sum(worker["partitions"] for worker in partitions["workers"]) == len(last.answers.slots)
    application = plain.get("/api/now?view=application").json()
    assert {each["stage"] for each in application["stages"]} == {"clicks", "clicks-by-page"}
    assert {each["sink"] for each in application["sinks"]} == {"visits", "hours"}
    described = plain.get("/api/description").json()
    assert described["application"] == "visits"
    assert {box["id"] for box in described["boxes"]} >= {"source:clicks", "computation:Visits", "sink:hours"}


def test_accounts_are_those_that_the_terminal_shows(plain: TestClient) -> None:
    answers = recorded("visits")[-1].answers
    expected = shown(inspection("visits", remote_rows(answers.live), answers).accounts)
    found = plain.get("/api/now?view=accounts").json()
    assert found["differences"] == []
    assert len(expected) >= 7
    assert found["lines"] == json.loads(json.dumps([asdict(line) | {"adds_up": True} for line in expected]))
    for line in found["lines"]:
        parts = ("used", "filtered", "late", "dead_letters", "skipped")
        assert line["taken"] == sum(line[part] or 0 for part in parts)


def test_computations_are_as_busy_as_the_terminal_says() -> None:
    look = timed(recorded("visits")[-1])
    expected = inspection("visits", remote_rows(look.answers.live), look.answers).computations
    with client(recorded_site(looks=[look])) as asking:
        found = asking.get("/api/now?view=application").json()["computations"]
        workers = asking.get("/api/now?view=partitions").json()["workers"]
    assert found == [asdict(line) for line in expected]
    partitions = sum(id_.stage == "clicks" for id_ in look.answers.partitions)
    assert {each["name"]: each["busy_share"] for each in found} == {
        "": pytest.approx(partitions * 0.02),
        "Visits": pytest.approx(partitions * 0.03),
    }
    slots = [slot for id_, slot in look.answers.slots.items() if id_.stage == "clicks"]
    for worker in workers:
        assert worker["busy_share"] == pytest.approx(slots.count(worker["slot"]) * 0.05)


def test_the_parts_of_the_latency_are_those_that_the_status_has() -> None:
    looks = [explained(each) for each in recorded("visits")]
    with client(recorded_site(looks=looks)) as asking:
        view = asking.get("/api/now?view=summary").json()
    (sink,) = sink_parts(looks[-1].answers.live.values())
    (own,) = view["latency_parts"]
    assert (own["sink"], own["mean_ms"], own["largest"]) == ("visits", sink.mean_ms, "log to worker")
    assert [each["mean_ms"] for each in own["parts"]] == [each.mean_ms for each in sink.parts]
    assert sum(each["share"] for each in own["parts"]) == pytest.approx(1)
    assert view["sinks_left_out"] == 0


def test_dead_letters_for_which_nobody_waits_are_the_last_of_the_sinks() -> None:
    look = held(explained(recorded("visits")[-1]))
    receiver = dict(look.answers.live["receiver"])
    for name in ("latency_parts", "latency_percentiles"):
        receiver[f"{name}/{DEAD_LETTERS}"] = receiver[f"{name}/visits"]
    answers = replace(look.answers, live={**look.answers.live, "receiver": receiver})
    with client(recorded_site(looks=[replace(look, answers=answers)])) as asking:
        parts = asking.get("/api/now?view=summary").json()["latency_parts"]
        curves = asking.get("/api/now?view=application").json()["latency_curves"]
    assert [each["sink"] for each in parts] == ["visits", DEAD_LETTERS]
    assert [each["sink"] for each in curves] == ["hours", "visits", DEAD_LETTERS]


def test_views_say_what_is_not_measured() -> None:
    names = {"summary": "latency_parts", "application": "computations", "partitions": "hot_keys"}
    with client(recorded_site(looks=[unmeasured(recorded("visits")[-1])])) as asking:
        off = {view: asking.get(f"/api/now?view={view}").json() for view in names}
    with client(recorded_site(looks=[timed(explained(recorded("visits")[-1]))])) as asking:
        on = {view: asking.get(f"/api/now?view={view}").json() for view in names}
    for view, name in names.items():
        assert (off[view][f"{name}_measured"], on[view][f"{name}_measured"]) == (False, True)


def test_open_windows_are_those_that_the_status_has() -> None:
    look = explained(recorded("visits")[-1])
    site = recorded_site(looks=[look])
    with client(site) as asking:
        found = asking.get("/api/now?view=partitions").json()["windows"]
    assert site.board.known is not None
    status = status_form(site.board.known.moment.found, look.time_s).open_windows
    assert len(found) > 0
    assert found == [each.model_dump() for each in status]


def test_what_does_not_add_up_twice_in_a_row_is_said_of_its_line_and_needs_a_person() -> None:
    looks = recorded("visits")
    with client(recorded_site(looks=[*looks[:-1], miscounted(looks[-1])])) as asking:
        once = asking.get("/api/now?view=accounts").json()
    with client(recorded_site(looks=[*looks[:-2], *map(miscounted, looks[-2:])])) as asking:
        twice = asking.get("/api/now?view=accounts").json()
        needs = asking.get("/api/now?view=summary").json()["needs"]
    assert once["differences"] == []
    (text,) = twice["differences"]
    (wrong,) = (line for line in twice["lines"] if not line["adds_up"])
    assert f"{wrong['stage']}, {wrong['differences'][0]}" == text
    assert wrong["name"] in text
    assert any(text in need["what"] and need["level"] == "bad" for need in needs)


def test_a_deployment_that_was_too_slow_is_shown_as_one_and_the_part_is_named() -> None:
    looks = recorded("behind")
    # How long a record has waited is known since the first look: they are taken for ten times as far apart.
    slower = [replace(each, time_s=looks[0].time_s + 10 * (each.time_s - looks[0].time_s)) for each in looks]
    with client(recorded_site(looks=slower)) as asking:
        overview = asking.get("/api/now?view=summary").json()
        slowest = asking.get("/api/now?view=application").json()["slowest"]
    assert overview["status"]["level"] in {"bad", "notice"}
    assert overview["measures"]["lag"] > 10_000
    assert any("behind its log" in need["what"] for need in overview["needs"])
    assert (slowest["kind"], bool(slowest["remedy"])) == ("stage", True)


@pytest.mark.parametrize("span", SPANS)
def test_a_history_has_a_value_or_a_hole_for_each_step(plain: TestClient, span: str) -> None:
    found = plain.get("/api/history", params={"span": span}).json()
    assert found["step_s"] == SPANS[span].step_s
    assert {len(values) for values in found["series"].values()} == {SPANS[span].values}


def test_a_history_is_of_the_series_that_are_named_and_unknown_names_are_none(plain: TestClient) -> None:
    whole = plain.get("/api/history?span=5m").json()["series"]
    assert len(whole) > 10
    found = plain.get("/api/history?span=5m&series=lag_s,nothing,stage/clicks/p99_ms").json()["series"]
    assert found == {name: whole[name] for name in ("lag_s", "stage/clicks/p99_ms")}
    assert plain.get("/api/history?span=5m&series=nothing").json()["series"] == {}
    assert plain.get(f"/api/history?series={','.join('a' * 33)}").status_code == 400


def test_what_a_question_is_refused_for_reaches_the_page(plain: TestClient) -> None:
    answer = plain.get("/api/key", params={"key": "ann", "stage": "nowhere"})
    assert (answer.status_code, "no stage" in answer.json()["error"]) == (404, True)
    for query in ("", "?key=a&key=b", f"?key={'x' * 3000}"):
        assert plain.get(f"/api/key{query}").status_code == 400
    assert plain.get("/api/key?key=ann&stage=clicks").json()["events"]


def test_before_the_first_look_views_say_so() -> None:
    with client(recorded_site(looks=[])) as asking:
        answer = asking.get("/api/now")
        assert answer.status_code == 503
        assert "no service has answered yet" in answer.json()["error"]


def test_while_redis_is_away_the_last_numbers_stay_with_their_time() -> None:
    site = recorded_site()
    known = site.board.known
    assert known is not None
    site.board.add(
        known.moment.time_s + 60,
        known.moment.time_s + 60,
        DeploymentAnswers(silent={"redis": "Redis does not answer"}),
    )
    with client(site) as asking:
        status = asking.get("/api/now").json()["status"]
    assert status["away"] == ["Redis does not answer; its data is left out"]
    assert status["time_s"] == known.moment.time_s


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": f"Bearer {FEED}"}, {"authorization": "Bearer x"}, {"authorization": TOKEN}],
)
def test_without_a_token_that_may_see_it_nothing_is_shown(
    guarded: TestClient, headers: dict[str, str]
) -> None:
    for path in (
        "/api/now",
        "/api/description",
        "/api/live",
        "/api/history",
        "/api/key?key=ann",
        "/api/dead-letters",
    ):
        answer = guarded.get(path, headers=headers)
        assert answer.status_code == 401
        assert "visits" not in answer.text
    page = guarded.get("/partitions?stage=clicks", headers=headers)
    assert page.status_code == 303
    assert page.headers["location"] == "/sign-in?then=%2Fpartitions%3Fstage%3Dclicks"


def test_a_program_shows_its_token_with_each_request(guarded: TestClient) -> None:
    assert guarded.get("/api/now", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert guarded.get("/api/now").status_code == 401


def test_a_browser_signs_in_once_and_out_again(guarded: TestClient) -> None:
    refused = guarded.post("/sign-in", data={"token": FEED, "then": "/key?key=ann"})
    assert refused.headers["location"] == "/sign-in?then=%2Fkey%3Fkey%3Dann&refused=1"
    taken = guarded.post("/sign-in", data={"token": TOKEN, "then": "/key?key=ann"})
    assert taken.headers["location"] == "/key?key=ann"
    cookie = taken.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie  # strict: who follows a link in a chat would be signed out
    assert TOKEN not in cookie
    assert guarded.get("/api/now").status_code == 200
    guarded.post("/sign-out")
    assert guarded.get("/api/now").status_code == 401


@pytest.mark.parametrize(
    "then", ["https://elsewhere.example/", "//elsewhere.example/", "/\\elsewhere.example", "javascript:1", ""]
)
def test_signing_in_leads_nowhere_else(guarded: TestClient, then: str) -> None:
    assert guarded.post("/sign-in", data={"token": TOKEN, "then": then}).headers["location"] == "/"


def test_a_form_of_any_size_or_bytes_is_no_harm(guarded: TestClient) -> None:
    assert guarded.post("/sign-in", content=b"token=" + b"x" * 10_000).status_code == 413
    assert guarded.post("/sign-in", content=b"\xff\xfe\x00&&==%zz").headers["location"].endswith("refused=1")
    crowded = guarded.post("/sign-in", content=b"&".join(b"a=1" for _ in range(9)))
    assert (crowded.status_code, "at most 8 fields" in crowded.json()["error"]) == (400, True)


def test_a_token_that_was_taken_away_ends_its_sessions() -> None:
    now: list[Grants] = [parse(TEXT)]
    with client(recorded_site(lambda: now[0])) as asking:
        asking.post("/sign-in", data={"token": TOKEN})
        assert asking.get("/api/now").status_code == 200
        now[0] = parse(TEXT.replace("console = true", ""))
        assert asking.get("/api/now").status_code == 401


def test_sessions_are_bounded_and_the_oldest_goes() -> None:
    access = Access(lambda: parse(TEXT), local=True)
    numbers = [access.sign_in(TOKEN) for _ in range(SESSIONS_MAX + 1)]
    assert None not in numbers
    assert len(set(numbers)) == SESSIONS_MAX + 1
    assert len(access._sessions) == SESSIONS_MAX
    assert numbers[0] not in access._sessions


@pytest.mark.parametrize(
    "host",
    ["elsewhere.example", "127.0.0.1.elsewhere.example", "localhost.elsewhere.example:7400", "", "192.0.2.7"],
)
def test_another_name_that_leads_to_loopback_is_refused(plain: TestClient, host: str) -> None:
    answer = plain.get("/api/now", headers={"host": host})
    assert answer.status_code == 421
    assert "visits" not in answer.text


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:7400", "localhost", "LOCALHOST:80", "[::1]:7400", "console.localhost:7400", "127.8.8.8"],
)
def test_names_of_loopback_are_known(host: str) -> None:
    assert is_loopback_name(host)


def test_beyond_loopback_any_name_may_lead_here() -> None:
    grants = parse(TEXT)
    with client(recorded_site(lambda: grants, local=False)) as asking:
        shown = {"host": "console.example", "authorization": f"Bearer {TOKEN}"}
        assert asking.get("/api/now", headers=shown).status_code == 200


def test_cookies_of_others_are_no_sessions(guarded: TestClient) -> None:
    for value in ("", "x", "x" * 5000):
        assert guarded.get("/api/now", headers={"cookie": f"{COOKIE}={value}"}).status_code == 401
