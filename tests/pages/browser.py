"""Drives a headless Chromium over a pipe: no port is opened, and nothing beside Chromium is needed."""

import base64
import json
import os
import select
import subprocess
import tempfile
import time

WAIT_SECONDS = 60
KEYS = {"ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, "Escape": 27, "Tab": 9,
        "Home": 36, "End": 35, "PageUp": 33, "PageDown": 34, " ": 32}


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="penstock-pages-")
        there, self.write_to = os.pipe()
        self.read_from, back = os.pipe()
        command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
                   "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "about:blank"]
        # Chromium has its orders from file 3, and answers to file 4
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{there} 4>&{back}', "bash", *command],
                                        pass_fds=(there, back), stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(back)
        self.buffer = b""
        self.count = 0
        self.listeners = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (OSError, RuntimeError):
            self.process.kill()
        self.process.wait()
        os.close(self.write_to)
        os.close(self.read_from)
        self.profile.cleanup()

    def receive(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.read_from], [], [], left)[0]:
                return None
            piece = os.read(self.read_from, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        """Sends an order and waits for its answer; what is told meanwhile goes to the pages."""
        self.count += 1
        number = self.count
        order = {"id": number, "method": method, "params": parameters}
        if session:
            order["sessionId"] = session
        os.write(self.write_to, json.dumps(order).encode() + b"\0")
        until = time.monotonic() + WAIT_SECONDS
        while True:
            message = self.receive(until)
            if message is None:
                raise RuntimeError(f"no answer to {method} in {WAIT_SECONDS} s")
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            for listener in self.listeners:
                listener(message)


class Page:
    """A tab. `errors` are what its console and its scripts complained of."""

    def __init__(self, browser, width=1280, height=900, dark=False):
        self.browser = browser
        self.errors = []
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        browser.listeners.append(self.hear)
        for domain in ("Page", "Runtime", "Log", "Accessibility", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.look("screen", dark)

    def hear(self, message):
        if message.get("sessionId") != self.session:
            return
        told = message["params"]
        if message["method"] == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif message["method"] == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(one.get("value", one.get("description"))) for one in told["args"]))
        elif message["method"] == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.errors.append(told["entry"]["text"])

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def close(self):
        self.browser.listeners.remove(self.hear)
        self.browser.call("Target.closeTarget", targetId=self.target)

    def resize(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def look(self, media, dark):
        self.call("Emulation.setEmulatedMedia", media="" if media == "screen" else media,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")
        self.settle()

    def settle(self):
        """Two frames have been drawn since."""
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def js(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def wait(self, condition, seconds=30):
        until = time.monotonic() + seconds
        while not self.js(condition):
            if time.monotonic() > until:
                raise RuntimeError(f"never came: {condition}")
            time.sleep(0.05)

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, x, y):
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def drag(self, x, y, to_x, to_y):
        self.move(x, y)
        self.call("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=to_x, y=to_y, button="left", buttons=1)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", x=to_x, y=to_y, button="left", clickCount=1)
        self.settle()

    def key(self, name, shift=False):
        text = name if len(name) == 1 else "\r" if name == "Enter" else None
        code = KEYS.get(name, ord(name[0].upper()) if len(name) == 1 else 0)
        common = {"key": name, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.settle()

    def screenshot(self, path, whole=False):
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))

    def print(self, path):
        paper = self.call("Page.printToPDF", printBackground=True)
        data = base64.b64decode(paper["data"])
        with open(path, "wb") as file:
            file.write(data)
        return data

    def names(self):
        """Role and name of what a screen reader meets."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes
                if not node.get("ignored") and "role" in node]
