"""Where a run's metrics are shown: in a file, or on a port of this machine."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any
from urllib.parse import urlsplit

from spillway.errors import SpillwayError
from spillway.metrics.exposition import CONTENT_TYPE
from spillway.metrics.run import RunMetrics
from spillway.rundir.stage import explained

HOST = "127.0.0.1"
PATH = "/metrics"
MOST_WAITING = 128  # clients that connect at once; what is beyond that is tried again after a second. Source: guess
MOST_SILENT_S = 10.0  # a client that sends or takes nothing for so long is dropped: Prometheus's own limit of a scrape

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
            file = _place_of(file)
            write_replaced(file, "")

        def feed(arm: str, event: dict[str, Any]) -> None:
            if not metrics.add(arm, event):
                return
            page.text = metrics.text()
            if file is not None:
                write_replaced(file, page.text)

        yield feed, address


def _place_of(file: Path) -> Path:
    """The file that is replaced: a link stays, and what is no file (a directory, a device, a pipe) is refused."""
    with explained(file, "--metrics"):
        if file.exists() and not file.is_file():
            raise SpillwayError(f"--metrics {file}: is not a file; name one, which is replaced at each sample.")
        return file.resolve() if file.is_symlink() else file


def write_replaced(path: Path, text: str) -> None:
    """Writes a file that readers see whole, before or after. It is not synced, so that it costs the measured drive
    little. Raises SpillwayError where it cannot be written."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    with explained(path, "--metrics"):
        try:
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


class _Page:
    """The text that is shown now. Threads of the server read it: a text is replaced as a whole."""

    text = ""


class _Server(ThreadingTCPServer):
    """A thread for each client. It asks no name server for the machine's name, as an HTTPServer does."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = MOST_WAITING

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is not an error of the run, and standard error is the command's."""


@contextmanager
def _served(page: _Page, port: int) -> Iterator[str]:
    """Answers GET /metrics at ``port`` (0: a free one) of this machine, and of no other; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        timeout = MOST_SILENT_S

        def do_GET(self) -> None:
            is_there = urlsplit(self.path).path == PATH
            body = (page.text if is_there else f"The metrics are at {PATH}.\n").encode()
            self.send_response(200 if is_there else 404)
            self.send_header("Content-Type", CONTENT_TYPE if is_there else "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are not logged: standard error is the command's."""

    try:
        server = _Server((HOST, port), Handler)
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
