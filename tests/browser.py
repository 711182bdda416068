"""Chromium as tests drive it: by its own protocol (DevTools), so that nothing but a Chromium need be installed."""

import json
import shutil
import subprocess
import tempfile
import time
from base64 import b64decode
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# A key as a browser tells it: key, code, number, and what it writes.
KEYS = {
    "HOME": ("Home", "Home", 36, ""),
    "END": ("End", "End", 35, ""),
    "PAGE_UP": ("PageUp", "PageUp", 33, ""),
    "PAGE_DOWN": ("PageDown", "PageDown", 34, ""),
    "ARROW_LEFT": ("ArrowLeft", "ArrowLeft", 37, ""),
    "ARROW_RIGHT": ("ArrowRight", "ArrowRight", 39, ""),
    "ESCAPE": ("Escape", "Escape", 27, ""),
    "TAB": ("Tab", "Tab", 9, ""),
    "ENTER": ("Enter", "Enter", 13, "\r"),
    "SPACE": (" ", "Space", 32, " "),
}
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
)  # fmt: skip


class Browser:
    """One page of Chromium at a width, with what it asked for and what it complained of."""

    def __init__(self, width=1200, height=900):
        import websocket

        # Chromium still writes into its folder while it ends.
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [CHROMIUM, *_FLAGS, f"--user-data-dir={self._folder.name}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._sent, self._told = 0, []
        port, address = self._door().split("\n")[:2]
        self._socket = websocket.create_connection(
            f"ws://127.0.0.1:{port}{address}", timeout=60, suppress_origin=True, max_size=None
        )
        self._session = None
        page = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Network", "Log"):
            self._ask(f"{part}.enable")
        self.size(width, height)

    def _door(self):
        """Port and address, which Chromium writes into its folder once it listens."""
        written = Path(self._folder.name) / "DevToolsActivePort"
        end = time.monotonic() + 60
        while not (written.exists() and "\n" in (text := written.read_text())):
            if time.monotonic() > end or self._process.poll() is not None:
                raise RuntimeError(f"{CHROMIUM} does not start")
            time.sleep(0.05)
        return text

    def _ask(self, method, **parameters):
        """What Chromium answers; what it tells in between is kept."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._sent:
                break
            self._told.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def quit(self):
        self._session = None
        self._ask("Browser.close")
        self._socket.close()
        self._process.wait(timeout=60)
        self._folder.cleanup()

    def size(self, width, height):
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, page):
        """Open a file, and wait until it has loaded."""
        self._told.clear()
        self._ask("Page.navigate", url=page.absolute().as_uri())
        while not any(each["method"] == "Page.loadEventFired" for each in self._told):
            self._told.append(json.loads(self._socket.recv()))

    def run(self, script, *arguments):
        """What a script returns, or what the promise that it returns brings."""
        answer = self._ask(
            "Runtime.evaluate",
            expression=f"(function () {{ {script} }}).apply(null, {json.dumps(arguments)})",
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def told(self, method):
        """What Chromium has told of one kind since the page was opened."""
        return [each["params"] for each in self._told if each["method"] == method]

    def asked(self):
        """Addresses that were asked for since the page was opened."""
        self.run("return 0")
        return [each["request"]["url"] for each in self.told("Network.requestWillBeSent")]

    def complaints(self):
        """Errors and warnings since the page was opened."""
        self.run("return 0")
        logged = [each["entry"]["text"] for each in self.told("Log.entryAdded")]
        return logged + [each["exceptionDetails"]["text"] for each in self.told("Runtime.exceptionThrown")]

    def focus(self, selector):
        self.run("document.querySelector(arguments[0]).focus()", selector)

    def press(self, selector, *names):
        """Keys, as a keyboard gives them, to an element."""
        self.focus(selector)
        for name in names:
            key, code, number, text = KEYS[name]
            pressed = {"key": key, "code": code, "windowsVirtualKeyCode": number}
            self._ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **pressed)
            self._ask("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def point(self, selector, right=0.5, down=0.5):
        """Move the pointer to a place of an element: shares of its width and height."""
        left, top, width, height = self.run(
            "const found = document.querySelector(arguments[0]); found.scrollIntoView({block: 'center'});"
            "const box = found.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]",
            selector,
        )
        self._ask("Input.dispatchMouseEvent", type="mouseMoved", x=left + right * width, y=top + down * height)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector)

    def picture(self, path, whole=False):
        """A picture of what is seen, or of the whole page."""
        shot = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(b64decode(shot["data"]))
