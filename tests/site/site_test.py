#!/usr/bin/python3
"""Reads the site in Chromium: the first page, a search, tables, code and plots, the pages of the API, and a small screen.
The site is in the folder TXINBOX_TEST_SITE. This program serves it in a folder of a host, as a released version.

No page may send a request to another host. The pictures of the pages are written to the folder TXINBOX_TEST_SCREENSHOTS.
"""

import functools
import http.server
import json
import os
import pathlib
import tempfile
import threading
import unittest
import urllib.parse

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SITE = os.environ["TXINBOX_TEST_SITE"]
SCREENSHOTS = pathlib.Path(os.environ["TXINBOX_TEST_SCREENSHOTS"])
VERSION = "/0.1"
SECONDS = 20


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site in the folder of a version."""

    def translate_path(self, path):
        return super().translate_path(path.removeprefix(VERSION) if path.startswith(VERSION + "/") else "/no such file")

    def log_message(self, *_):
        pass


def browser():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1300,1000",
                     "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    driver.set_page_load_timeout(60)
    return driver


class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=SITE))
        cls.host = f"127.0.0.1:{cls.server.server_port}"
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.driver = browser()
        cls.requests = 0

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()
        cls.server.shutdown()
        cls.server.server_close()
        print(f"count: {cls.requests} requests, none to another host")

    def tearDown(self):
        """No request has left the host, and the browser reports no error."""
        for entry in self.driver.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                url = urllib.parse.urlsplit(event["params"].get("request", event["params"])["url"])
                if url.scheme not in ("data", "blob", "about", "chrome"):
                    self.assertEqual(url.netloc, self.host, url.geturl())
                    type(self).requests += 1
        errors = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        self.assertEqual([each for each in errors if "favicon.ico" not in each], [])

    def open(self, path):
        self.driver.get(f"http://{self.host}{VERSION}/{path}")

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def eventually(self, holds):
        return WebDriverWait(self.driver, SECONDS).until(lambda _: holds())

    def screenshot(self, name):
        self.driver.save_screenshot(str(SCREENSHOTS / f"{name}.png"))

    def test_first_page(self):
        self.open("")
        self.assertEqual([each.text.rstrip("¶") for each in self.all("article h1")], ["txinbox"])
        self.assertGreaterEqual(len(self.all("article table")), 4)
        self.assertGreater(len(self.all("article pre code span")), 100, "the code has no colours")
        titles = self.driver.execute_script(
            "return [...document.querySelectorAll('.md-nav--primary > ul > li')]"
            ".map((each) => each.querySelector('a, label').textContent.trim())")
        self.assertEqual(titles, ["Home", "All pages", "Introduction", "The first service", "Guides", "Operations",
                                  "Reference", "Internals", "Security", "Changelog", "Sources"])
        self.screenshot("first-page")

    def test_search(self):
        self.open("")
        field = self.driver.find_element(By.CSS_SELECTOR, "input.md-search__input")
        field.click()
        field.send_keys("lease")
        self.eventually(lambda: self.all("a.md-search-result__link"))
        pages = [urllib.parse.urlsplit(each.get_attribute("href")).path for each in self.all("a.md-search-result__link")]
        self.assertIn(f"{VERSION}/docs/guides/leases.html", pages)
        self.screenshot("search")
        self.all("a.md-search-result__link")[0].click()
        self.eventually(lambda: "lease" in self.driver.find_element(By.TAG_NAME, "article").text.lower())

    def test_images(self):
        for page, name in (("docs/benchmarks.html", "plots"), ("docs/operations/watching.html", "dashboard"),
                           ("docs/operations/page.html", "pictures")):
            self.open(page)
            self.assertTrue(self.all("article img"))
            self.eventually(lambda: self.driver.execute_script(
                "return [...document.querySelectorAll('article img')].every((each) => each.complete && each.naturalWidth > 0)"))
            self.driver.execute_script("document.querySelector('article img').scrollIntoView({block: 'center'})")
            self.screenshot(name)

    def test_index(self):
        self.open("docs/index.html")
        self.driver.find_element(By.LINK_TEXT, "The guard").click()
        self.eventually(lambda: self.driver.current_url.endswith("/docs/reference/guard.html"))
        self.screenshot("guard")

    def test_api(self):
        self.open("docs/reference/api.html")
        self.driver.find_element(By.LINK_TEXT, "run.hpp").click()
        self.eventually(lambda: self.driver.current_url.endswith("/api/run_8hpp.html"))
        self.assertIn("run.hpp", self.driver.title)
        self.screenshot("api")

    def test_small_screen(self):
        """Wide tables and code scroll by themselves."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True})
        try:
            for page, name in (("", "small"), ("docs/internals/reliability.html", "small-table")):
                self.open(page)
                self.assertLessEqual(self.driver.execute_script("return document.documentElement.scrollWidth"), 400, page)
                self.screenshot(name)
        finally:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


if __name__ == "__main__":
    os.environ["HOME"] = tempfile.mkdtemp()  # for the browser
    unittest.main(verbosity=2)
