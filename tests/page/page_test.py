#!/usr/bin/python3
"""Uses the operators' page as an operator does: in a real browser, with mouse and keyboard.

It runs `txinbox serve` on the database of TXINBOX_TEST_URL, and compares what the page shows and changes with what the
command prints. TXINBOX_COMMAND is the command. TXINBOX_TEST_SCREENSHOTS is a folder for a picture of each page.
TXINBOX_TEST_RESTART is a script of tests/servers.sh that kills the database's server and starts it again.

Chromium and its driver are those of Debian (chromium, chromium-driver, python3-selenium).
"""

import base64
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

COMMAND = os.environ["TXINBOX_COMMAND"]
DATABASE = os.environ["TXINBOX_TEST_URL"]
RESTART = os.environ.get("TXINBOX_TEST_RESTART")
SCREENSHOTS = os.environ.get("TXINBOX_TEST_SCREENSHOTS")
TOKEN = "a token of thirty-two characters"
HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a'b&amp;", "x\u202egpj.exe", "k" * 255]


def command(*arguments, text=None, ok=(0,)):
    """The standard output of the command."""
    ended = subprocess.run([COMMAND, *arguments], input=text, text=True, capture_output=True,
                           env={**os.environ, "TXINBOX_DB": DATABASE}, timeout=60)
    assert ended.returncode in ok, f"{arguments}: status {ended.returncode}: {ended.stderr}"
    return ended.stdout


def rows(*arguments):
    return json.loads(command(*arguments, "--json"))


def fail(consumer, keys, attempts="1", payload=True):
    """Each of these messages fails once. With `attempts` 1, this parks it."""
    lines = "".join(json.dumps({"no": key}) + "\n" for key in keys)
    command("consume", "--consumer", consumer, "--key", "/no", "--max-attempts", attempts, "--batch", "1",
            *(["--keep-payload"] if payload else []), "--sql", "insert into page_order(no) values (null)", text=lines, ok=(1,))


def fail_many(consumer, doublings):
    """Two to the power of `doublings` messages fail once, all with the same time. Most are copies of one row."""
    fail(consumer, ["k"], attempts="5")
    columns = "message_id, attempts, crashes, first_error, first_failed_at, last_error, last_failed_at"
    for i in range(doublings):
        command("consume", "--consumer", consumer, "--key", "/no", "--sql",
                f"insert into txinbox_failed_message(consumer, business_key, {columns}) "
                f"select consumer, replace(business_key, 'k', 'k{chr(ord('a') + i)}'), {columns} "
                f"from txinbox_failed_message where consumer = '{consumer}'", text=json.dumps({"no": f"copy {i}"}) + "\n")


def failed(consumer):
    """How many messages of the consumer have failed."""
    return next(each["failed"] for each in rows("status")["consumers"] if each["consumer"] == consumer)


def consume(consumer, keys):
    lines = "".join(json.dumps({"no": key}) + "\n" for key in keys)
    command("consume", "--consumer", consumer, "--key", "/no", "--sql", "insert into page_order(no) values (:no)", text=lines)


def eventually(holds, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if holds():
                return True
        except (NoSuchElementException, StaleElementReferenceException):
            pass  # the page has refreshed itself
        time.sleep(0.1)
    return False


class Serving:
    """`txinbox serve --write`."""

    def __init__(self, port=0):
        self.process = subprocess.Popen([COMMAND, "serve", "--write", "--json", "--listen", f"127.0.0.1:{port}"],
                                        stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "TXINBOX_DB": DATABASE, "TXINBOX_SERVE_TOKEN": TOKEN})
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.port = int(self.url.rstrip("/").rsplit(":", 1)[1])

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=20) == 0
        self.process.stdout.close()


class Proxy:
    """A proxy in front of a server. It passes each GET on, and answers each POST itself, as `answer` says."""

    def __init__(self, to):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                headers = {name: value for name, value in self.headers.items() if name != "Host"}
                request = urllib.request.Request(to.rstrip("/") + self.path, headers=headers)
                try:
                    with urllib.request.urlopen(request, timeout=20) as answer:
                        self.respond(answer.status, answer.headers.items(), answer.read())
                except urllib.error.HTTPError as error:
                    self.respond(error.code, error.headers.items(), error.read())

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.respond(self.server.answer[0], [], self.server.answer[1])

            def respond(self, status, headers, body):
                self.send_response(status)
                for name, value in headers:
                    if name.lower() in ("content-type", "content-encoding", "etag"):
                        self.send_header(name, value)
                if status != 304:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, status, body):
        self.server.answer = (status, body)

    def end(self):
        self.server.shutdown()
        self.server.server_close()


def browser(user="ann", javascript=True, width=1200):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={width},900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if not javascript:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    driver.set_page_load_timeout(60)
    sign_in = base64.b64encode(f"{user}:{TOKEN}".encode()).decode()
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": {"Authorization": "Basic " + sign_in}})
    return driver


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.serving = Serving()
        cls.driver = browser()

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()
        cls.serving.end()

    def open(self, path):
        self.driver.get(self.serving.url + path)

    def button(self, name, **members):
        """The button of this name whose change has these members. It waits for it."""
        found = []

        def is_there():
            found[:] = self.driver.execute_script(  # one call: the page refreshes itself between two calls
                "const [name, members] = arguments; const has = (each) => { const body = JSON.parse(each.dataset.body);"
                "return Object.keys(members).every((key) => body[key] === members[key]); };"
                "return [...document.querySelectorAll('button.change')].filter("
                "(each) => each.textContent === name && has(each))", name, members)
            return found
        self.assertTrue(eventually(is_there), f"there is no button {name} for {members}")
        return found[0]

    def press(self, name, **members):
        """Clicks the button. The page can refresh itself between the search and the click."""
        def clicks():
            self.button(name, **members).click()
            return True
        self.assertTrue(eventually(clicks))

    def confirm(self, **fields):
        for name, value in fields.items():
            self.driver.find_element(By.CSS_SELECTOR, f"dialog input[name={name}]").send_keys(value)
        self.driver.find_element(By.CSS_SELECTOR, "dialog button[value=yes]").click()

    def said(self, text):
        self.assertTrue(eventually(lambda: text in self.driver.find_element(By.ID, "said").text),
                        "the page says: " + self.driver.find_element(By.ID, "said").text)

    def text_said(self):
        """What the page says, with numbers as Python writes them."""
        return self.driver.find_element(By.ID, "said").text.replace("\u202f", "")

    def states(self, consumer):
        found = rows("failed", "list", "--consumer", consumer) + rows("failed", "list", "--consumer", consumer, "--state",
                                                                      "discarded")
        return {each["business_key"]: each["state"] for each in found}

    def screenshot(self, name):
        if SCREENSHOTS:
            self.driver.save_screenshot(str(pathlib.Path(SCREENSHOTS) / f"{name}.png"))

    def test_mouse(self):
        fail("mouse", ["a", "b", "c", "d"])
        self.open("failed?consumer=mouse")
        self.press("Retry", business_key="a")
        self.confirm(reason="ticket 7")
        self.said("Retry: 1 changed.")
        self.press("Discard", business_key="b")
        self.confirm(reason="wrong order")
        self.said("Discard: 1 changed.")
        self.press("Redrive", business_key="c")
        self.confirm(to="orders")
        self.said("Redrive: 1 changed.")
        self.assertEqual(self.states("mouse"), {"b": "discarded", "d": "parked"})
        self.assertEqual([each["topic"] for each in rows("outbox", "list", "--key", "c")], ["orders"])
        audit = rows("audit", "--consumer", "mouse")
        self.assertEqual([(each["by"], each["action"], each["business_key"]) for each in audit],
                         [("ann", "redrive_stored", "c"), ("ann", "discard", "b"), ("ann", "retry", "a")])
        self.assertEqual(audit[2]["reason"], "ticket 7")

    @unittest.skipUnless(DATABASE.startswith("sqlite:"), "the example has a database of its own")
    def test_the_example(self):
        script = pathlib.Path(__file__).parents[2] / "examples" / "page.sh"
        with subprocess.Popen([script, "--json", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "TXINBOX_SERVE_TOKEN": TOKEN,
                                   "TXINBOX_EXAMPLE_COMMAND": str(pathlib.Path(COMMAND).parent)}) as example:
            try:
                lines = iter(example.stdout.readline, "")
                said = next(lines)
                self.assertRegex(said, r"^[1-9]\d* orders of a product were parked")
                before = int(said.split()[0])
                url = next(json.loads(line)["url"] for line in lines if line.startswith("{"))
                self.driver.get(url)
                self.driver.find_element(By.LINK_TEXT, "Failed").click()
                self.assertTrue(eventually(lambda: self.driver.find_elements(By.CSS_SELECTOR, "button.change")))
                body = self.driver.execute_script(
                    "return [...document.querySelectorAll('button.change')].map((each) => JSON.parse(each.dataset.body))"
                    ".find((each) => each.business_key)")
                self.press("Retry", business_key=body["business_key"])
                self.confirm(reason="the inventory is complete")
                self.said("Retry: 1 changed.")

                def parked():
                    page = self.driver.execute_async_script(
                        "const done = arguments[0];"
                        "fetch('api/failed?state=parked').then((answer) => answer.json()).then(done)")
                    return len(page["rows"])
                self.assertTrue(eventually(lambda: parked() == before - 1))

                def is_consumed():
                    self.driver.get(f"{url}message?consumer=order-service&key={body['business_key']}")
                    return "consumed" in self.driver.find_element(By.TAG_NAME, "main").text
                self.assertTrue(eventually(is_consumed))
            finally:
                example.send_signal(signal.SIGTERM)

    def test_cancel(self):
        fail("cancel", ["a"])
        self.open("failed?consumer=cancel")
        self.press("Discard", business_key="a")
        self.driver.find_element(By.CSS_SELECTOR, "dialog button[value=no]").click()
        self.press("Discard", business_key="a")
        self.driver.find_element(By.CSS_SELECTOR, "dialog input[name=reason]").send_keys(Keys.ESCAPE)
        time.sleep(3)
        self.assertEqual(self.states("cancel"), {"a": "parked"})

    def test_keyboard(self):
        fail("keyboard", ["a", "b"])
        self.open("failed?consumer=keyboard")
        button = self.button("Retry", business_key="b")
        self.driver.execute_script("arguments[0].focus()", button)
        time.sleep(5)  # the page refreshes itself, and the focus stays on the button
        self.assertEqual(json.loads(self.driver.switch_to.active_element.get_attribute("data-body"))["business_key"], "b")
        self.driver.switch_to.active_element.send_keys(Keys.ENTER)
        self.assertTrue(eventually(lambda: self.driver.switch_to.active_element.get_attribute("name") == "reason"))
        self.driver.switch_to.active_element.send_keys("by keyboard" + Keys.ENTER)
        self.said("Retry: 1 changed.")
        self.assertEqual(self.states("keyboard"), {"a": "parked"})

    def test_groups_and_two_operators(self):
        fail("two", ["a", "b", "c"])
        self.open("failed?consumer=two")
        self.press("Discard", expected=3)  # the dialog keeps the page as it is
        command("failed", "retry", "--consumer", "two", "a")  # the message that comes now does not take its place
        fail("two", ["d"])
        self.confirm(reason="all of them")
        self.said("there are 2 such messages now")
        time.sleep(3)  # the page refreshes itself
        self.said("there are 2 such messages now")
        self.assertEqual(set(self.states("two").values()), {"parked"})
        other = browser("bob")
        try:
            other.get(self.serving.url + "failed?consumer=two")
            [button for button in other.find_elements(By.CSS_SELECTOR, "button.change")
             if json.loads(button.get_attribute("data-body")).get("business_key") == "d"
             and button.text == "Discard"][0].click()
            other.find_element(By.CSS_SELECTOR, "dialog input[name=reason]").send_keys("twice")
            other.find_element(By.CSS_SELECTOR, "dialog button[value=yes]").click()
            self.assertTrue(eventually(lambda: "1 changed" in other.find_element(By.ID, "said").text))
        finally:
            other.quit()
        self.press("Retry", expected=2)  # the first operator's page has seen the change of the second one
        self.confirm()
        self.said("Retry: 2 changed.")
        self.assertEqual(self.states("two"), {"d": "discarded"})
        self.assertEqual({each["by"] for each in rows("audit", "--consumer", "two")} & {"ann", "bob"}, {"ann", "bob"})

    def test_a_group_is_changed_in_parts_and_stops(self):
        fail_many("parts", 12)
        self.open("failed?consumer=parts")
        self.press("Retry", expected=4096)
        self.confirm(reason="ticket 8")
        self.assertTrue(eventually(lambda: self.driver.find_element(By.CSS_SELECTOR, ".status button").text == "Stop"))
        stop = self.driver.find_element(By.CSS_SELECTOR, ".status button")
        self.assertEqual((stop.accessible_name, stop.aria_role), ("Stop", "button"))
        self.said(" of 4\u202f096 changed.")
        stop.send_keys(Keys.ENTER)
        self.said("Stopped.")
        left = failed("parts")
        self.assertIn(left, (3096, 2096, 1096))
        self.assertEqual(self.text_said(), f"Retry: {4096 - left} of 4096 changed, {left} left. Stopped.")
        self.assertEqual(self.driver.find_elements(By.CSS_SELECTOR, ".status button"), [])
        self.assertEqual(self.driver.switch_to.active_element.get_attribute("id"), "main")
        self.press("Discard", expected=left)
        self.confirm(reason="the rest")
        self.assertTrue(eventually(lambda: self.text_said() == f"Discard: {left} changed."))
        self.assertEqual(self.driver.find_elements(By.CSS_SELECTOR, ".status button, .changing"), [])
        self.assertEqual(failed("parts"), 0)

    def test_a_group_is_published_again(self):
        fail("redriven", ["a", "b"])
        fail("redriven", ["c"], payload=False)
        self.open("failed?consumer=redriven")
        self.press("Redrive", expected=3)
        self.confirm(to="orders")
        self.assertTrue(eventually(lambda: self.text_said() == "Redrive: 2 changed. 1 have no stored payload."))
        self.assertEqual(self.states("redriven"), {"c": "parked"})

    def test_somebody_else_changes_a_group_meanwhile(self):
        fail_many("meanwhile", 12)
        self.open("failed?consumer=meanwhile")
        self.press("Retry", expected=4096)
        self.confirm()
        self.said(" of 4\u202f096 changed.")
        command("failed", "retry", "--consumer", "meanwhile", "k")  # it is the last one of the list
        self.said("such messages now.")
        left = failed("meanwhile")
        self.assertEqual(self.text_said(), f"Retry: there are {left} such messages now. Before: {4095 - left} of 4096 changed, "
                                           f"{left + 1} left.")
        self.assertEqual(self.driver.find_elements(By.CSS_SELECTOR, ".status button, .changing"), [])

    def test_hostile_keys(self):
        fail("hostile", HOSTILE)
        self.driver.get_log("browser")  # of the tests before
        self.open("failed?consumer=hostile")
        for left, key in enumerate(HOSTILE):
            self.press("Retry", business_key=key)
            self.confirm()
            self.assertTrue(eventually(lambda: len(self.states("hostile")) == len(HOSTILE) - left - 1))
            self.assertNotIn(key, self.states("hostile"))
        self.assertEqual(self.driver.find_elements(By.CSS_SELECTOR, "main img, main script"), [])
        self.assertEqual([each for each in self.driver.get_log("browser") if "401" not in each["message"]
                          and "favicon" not in each["message"]
                          and "409" not in each["message"] and "ERR_CONNECTION" not in each["message"]], [])

    def test_pause(self):
        consume("paused", ["a"])
        self.open("")
        self.press("Pause", consumer="paused")
        self.driver.find_element(By.CSS_SELECTOR, "dialog button[value=yes]").click()  # without the reason
        self.assertEqual(rows("status")["pauses"], [])
        self.confirm(reason="a wrong version")
        self.said("Pause: 1 changed.")
        self.assertEqual([each["reason"] for each in rows("status")["pauses"]], ["a wrong version"])
        self.screenshot("consumers")
        self.press("Resume", consumer="paused")
        self.confirm()
        self.said("Resume: 1 changed.")
        self.assertEqual(rows("status")["pauses"], [])

    def test_pages_show_what_the_command_prints(self):
        fail("shown", [f"order-{i}" for i in range(12)])
        fail("shown", ["late-1", "late-2"], attempts="5")
        consume("shown", ["good"])
        for path in ("failed?consumer=shown", "message?consumer=shown&key=order-3", "conflicts", "leases", "outbox", "audit",
                     "doctor"):
            self.open(path)
            self.assertTrue(self.driver.find_element(By.TAG_NAME, "h1").text)
            self.screenshot(path.split("?", maxsplit=1)[0])
        self.open("failed?consumer=shown")
        text = self.driver.find_element(By.ID, "main").text
        for each in rows("failed", "list", "--consumer", "shown"):
            self.assertIn(each["business_key"], text)
        self.open("doctor")
        self.assertTrue(eventually(lambda: "Examined" in self.driver.find_element(By.ID, "main").text))

    def test_the_server_restarts(self):
        serving = Serving()
        self.driver.get(serving.url + "failed")
        time.sleep(1)
        serving.end()
        self.said("The server does not answer.")
        again = Serving(serving.port)
        try:
            self.assertTrue(eventually(lambda: self.driver.find_element(By.ID, "said").text == ""))
        finally:
            self.driver.get("about:blank")
            again.end()

    @unittest.skipUnless(RESTART, "SQLite has no server, and its readers wait for no lock")
    def test_the_database_restarts(self):
        fail("restarts", ["a"])
        self.open("failed?consumer=restarts")
        self.driver.execute_script("window.isThisPage = true")
        with subprocess.Popen([RESTART, "5"]) as restart:
            self.said("The page could not be refreshed: status 503.")
            self.assertIn("a", self.driver.find_element(By.ID, "main").text)  # what it showed last
            self.assertEqual(restart.wait(timeout=120), 0)
        fail("restarts", ["the next"])
        self.assertTrue(eventually(lambda: "the next" in self.driver.find_element(By.ID, "main").text, seconds=60))
        self.assertEqual(self.text_said(), "")
        self.assertTrue(self.driver.execute_script("return window.isThisPage"))

    @unittest.skipUnless(RESTART, "SQLite has no server")
    def test_the_database_restarts_during_a_change(self):
        fail_many("dies", 12)
        self.open("failed?consumer=dies")
        self.press("Retry", expected=4096)
        self.confirm()
        self.assertTrue(eventually(lambda: re.search(" [1-3]000 of 4096 changed[.]", self.text_said())))
        with subprocess.Popen([RESTART, "3"]) as restart:
            self.said(" changed, ")
            self.assertRegex(self.text_said(), r"^Retry: .+\. Before: [1-3]000 of 4096 changed, (3096|2096|1096) left\.")
            left = int(self.text_said().split(" left.")[0].rsplit(" ", 1)[1])
            self.assertEqual(restart.wait(timeout=120), 0)
        self.assertTrue(eventually(lambda: self.text_said().endswith(" left."), seconds=60))  # the page is fresh again
        now = failed("dies")
        self.assertLessEqual(now, left)
        self.assertGreaterEqual(now, left - 1000)
        self.press("Retry", expected=now)
        self.confirm()
        self.assertTrue(eventually(lambda: self.text_said() == f"Retry: {now} changed."))

    def test_a_proxy_answers_a_change(self):
        fail("proxy", ["a"])
        proxy = Proxy(self.serving.url)
        try:
            self.driver.get(proxy.url + "failed?consumer=proxy")
            for status, body in ((502, b"<html>Bad Gateway</html>"), (504, b""), (500, b'{"message": "x"}'), (200, b"null"),
                                 (503, b'"x"')):
                proxy.answer(status, body)
                self.press("Retry", business_key="a")
                self.confirm()
                self.said(f"Retry: the server has answered with status {status}. It is not known whether something has "
                          "changed.")
            proxy.answer(503, b'{"error": "later"}')
            self.press("Retry", business_key="a")
            self.confirm()
            self.said("Retry: later.")
        finally:
            self.driver.get("about:blank")
            proxy.end()
        self.assertEqual(self.states("proxy"), {"a": "parked"})

    def test_without_javascript(self):
        fail("plain", ["a"])
        driver = browser(javascript=False)
        try:
            driver.get(self.serving.url + "failed?consumer=plain")
            self.assertIn("a", driver.find_element(By.LINK_TEXT, "a").text)
            self.assertFalse(any(each.is_displayed() for each in driver.find_elements(By.CSS_SELECTOR, "button.change")))
            driver.find_element(By.LINK_TEXT, "a").click()
            self.assertEqual(driver.find_element(By.TAG_NAME, "h1").text, "Message")
        finally:
            driver.quit()

    def test_small_and_dark(self):
        fail("small", HOSTILE)
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": 360, "height": 700, "deviceScaleFactor": 2, "mobile": True})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        try:
            for path in ("", "failed?consumer=small", "outbox", "audit", "doctor"):
                self.open(path)
                width = self.driver.execute_script("return document.scrollingElement.scrollWidth")
                self.assertLessEqual(width, 360, path)
            colour = self.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
            self.assertEqual(colour, "rgb(15, 20, 25)")
            self.open("failed?consumer=small")
            self.screenshot("small-and-dark")
        finally:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def test_each_control_has_a_name(self):
        fail("labels", ["a"])
        for path in ("", "failed", "outbox", "audit"):
            self.open(path)
            for each in self.driver.find_elements(By.CSS_SELECTOR, "button, input, select, a"):
                self.assertTrue(each.accessible_name, each.get_attribute("outerHTML"))
            self.assertEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "main, nav, h1")), 3)


if __name__ == "__main__":
    if DATABASE.startswith("sqlite:"):
        os.environ["HOME"] = tempfile.mkdtemp()  # for the browser
    command("migrate")
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
