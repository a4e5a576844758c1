"""A page in headless Chromium, driven over its debugging pipe with the standard library alone."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
PATIENCE = 120.0  # seconds for an answer
CHILDREN = 10.0  # seconds for killed children to be gone


class Browser:
    """One tab. Console messages, exceptions and requests are collected as they come."""

    def __init__(self, profile: Path) -> None:
        read_commands, self._commands = os.pipe()
        self._answers, write_answers = os.pipe()

        def connect() -> None:
            # above 4 first, so that neither is overwritten before it is copied; 3 and 4 may be free
            # again, as matplotlib closes its fonts after a fork
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 5) for end in (read_commands, write_answers)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [
                PROGRAM,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--remote-debugging-pipe",
                f"--user-data-dir={profile}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=connect,
            start_new_session=True,  # a group to kill as a whole
        )
        os.close(read_commands)
        os.close(write_answers)
        self._count, self._buffer, self._session = 0, b"", None
        self.events: list[dict] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
        os.close(self._commands)
        os.close(self._answers)

    def _kill(self) -> None:
        """Kill Chromium and its children, which write to the profile until they are gone."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        end = time.monotonic() + CHILDREN
        with suppress(ProcessLookupError):
            while time.monotonic() < end:
                os.killpg(self._process.pid, 0)
                time.sleep(0.01)

    def call(self, method: str, **params: object) -> dict:
        """Send a command and wait for its answer."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _receive(self) -> dict:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            if not select.select([self._answers], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            chunk = os.read(self._answers, 1 << 20)
            if not chunk:
                raise RuntimeError("Chromium is gone")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path: Path, width: int, scheme: str = "light") -> None:
        """Load a file at a width, as a phone would if it is narrow."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self.events.clear()
        loader = self.call("Page.navigate", url=path.resolve().as_uri())["loaderId"]
        # the load event of an earlier page may come late
        while not any(_is_load(event, loader) for event in self.events):
            self.events.append(self._receive())

    def run(self, script: str) -> object:
        """The value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def screenshot(self, path: Path, whole: bool = True) -> None:
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        extra = {"captureBeyondViewport": True, "clip": clip} if whole else {}
        data = self.call("Page.captureScreenshot", format="png", **extra)["data"]
        path.write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, and exceptions."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif event.get("method") == "Log.entryAdded":
                found.append(str(params["entry"]))
            elif event.get("method") == "Runtime.consoleAPICalled":
                found.append(str(params["args"]))
        return found

    def requests(self) -> list[str]:
        """Addresses that the page asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]


def _is_load(event: dict, loader: str) -> bool:
    """Whether an event says that the page of this navigation has loaded."""
    params = event.get("params", {})
    kind = event.get("method"), params.get("name"), params.get("loaderId")
    return kind == ("Page.lifecycleEvent", "load", loader)
