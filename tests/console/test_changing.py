"""What may be changed from the page: by whom, in two steps, and that it is an event; over a recording."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from starlette.testclient import TestClient

from bettong.config.access import Grants, digest, parse
from bettong.frames.dead_letter_id import DeadLetterId
from bettong_console.changing import IDS_MAX, retry_of
from bettong_console.errors import ConsoleRequestError
from bettong_console.question import Question, ResetQuestion, RetryQuestion, ScaleQuestion
from tests.console.sites import RecordedSite, answer_recorded, client, recorded_site, served

OPERATOR, VIEWER = "of one who may", "of one who looks"
TOKENS = (
    f'[ann]\nsha256 = "{digest(OPERATOR)}"\nconsole = true\nchange = true\n'
    f'[bob]\nsha256 = "{digest(VIEWER)}"\nconsole = true\n'
)
ONE = {"ids": ["3.2.0"], "dry_run": False}
TRACE = ["app.py:12 in note", "app.py:31 in parsed"]


class Retried:
    """Answers as `bettong_console.answering` does for one dead letter, and keeps the questions."""

    def __init__(self, refuse: str | None = None) -> None:
        self.asked: list[RetryQuestion] = []
        self._sent = False
        self._refuse = refuse

    async def ask(self, question: Question) -> str:
        """As `Questions.ask`."""
        await asyncio.sleep(0)
        if not isinstance(question, RetryQuestion):
            found = json.loads(await answer_recorded(question))
            letter = found["dead_letters"][0] | {"traceback": TRACE, "sent_again": self._sent}
            return json.dumps(found | {"dead_letters": [letter]})
        self.asked.append(question)
        if self._refuse is not None:
            raise ConsoleRequestError(503, self._refuse)
        already = int(self._sent)
        self._sent = self._sent or not question.dry_run
        verb = "would be sent" if question.dry_run else "sent"
        texts = [f"{1 - already} {verb}; {already} were sent before, 0 cannot be sent again"]
        counts = {"sent": 1 - already, "refused": 0, "already": already, "held": 0}
        return json.dumps({"dry_run": question.dry_run, **counts, "texts": texts, "fault": None})


def site(
    retried: Retried, grants: Callable[[], Grants] | None = lambda: parse(TOKENS), *, allowed: bool = True
) -> RecordedSite:
    return recorded_site(grants, ask=retried.ask, changes_allowed=allowed)


@pytest.fixture
def retried() -> Retried:
    return Retried()


@pytest.fixture
def asking(retried: Retried) -> Iterator[TestClient]:
    with client(site(retried)) as found:
        yield found


def shown(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_who_may_sends_a_dead_letter_again_and_it_is_an_event_with_the_name(
    asking: TestClient, retried: Retried
) -> None:
    wanted = RetryQuestion((DeadLetterId(3, 2, 0),), "", dry_run=False)
    answer = asking.post("/api/retry", json=ONE, headers=shown(OPERATOR))
    assert (answer.status_code, answer.json()["sent"]) == (200, 1)
    assert retried.asked == [wanted]
    newest = asking.get("/api/now?view=events", headers=shown(OPERATOR)).json()["changes"][0]
    assert (newest["what"], newest["text"]) == ("sent again", "1 of dead letter 3.2.0, by ann")


def test_to_ask_what_it_would_do_is_no_event(asking: TestClient, retried: Retried) -> None:
    answer = asking.post("/api/retry", json=ONE | {"dry_run": True}, headers=shown(OPERATOR))
    assert answer.json()["texts"] == ["1 would be sent; 0 were sent before, 0 cannot be sent again"]
    assert [each.dry_run for each in retried.asked] == [True]
    changes = asking.get("/api/now?view=events", headers=shown(OPERATOR)).json()["changes"]
    assert all(each["what"] != "sent again" for each in changes)


def test_without_an_answer_the_event_says_so() -> None:
    retried = Retried(refuse="Kafka does not answer")
    with client(site(retried)) as asking:
        given = {"ids": "all", "computation": "clicks", "dry_run": False}
        assert asking.post("/api/retry", json=given, headers=shown(OPERATOR)).status_code == 503
        newest = asking.get("/api/now?view=events", headers=shown(OPERATOR)).json()["changes"][0]
    text = "all dead letters of clicks were to be, by ann, and no answer came: Kafka does not answer"
    assert newest["text"] == text


@pytest.mark.parametrize("token", [VIEWER, "of nobody", None])
def test_whose_token_does_not_allow_it_changes_nothing(
    asking: TestClient, retried: Retried, token: str | None
) -> None:
    answer = asking.post("/api/retry", json=ONE, headers=shown(token) if token else {})
    assert answer.status_code == (403 if token == VIEWER else 401)
    assert retried.asked == []


@pytest.mark.parametrize("grants", [lambda: parse(TOKENS), None])
def test_a_console_that_was_not_started_for_it_changes_nothing(grants: Callable[[], Grants] | None) -> None:
    retried = Retried()
    with client(site(retried, grants, allowed=False)) as asking:
        answer = asking.post("/api/retry", json=ONE, headers=shown(OPERATOR))
        described = asking.get("/api/description", headers=shown(OPERATOR)).json()
    assert (answer.status_code, "--allow-changes" in answer.json()["error"]) == (403, True)
    assert described["changes"] is False
    assert retried.asked == []


def test_without_tokens_nobody_may_change_anything_even_where_changes_are_allowed() -> None:
    retried = Retried()
    with client(site(retried, None)) as asking:
        assert asking.post("/api/retry", json=ONE).status_code == 403
    assert retried.asked == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "application/json", "sec-fetch-site": "same-site"}, 403),
        ({"content-type": "application/json", "sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_a_page_elsewhere_cannot_use_the_session_of_a_browser(
    asking: TestClient, retried: Retried, headers: dict[str, str], status: int
) -> None:
    asking.post("/sign-in", data={"token": OPERATOR})
    answer = asking.post("/api/retry", content=json.dumps(ONE), headers=headers)
    assert answer.status_code == status
    assert retried.asked == []
    assert asking.post("/api/retry", json=ONE, headers={"sec-fetch-site": "same-origin"}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 20_000,
        b"[]",
        b"{}",
        b'{"ids": "all"}',
        b'{"ids": "some", "dry_run": true}',
        b'{"ids": [], "dry_run": true}',
        b'{"ids": [7], "dry_run": true}',
        b'{"ids": ["3.2"], "dry_run": true}',
        b'{"ids": ["3.2.0"], "dry_run": 1}',
        b'{"ids": ["3.2.0"], "dry_run": true, "computation": "clicks"}',
        b'{"ids": "all", "dry_run": true, "computation": 5}',
        b'{"ids": "all", "dry_run": true, "repeat": true}',
        json.dumps({"ids": ["0.0.0"] * (IDS_MAX + 1), "dry_run": True}).encode(),
    ],
)
def test_garbage_is_refused_with_what_was_expected(body: bytes) -> None:
    with pytest.raises(ConsoleRequestError, match=r"expected") as caught:
        retry_of(body)
    assert caught.value.status == 400


def test_a_body_that_is_too_large_is_refused(asking: TestClient, retried: Retried) -> None:
    headers = {"content-type": "application/json", **shown(OPERATOR)}
    assert asking.post("/api/retry", content=b" " * 70_000, headers=headers).status_code == 413
    assert retried.asked == []


def test_a_person_reads_where_it_failed_is_asked_and_sends_it_again(page: Page, retried: Retried) -> None:
    with served(site(retried)) as own:
        page.goto(f"{own.url}/events?dead-letters=1")
        page.get_by_label("Token").fill(OPERATOR)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("Where it failed").click()
        expect(page.locator(".trace pre")).to_have_text("\n".join(TRACE))
        page.get_by_role("button", name="Send 3.2.0 again").click()
        asked = page.locator(".asking")
        expect(asked.locator("strong")).to_have_text("Send 1 message again?")
        expect(asked).to_be_focused()
        expect(page.locator(".trace")).to_have_attribute("open", "")
        report = Axe().run(page)
        assert report.violations_count == 0, report.generate_report()
        asked.get_by_role("button", name="Cancel").click()
        expect(asked).to_have_count(0)
        assert [each.dry_run for each in retried.asked] == [True]
        page.get_by_role("button", name="Send all again").click()
        asked.get_by_role("button", name="Send 1 message again").click()
        expect(asked.locator("strong")).to_have_text("1 message sent again")
        expect(page.locator("tbody .badge.good")).to_have_text("sent again")
        expect(page.locator(".timeline li").first).to_contain_text("1 of all dead letters, by ann")
        assert [(each.ids, each.dry_run) for each in retried.asked[1:]] == [((), True), ((), False)]
        page.goto("about:blank")


def test_who_may_not_change_anything_sees_no_button_for_it(page: Page, retried: Retried) -> None:
    with served(site(retried)) as own:
        page.goto(f"{own.url}/events?dead-letters=1")
        page.get_by_label("Token").fill(VIEWER)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("Where it failed")).to_be_visible()
        expect(page.locator("[data-retry], [data-retry-all]")).to_have_count(0)
        page.goto("about:blank")


def test_a_person_is_asked_twice_for_workers_and_types_the_name_to_reset(page: Page) -> None:
    asked: list[Question] = []

    async def ask(question: Question) -> str:
        await asyncio.sleep(0)
        asked.append(question)
        found = {"dry_run": True, "texts": ["so it is"], "fault": None, "before": 2, "records": 7}
        return json.dumps(found | {"workers": getattr(question, "workers", None)})

    own = recorded_site(lambda: parse(TOKENS), ask=ask, changes_allowed=True, release="trial")
    with served(own) as found:
        page.goto(f"{found.url}/partitions")
        page.get_by_label("Token").fill(OPERATOR)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Scale").click()
        page.get_by_label("Workers", exact=True).fill("4")
        page.get_by_role("button", name="Next").click()
        headline = page.locator(".asking strong").first
        expect(headline).to_have_text("Set 4 workers instead of 2?")
        page.get_by_role("button", name="Set 4 workers").click()
        expect(headline).to_have_text("4 workers set: Kubernetes starts or stops them")
        page.get_by_role("button", name="Close").click()
        page.get_by_role("button", name="Reset").click()
        page.get_by_label("Type visits to confirm").fill("visits")
        report = Axe().run(page)
        assert report.violations_count == 0, report.generate_report()
        page.get_by_role("button", name="Reset all states").click()
        expect(headline).to_have_text("All snapshots are deleted")
        page.goto(f"{found.url}/events")
        expect(page.locator(".timeline li").nth(0)).to_contain_text("states reset")
        expect(page.locator(".timeline li").nth(1)).to_contain_text("from 2 to 4 in release trial, by ann")
        expect(page.locator(".mark.states").first).to_be_visible()
        page.goto("about:blank")
    assert asked == [
        ScaleQuestion("trial", None, dry_run=True),
        ScaleQuestion("trial", 4, dry_run=True),
        ScaleQuestion("trial", 4, dry_run=False),
        ResetQuestion(dry_run=True),
        ResetQuestion(dry_run=False),
    ]
