"""A small real engine process for the tests: serves HTTP as SGLang does, and misbehaves on demand.

Run as a script with nothing but the standard library. A chat request's prompt says what happens to it:
`status N`, `reset`, `exit`, `wait N` (seconds), `hang`; anything else is answered with the prompt itself.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--samples", type=Path, help="folder with server_info.json, v1_models.json, metrics.txt")
    parser.add_argument("--say", action="append", default=[])
    parser.add_argument("--ready-after", type=float, default=0.0)
    parser.add_argument("--exit-at-start", type=int)
    parser.add_argument("--grandchild", type=Path, help="file that gets the pid of a grandchild in its own session")
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--tell-key", action="store_true")
    parser.add_argument("--stuck-health", action="store_true")
    return parser.parse_args()


OPTIONS = parse()
STARTED = time.monotonic()
ABORTED = Path(os.environ.get("ABORTED", os.devnull))
KEY = os.environ.get("ENGINE_API_KEY")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body=b"", kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/health":
            if OPTIONS.stuck_health:
                return self.reply(503)
            return self.reply(200 if time.monotonic() - STARTED >= OPTIONS.ready_after else 503)
        if KEY and self.path != "/metrics" and self.headers.get("Authorization") != f"Bearer {KEY}":
            return self.reply(401, b'{"error":"Unauthorized"}')
        names = {"/server_info": "server_info.json", "/v1/models": "v1_models.json", "/metrics": "metrics.txt"}
        if OPTIONS.samples and self.path in names:
            return self.reply(200, (OPTIONS.samples / names[self.path]).read_bytes())
        return self.reply(404, b'{"detail":"Not Found"}')

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if KEY and self.headers.get("Authorization") != f"Bearer {KEY}":
            return self.reply(401, b'{"error":"Unauthorized"}')
        picture, question = body["messages"][0]["content"]
        verb, _, number = question["text"].partition(" ")
        if verb == "status":
            return self.reply(int(number), b'{"object":"error","message":"as asked","code":1}')
        if verb == "reset":
            self.close_connection = True
            return self.connection.close()
        if verb == "exit":
            os._exit(3)
        if verb in ("wait", "hang"):
            self.wait(float(number or 3600))
        return self.reply(200, json.dumps(self.answer(body, picture, question["text"])).encode())

    def wait(self, seconds):
        """Until the time is up or the caller has gone, which is written down."""
        deadline = time.monotonic() + seconds
        self.connection.settimeout(0.02)
        while time.monotonic() < deadline:
            try:
                if not self.connection.recv(1):
                    ABORTED.write_text("aborted")
                    sys.exit()
            except TimeoutError:
                continue
        self.connection.settimeout(None)

    def answer(self, body, picture, prompt):
        url = picture["image_url"]["url"]
        said = {"prompt": prompt, "picture": url, "max_tokens": body["max_tokens"], "options": sorted(body)}
        text = json.dumps(said)
        return {
            "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 5},
        }


def main():
    for line in OPTIONS.say:
        print(line, flush=True)
    if OPTIONS.tell_key:
        print(f"api_key={KEY}", flush=True)
    if OPTIONS.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if OPTIONS.grandchild:
        sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        OPTIONS.grandchild.write_text(str(sleeper.pid))
    if OPTIONS.exit_at_start is not None:
        sys.exit(OPTIONS.exit_at_start)
    server = ThreadingHTTPServer(("127.0.0.1", OPTIONS.port), Handler)
    server.daemon_threads = True
    if not OPTIONS.ignore_term:
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever(poll_interval=0.02)


main()
