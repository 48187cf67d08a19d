"""Where a run's metrics are shown: in a file, or on a port of this machine."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError
from spillway.metrics.exposition import CONTENT_TYPE
from spillway.metrics.run import RunMetrics
from spillway.rundir.stage import explained

HOST = "127.0.0.1"
PATH = "/metrics"

Feed = Callable[[str, dict[str, Any]], None]  # the arm's label and an event of its run


@contextmanager
def published(file: Path | None, port: int | None) -> Iterator[tuple[Feed, str]]:
    """Shows the metrics of what is fed, until the end; yields the feed, and the address of the end point ("": none).

    The file stays at its last state. Raises SpillwayError where the file cannot be written, or nothing can listen at
    the port; the feed raises it where the file cannot be written any more.
    """
    metrics = RunMetrics()
    page = _Page()
    with ExitStack() as stack:
        address = stack.enter_context(_served(page, port)) if port is not None else ""
        if file is not None:
            write_replaced(file, "")

        def feed(arm: str, event: dict[str, Any]) -> None:
            if not metrics.add(arm, event):
                return
            page.text = metrics.text()
            if file is not None:
                write_replaced(file, page.text)

        yield feed, address


def write_replaced(path: Path, text: str) -> None:
    """Writes a file that readers see whole, before or after. It is not synced, so that it costs the measured drive
    little. Raises SpillwayError where it cannot be written."""
    partial = path.with_name(f".{path.name}.partial")
    with explained(path):
        try:
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


class _Page:
    """The text that is shown now. Threads of the server read it: a text is replaced as a whole."""

    text = ""


@contextmanager
def _served(page: _Page, port: int) -> Iterator[str]:
    """Answers GET /metrics at ``port`` (0: a free one) of this machine, and of no other; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_there = self.path.split("?")[0] == PATH
            body = (page.text if is_there else f"The metrics are at {PATH}.\n").encode()
            self.send_response(200 if is_there else 404)
            self.send_header("Content-Type", CONTENT_TYPE if is_there else "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are not logged: standard error is the command's."""

    try:
        server = ThreadingHTTPServer((HOST, port), Handler)
    except (OSError, OverflowError) as error:
        raise SpillwayError(
            f"--metrics-port {port}: {getattr(error, 'strerror', None) or error}; give another port, or 0."
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}{PATH}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
