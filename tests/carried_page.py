"""A page of one file, as `analyze`, `diff`, `export` and `view --html` write it: what it carries, without a browser."""

import base64
import json
import re
import zlib

from page.page_client import columns

HOLDS = re.compile(r'<script type="application/json" id="gpumemprof-data">(.*?)</script>', re.DOTALL)


def words_of(part):
    """Every text of a report's part, in the order in which it is shown."""
    if isinstance(part, str):
        return [part] if part else []
    if isinstance(part, list):
        return [word for one in part for word in words_of(one)]
    if not isinstance(part, dict):
        return []
    order = ("title", "label", "text", "note", "short_text", "columns", "items", "rows", "cells", "frames", "sections", "parts", "details", "left_out_text")
    return [word for name in order for word in words_of(part.get(name))]


class CarriedPage:
    def __init__(self, page):
        text = page.decode() if isinstance(page, bytes) else page
        found = HOLDS.findall(text)
        assert len(found) == 1
        # All that is not the data is the same on every page: nothing of a file gets into it as markup.
        self.frame = HOLDS.sub("", text)
        self.data = json.loads(found[0])
        self.answers = self.data["answers"]

    def ask(self, name, **query):
        key = name + "".join("?&"[i > 0] + f"{k}={v}" for i, (k, v) in enumerate(sorted(query.items())))
        return columns(zlib.decompress(base64.b64decode(self.answers[key]), -15))

    @property
    def files(self):
        return self.ask("run")[0]["files"]

    def documents(self):
        """The reports of the files, and of what is compared."""
        out = [file["document"] for file in self.files]
        for key in self.answers:
            if key.startswith("compare?by=stack"):
                query = dict(part.split("=") for part in key.partition("?")[2].split("&"))
                out.append(self.ask("compare", **query)[0]["document"])
        return [document for document in out if document]

    @property
    def text(self):
        return "\n".join(word for document in self.documents() for word in words_of(document))

    def names(self):
        """All texts of all answers: what anybody who opens the page could read."""
        return "\n".join(json.dumps(columns(zlib.decompress(base64.b64decode(answer), -15))[0], ensure_ascii=False) for answer in self.answers.values())


def has_no_network(page):
    """Nothing is loaded from anywhere, and only the page's own script runs."""
    assert not re.search(r'(src|href)="(?!data:)', page.frame)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.frame)[1]
    assert policy.startswith("default-src 'none'") and "http" not in policy and "unsafe" not in policy
