"""The parts of a web browser that signing in needs: a session of requests stores the cookies, this module
fills in and submits the forms of the login and consent pages.
"""

from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

PAGES_MAX = 10


def expect(seen, wanted, what):
    """Like assert, also under `python -O`."""
    if seen != wanted:
        raise AssertionError(f"{what}: {seen!r}, not {wanted!r}")


class Forms(HTMLParser):
    """The forms of a page that are sent by POST: action, hidden fields, names of all inputs."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.open = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        name, value = attributes.get("name"), attributes.get("value") or ""
        if tag == "form" and (attributes.get("method") or "").lower() == "post":
            self.open = {"action": attributes.get("action") or "", "hidden": {}, "names": set()}
            self.found.append(self.open)
        elif tag in ("input", "button") and self.open is not None and name:
            self.open["names"].add((name, value) if tag == "button" else name)
            if (attributes.get("type") or "").lower() == "hidden":
                self.open["hidden"][name] = value

    def handle_endtag(self, tag):
        if tag == "form":
            self.open = None


def fill(page, user):
    """The form that `user` submits from `page`: its action and fields."""
    for form in Forms(page).found:
        fields = dict(form["hidden"])
        if {"username", "password"} <= form["names"]:
            who = {"username": user["userName"], "password": user["password"]}
            return form["action"], {**fields, **who}
        if ("decision", "allow") in form["names"]:
            return form["action"], {**fields, "decision": "allow"}
    raise AssertionError(f"no form to sign in or to consent: {page[:400]}")


def authorize(browser, url, redirect, user):
    """Opens the authorization URL and does what the pages ask, until the server sends the browser
    to `redirect`. Gives that address and the number of pages.
    """
    server = "{0.scheme}://{0.netloc}".format(urlsplit(url))
    pages = 0
    answer = browser.get(url, allow_redirects=False)
    for _ in range(PAGES_MAX):
        if answer.status_code in (302, 303):
            target = urljoin(answer.url, answer.headers["location"])
            if target.partition("?")[0].partition("#")[0] == redirect:
                return target, pages
            expect(target.startswith(f"{server}/"), True, f"the browser stays: {target}")
            answer = browser.get(target, allow_redirects=False)
            continue
        expect(answer.status_code, 200, f"{answer.url} {answer.text[:400]}")
        pages += 1
        action, fields = fill(answer.text, user)
        where = urljoin(answer.url, action)
        answer = browser.post(where, fields, headers={"Origin": server}, allow_redirects=False)
        expect(answer.status_code, 303, f"status after page {pages}")
    raise AssertionError(f"more than {PAGES_MAX} pages")
