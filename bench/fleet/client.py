"""Accesses the API server for the benchmark: many small writes over a few connections, and one watch."""

from __future__ import annotations

import http.client
import json
import queue
import ssl
import threading
import time
from collections.abc import Iterable
from typing import Any, Optional
from urllib.parse import urlsplit

from lab.control_plane import ControlPlane
from lab.processes import LabError

PAGE = 500
Request = tuple[str, str, Any]  # method, path, object


class Connection:
    """An HTTPS connection for one thread. The API server closes idle connections.

    A response whose status is not 2xx raises LabError.
    """

    def __init__(self, plane: ControlPlane, timeout: float = 120) -> None:
        address = urlsplit(plane.server)
        context = ssl.create_default_context(cafile=str(plane.dir / "ca.crt"))
        self._http = http.client.HTTPSConnection(address.hostname, address.port, timeout=timeout, context=context)
        self._headers = {"Authorization": f"Bearer {plane.admin_token}"}

    def open(self, method: str, path: str, body: Any = None, **headers: str) -> http.client.HTTPResponse:
        text = None if body is None else json.dumps(body)
        content = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        self._http.request(method, path, body=text, headers={**self._headers, **content, **headers})
        answer = self._http.getresponse()
        if answer.status // 100 != 2:
            raise LabError(f"{method} {path}: {answer.status} {answer.read()[:300]!r}")
        return answer

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> bytes:
        return self.open(method, path, body, **headers).read()

    def everything(self, path: str) -> list[Any]:
        """Returns all objects of a list, which it reads in pages."""
        items: list[Any] = []
        token = ""
        while True:
            page = json.loads(self.ask("GET", f"{path}?limit={PAGE}&continue={token}"))
            items += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                return items

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def send_all(plane: ControlPlane, requests: Iterable[Request], connections: int, per_second: float = 0) -> float:
    """Sends all requests. Returns the seconds that this took.

    `per_second` limits the rate; 0 sends as fast as the API server accepts requests.
    """
    waiting: queue.SimpleQueue[Optional[Request]] = queue.SimpleQueue()
    errors: list[Exception] = []

    def work() -> None:
        connection = Connection(plane)
        try:
            while (request := waiting.get()) is not None and not errors:
                connection.ask(*request)
        except (LabError, OSError, http.client.HTTPException) as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(connections)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for number, request in enumerate(requests):
        if per_second > 0:
            time.sleep(max(0.0, start + number / per_second - time.monotonic()))
        waiting.put(request)
    for _ in threads:
        waiting.put(None)
    for thread in threads:
        thread.join()
    if errors:
        raise LabError(f"the API server refused an object: {errors[0]}")
    return time.monotonic() - start


class JobWatch:
    """Watches the phases of all TrainingJobs. Requests tables, which have a tenth of the objects' size."""

    TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._lock = threading.Lock()
        self._phases: dict[str, str] = {}
        self._last_running = 0.0
        threading.Thread(target=self._follow, daemon=True).start()

    def count(self, phase: str) -> int:
        with self._lock:
            return sum(known == phase for known in self._phases.values())

    def wait_running(self, jobs: int, timeout: float, say: Any) -> float:
        """Waits until `jobs` jobs run. Returns the time.monotonic() at which the last one began to run.

        Reports the number of running jobs every five seconds.
        """
        now = time.monotonic()
        deadline, next_word = now + timeout, now + 5
        while True:
            time.sleep(0.1)
            with self._lock:
                running = sum(phase == "Running" for phase in self._phases.values())
                ended = sum(phase in ("Failed", "Restarting") for phase in self._phases.values())
                if running >= jobs:
                    return self._last_running
            if ended:
                raise LabError(f"{ended} jobs failed or were restarted")
            now = time.monotonic()
            if now > deadline:
                raise LabError(f"{running} of {jobs} jobs ran after {timeout} s")
            if now > next_word:
                next_word = now + 5
                say(f"  {running} of {jobs} jobs run")

    def _follow(self) -> None:
        path = "/apis/gleaner.dev/v1alpha1/trainingjobs?watch=1&includeObject=None&timeoutSeconds=7200"
        while True:
            connection = Connection(self._plane, timeout=7300)
            try:
                answer = connection.open("GET", path, Accept=self.TABLE)
                while line := answer.readline():
                    self._take(json.loads(line))
            except (LabError, OSError, ValueError, http.client.HTTPException):
                time.sleep(0.5)  # the next watch begins with all existing objects, so nothing is missed
            finally:
                connection.close()

    def _take(self, event: Any) -> None:
        with self._lock:
            for row in event["object"].get("rows", []):
                name, phase = row["cells"][0], row["cells"][1]
                if phase == "Running" and self._phases.get(name) != "Running":
                    self._last_running = time.monotonic()
                self._phases[name] = phase
