"""As plain a browser as can be, for a dashboard that runs as a process."""

import http.client
import re
from collections.abc import Mapping
from urllib.parse import urlencode


class Visit:
    """As plain a browser as can be: it keeps cookies and reads forms' tokens."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookies: dict[str, str] = {}

    def send(
        self, method: str, path: str, fields: Mapping[str, str] | None = None, **headers: str
    ) -> "Answer":
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            if self.cookies:
                named["cookie"] = "; ".join(
                    f"{name}={value}" for name, value in self.cookies.items()
                )
            body = None
            if fields is not None:
                body = urlencode(fields)
                named["content-type"] = "application/x-www-form-urlencoded"
            connection.request(method, path, body, named)
            answer = Answer(connection.getresponse())
        finally:
            connection.close()
        for cookie in answer.set_cookies:
            name, _, rest = cookie.partition("=")
            value = rest.partition(";")[0].strip('"')
            if value and "max-age=0" not in cookie.lower():
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        return answer

    def get(self, path: str, **headers: str) -> "Answer":
        return self.send("GET", path, None, **headers)

    def post(self, path: str, fields: Mapping[str, str] | None = None, **headers: str) -> "Answer":
        """Send a form with the CSRF token of this visitor, unless one is given."""
        given = dict(fields or {})
        if "csrf" not in given:
            given["csrf"] = self.csrf()
        return self.send("POST", path, given, **headers)

    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]*)"', self.get("/login?link=x").text)
        return found[1] if found else ""

    def log_in(self, link: str) -> "Answer":
        path = link.partition(f":{self.port}")[2]
        page = self.get(path).text
        found = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page))
        return self.send("POST", "/login", found)


class Answer:
    """What a dashboard said."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.set_cookies = response.headers.get_all("set-cookie") or []
        self.body = response.read()

    @property
    def text(self) -> str:
        return self.body.decode()
