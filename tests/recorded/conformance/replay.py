#!/usr/bin/env python3
"""Replay recorded HTTP transcripts against a flowcontrol.apiserver.k8s.io server.

Every transcript is one JSON file, packed with gzip or not: a list of steps, each a request
and the response of a real kube-apiserver, with placeholders for values that change.
README.md beside this script describes the format in full.

Only the Python standard library is needed (Python 3.8 or newer); with PyYAML
installed, YAML answers are compared as well.

Exit status: 0 when every selected transcript passed (or was skipped),
1 when at least one failed, 2 on a usage error or when the server cannot be reached.
"""
import argparse
import base64
import copy
import fnmatch
import gzip
import http.client
import json
import os
import queue
import re
import socket
import ssl
import sys
import threading
import time
import urllib.parse

try:
    import yaml  # optional: YAML answers are compared only when PyYAML is installed
except ImportError:
    yaml = None

USER_AGENT = "conformance/1.0 (replay)"

# ---------------------------------------------------------------------------
# placeholders
# ---------------------------------------------------------------------------

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
RV = r"[1-9][0-9]*"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
GEN = r"[bcdfghjklmnpqrstvwxz2456789]{5}"
AGE = r"(?:\d+[smhdy](?:\d+[smhd])?)"
TOKEN = re.compile(
    r"\{\{(uid|rv|lrv|time|continue|gen|age|any|int|user|absent|pad)"
    r"(?::([A-Za-z0-9_\-]+(?::\d+)?))?(?:(>=|\+)(\d+))?\}\}"
)
PATTERNS = {
    "uid": UUID,
    "rv": RV,
    "lrv": RV,
    "time": TIME,
    "continue": r"[A-Za-z0-9_\-=]+",
    "gen": GEN,
    "age": AGE,
    "any": r"[\s\S]*",
    "int": r"-?\d+",
}


class Mismatch(Exception):
    pass


class Bindings:
    """Values bound by placeholders while one transcript is replayed."""

    def __init__(self, users=None):
        self.v = {}
        self.users = users or {}

    def key(self, kind, label):
        return "%s:%s" % (kind, label)

    def get(self, kind, label):
        return self.v.get(self.key(kind, label))

    def bind(self, kind, label, value):
        """Bind or check one labelled placeholder; returns an error text or None."""
        k = self.key(kind, label)
        if k in self.v:
            if self.v[k] != value:
                return "%s must equal the earlier %s, %r, but is %r" % (kind, k, self.v[k], value)
            return None
        if kind == "rv":
            n, val = int(label), int(value)
            for other, ov in self.v.items():
                if other.startswith("rv:"):
                    on, ov = int(other[3:]), int(ov)
                    if on < n and not ov < val:
                        return "resourceVersion %s must be greater than %s (%d), but is %d" % (k, other, ov, val)
                    if on > n and not ov > val:
                        return "resourceVersion %s must be less than %s (%d), but is %d" % (k, other, ov, val)
        if kind in ("uid", "gen", "continue"):
            for other, ov in self.v.items():
                if other.startswith(kind + ":") and ov == value:
                    return "%s must differ from %s, but both are %r" % (k, other, value)
        self.v[k] = value
        return None

    def expand(self, obj):
        """Replace placeholders in a request by the values bound to them."""
        if isinstance(obj, dict):
            if set(obj) == {"$repeat"}:
                r = obj["$repeat"]
                return [self.expand(copy.deepcopy(r["item"])) for _ in range(r["count"])]
            return {self.expand(k): self.expand(v) for k, v in obj.items()}
        if isinstance(obj, list):
            return [self.expand(x) for x in obj]
        if isinstance(obj, str):
            return TOKEN.sub(self._one, obj)
        return obj

    def _one(self, m):
        kind, label, op, num = m.groups()
        if kind == "pad":
            ch, n = label.split(":")
            return ch * int(n)
        if kind == "user":
            return self.users.get(label, label)
        if label is None:
            raise Mismatch("placeholder %s cannot be used in a request" % m.group(0))
        val = self.get(kind, label)
        if val is None:
            raise Mismatch("placeholder %s is not bound: an earlier step did not give it" % m.group(0))
        if op == "+":
            return str(int(val) + int(num))
        return val

    def match_string(self, exp, act):
        """Match one expected string that holds placeholders. None when it fits."""
        parts, names, pos = [], [], 0
        for m in TOKEN.finditer(exp):
            parts.append(re.escape(exp[pos:m.start()]))
            kind, label, op, num = m.groups()
            pos = m.end()
            if kind == "user":
                parts.append(re.escape(self.users.get(label, label)))
                continue
            if kind not in PATTERNS:
                parts.append(re.escape(m.group(0)))
                continue
            parts.append("(" + PATTERNS[kind] + ")")
            names.append((kind, label, op, num))
        parts.append(re.escape(exp[pos:]))
        r = re.fullmatch("".join(parts), act)
        if not r:
            return "does not fit the expected form"
        for (kind, label, op, num), val in zip(names, r.groups()):
            if kind in ("rv", "lrv") and op == ">=":
                low = self.get("rv", num)
                if low is not None and int(val) < int(low):
                    return "resourceVersion must be at least rv:%s (%s), but is %s" % (num, low, val)
                if kind == "rv":
                    continue
            if label is not None:
                e = self.bind(kind, label, val)
                if e:
                    return e
        return None


# ---------------------------------------------------------------------------
# comparison
# ---------------------------------------------------------------------------

def show(x, limit=600):
    s = json.dumps(x, ensure_ascii=False, sort_keys=True)
    return s if len(s) <= limit else s[:limit] + "... (%d characters)" % len(s)


def mf_key(e):
    if not isinstance(e, dict):
        return ("", "", "", "")
    return tuple(str(e.get(k, "")) for k in ("manager", "operation", "apiVersion", "subresource"))


def show_pair(exp, act, out):
    """Two differing strings; the common beginning of long ones is left out."""
    n = 0
    if len(exp) > 300 or len(act) > 300:
        while n < min(len(exp), len(act)) and exp[n] == act[n]:
            n += 1
        n = max(0, n - 60)
    pre = "..." if n else ""
    out.append("    expected %s%s" % (pre, show(exp[n:])))
    out.append("    got      %s%s" % (pre, show(act[n:])))


def compare(exp, act, b, subset, path, out):
    """Append one line to out for every difference between exp and act."""
    if isinstance(exp, str) and exp == "{{any}}":
        return
    if isinstance(exp, dict) and set(exp) == {"$contains"}:
        if not isinstance(act, list):
            out.append("%s: expected a list, got %s" % (path or "body", show(act)))
            return
        for i, e in enumerate(exp["$contains"]):
            best = None
            for a in act:
                save = dict(b.v)
                tmp = []
                compare(e, a, b, subset, "%s[%s]" % (path, "*"), tmp)
                if not tmp:
                    best = []
                    break
                b.v = save
                if best is None or len(tmp) < len(best):
                    best = tmp
            if best is None:
                out.append("%s: the list is empty, expected it to contain %s" % (path, show(e)))
            elif best:
                out.append("%s: no element of the list matches %s; nearest:" % (path, show(e)))
                out.extend("    " + x for x in best[:8])
        return
    if isinstance(exp, dict) and set(exp) == {"$unordered"}:
        want = exp["$unordered"]
        if not isinstance(act, list) or len(want) != len(act):
            out.append("%s: expected a list of %d elements, got %s" % (path or "body", len(want), show(act)))
            return
        left = list(act)
        for e in want:
            for a in left:
                save, tmp = dict(b.v), []
                compare(e, a, b, subset, path + "[*]", tmp)
                if not tmp:
                    left.remove(a)
                    break
                b.v = save
            else:
                out.append("%s: no element (of those left) matches %s" % (path or "body", show(e)))
                out.append("    left     %s" % show(left))
        return
    if path.endswith("managedFields") and isinstance(exp, list) and isinstance(act, list):
        # their order depends on clock seconds: compared by manager, operation, version, subresource
        exp, act = sorted(exp, key=mf_key), sorted(act, key=mf_key)
    if isinstance(exp, dict) and isinstance(act, dict):
        for k in exp:
            p = path + "." + k if path else k
            if exp[k] == "{{absent}}":
                if k in act:
                    out.append("%s: must be absent, got %s" % (p, show(act[k])))
                continue
            if k not in act:
                out.append("%s: missing, expected %s" % (p, show(exp[k])))
            else:
                compare(exp[k], act[k], b, subset, p, out)
        if not subset:
            for k in act:
                if k not in exp:
                    out.append("%s: unexpected, got %s" % (path + "." + k if path else k, show(act[k])))
        return
    if isinstance(exp, list) and isinstance(act, list):
        if len(exp) != len(act):
            out.append("%s: expected %d elements, got %d" % (path or "body", len(exp), len(act)))
            out.append("    expected %s" % show(exp))
            out.append("    got      %s" % show(act))
            return
        for i, (e, a) in enumerate(zip(exp, act)):
            compare(e, a, b, subset, "%s[%d]" % (path, i), out)
        return
    if isinstance(exp, str) and isinstance(act, str):
        if TOKEN.search(exp):
            e = b.match_string(exp, act)
            if e:
                out.append("%s: %s" % (path or "body", e))
                show_pair(exp, act, out)
            return
        if exp != act:
            out.append("%s:" % (path or "body"))
            show_pair(exp, act, out)
        return
    if isinstance(exp, str) and exp == "{{int}}" and isinstance(act, int) and not isinstance(act, bool):
        return
    if type(exp) is not type(act) or exp != act:
        out.append("%s: expected %s, got %s" % (path or "body", show(exp), show(act)))


# ---------------------------------------------------------------------------
# HTTP
# ---------------------------------------------------------------------------

class Client:
    def __init__(self, server, insecure=False, cafile=None, tokens=None, timeout=90):
        u = urllib.parse.urlsplit(server)
        self.scheme, self.host = u.scheme, u.hostname
        self.port = u.port or (443 if u.scheme == "https" else 80)
        self.base = u.path.rstrip("/")
        self.tokens = tokens or {}
        self.timeout = timeout
        self.ctx = None
        if self.scheme == "https":
            self.ctx = ssl.create_default_context(cafile=cafile)
            if insecure:
                self.ctx.check_hostname = False
                self.ctx.verify_mode = ssl.CERT_NONE

    def connect(self, timeout=None):
        t = timeout or self.timeout
        if self.scheme == "https":
            return http.client.HTTPSConnection(self.host, self.port, context=self.ctx, timeout=t)
        return http.client.HTTPConnection(self.host, self.port, timeout=t)

    def send(self, req, timeout=None):
        """Send one (already expanded) request; returns connection and response."""
        path = self.base + req["path"]
        q = req.get("query")
        if q:
            pairs = []
            for k, v in (q.items() if isinstance(q, dict) else q):
                for x in (v if isinstance(v, list) else [v]):
                    pairs.append((k, x))
            path += "?" + urllib.parse.urlencode(pairs)
        headers = {"User-Agent": USER_AGENT, "Accept": "application/json"}
        body = None
        if "body" in req:
            body = json.dumps(req["body"]).encode()
            headers["Content-Type"] = "application/json"
        elif "rawBody" in req:
            body = req["rawBody"].encode()
        elif "base64Body" in req:
            body = base64.b64decode(req["base64Body"])
        auth = req.get("auth", "admin")
        if auth != "none":
            tok = self.tokens.get(auth)
            if auth == "invalid":
                tok = "this-token-is-not-valid"
            if tok is not None:
                headers["Authorization"] = "Bearer " + tok
        for k, v in (req.get("headers") or {}).items():
            for have in list(headers):
                if have.lower() == k.lower():
                    del headers[have]
            if v is not None:
                headers[k] = v
        conn = self.connect(timeout)
        conn.putrequest(req["method"], path, skip_accept_encoding=True)
        for k, v in headers.items():
            conn.putheader(k, v)
        if body is not None:
            conn.putheader("Content-Length", str(len(body)))
        elif req["method"] in ("POST", "PUT", "PATCH"):
            conn.putheader("Content-Length", "0")
        try:
            conn.endheaders(body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server may answer before it has read an oversize body
        return conn, conn.getresponse()


class Watch:
    """One open watch stream, read by a thread."""

    def __init__(self, conn, resp):
        self.conn, self.resp, self.sock = conn, resp, conn.sock
        self.q = queue.Queue()
        self.closed = False
        self.t = threading.Thread(target=self.run, daemon=True)
        self.t.start()

    def run(self):
        try:
            while True:
                line = self.resp.readline()
                if not line:
                    break
                if line.strip():
                    self.q.put(json.loads(line))
        except Exception as e:  # the stream was cut
            self.q.put({"type": "$STREAM-ERROR", "object": str(e)})
        self.closed = True
        self.q.put(None)

    def collect(self, want, wait, settle, ignore_bookmarks, expect_close):
        events, closed = [], False
        end = time.time() + wait
        while True:
            now = time.time()
            if len(events) >= want and not expect_close:
                left = settle
                end = min(end, now + settle)
            left = end - now
            if left <= 0:
                break
            try:
                e = self.q.get(timeout=left)
            except queue.Empty:
                break
            if e is None:
                closed = True
                break
            if e.get("type") == "BOOKMARK" and (ignore_bookmarks is True or (
                    ignore_bookmarks == "periodic" and not is_initial_end(e))):
                continue
            events.append(e)
        return events, closed

    def close(self):
        try:
            if self.sock is not None:
                self.sock.shutdown(socket.SHUT_RDWR)  # wakes the reading thread
        except OSError:
            pass
        self.t.join(2)
        if not self.t.is_alive():
            self.conn.close()


def is_initial_end(event):
    md = (event.get("object") or {}).get("metadata") or {}
    return (md.get("annotations") or {}).get("k8s.io/initial-events-end") == "true"


def header_values(resp, name):
    return [v for k, v in resp.getheaders() if k.lower() == name.lower()]


def fmt_of(raw):
    s = raw.decode("utf-8", "replace")
    return "pretty" if s.startswith("{\n  \"") else "compact"


# ---------------------------------------------------------------------------
# one transcript
# ---------------------------------------------------------------------------

def check_response(exp, status, resp, raw, b):
    out = []
    if status != exp["status"]:
        out.append("status: expected %s, got %s" % (exp["status"], status))
        out.append("    body %s" % raw[:1500].decode("utf-8", "replace"))
        return out
    for name, want in (exp.get("headers") or {}).items():
        got = header_values(resp, name)
        want = want if isinstance(want, list) else [want]
        if len(want) != len(got):
            out.append("header %s: expected %s, got %s" % (name, show(want), show(got)))
            continue
        for w, g in zip(want, got):
            compare(w, g, b, False, "header " + name, out)
    if "body" in exp:
        try:
            act = json.loads(raw)
        except ValueError as e:
            out.append("body: not JSON (%s): %s" % (e, raw[:300].decode("utf-8", "replace")))
            return out
        compare(exp["body"], act, b, exp.get("mode", "exact") == "subset", "", out)
    if "yaml" in exp and yaml is not None:
        try:
            act = yaml.safe_load(raw)
        except yaml.YAMLError as e:
            out.append("body: not YAML (%s)" % e)
            return out
        compare(exp["yaml"], act, b, exp.get("mode", "exact") == "subset", "", out)
    if "text" in exp:
        compare(exp["text"], raw.decode("utf-8", "replace"), b, False, "body text", out)
    if "format" in exp and fmt_of(raw) != exp["format"]:
        out.append("body format: expected %s JSON, got %s" % (exp["format"], fmt_of(raw)))
    return out


def run_step(step, client, b, watches, opts):
    """Run one step; returns a list of difference lines."""
    if "sleep" in step:
        time.sleep(step["sleep"])
        return []
    if "collect" in step:
        w = watches.get(step["collect"])
        if w is None:
            return ["watch %s is not open" % step["collect"]]
        want = step["events"]
        settle = 0 if step.get("firstOnly") else step.get("settle", opts.settle)
        got, closed = w.collect(len(want), step.get("wait", 10), settle,
                                step.get("ignoreBookmarks", True), step.get("expectClose", False))
        out = []
        if len(want) != len(got):
            out.append("events: expected %d, got %d: %s" % (
                len(want), len(got), [e.get("type") for e in got]))
        for i, (e, a) in enumerate(zip(want, got)):
            compare(e, a, b, step.get("mode", "exact") == "subset", "events[%d]" % i, out)
        if step.get("expectClose") and not closed:
            out.append("the server did not end the watch within %s s" % step.get("wait", 10))
        if not step.get("keepOpen"):
            w.close()
        return out
    req = b.expand(step["request"])
    exp = step["response"]
    if "watch" in step:
        conn, resp = client.send(req)
        if resp.status != exp["status"] or exp["status"] != 200:
            raw = resp.read()
            conn.close()
            return check_response(exp, resp.status, resp, raw, b)
        out = check_response({k: v for k, v in exp.items() if k in ("status", "headers")}, 200, resp, b"", b)
        watches[step["watch"]] = Watch(conn, resp)
        return out
    deadline = time.time() + step.get("retrySeconds", 0)
    while True:
        save = dict(b.v)
        try:
            conn, resp = client.send(req)
            raw = resp.read()
            conn.close()
        except (OSError, http.client.HTTPException) as e:
            return ["request failed: %r" % e]
        out = check_response(exp, resp.status, resp, raw, b)
        if not out or time.time() >= deadline:
            return out
        b.v = save
        time.sleep(1)


def label(i, step):
    if "sleep" in step:
        return "step %d: sleep %s s" % (i, step["sleep"])
    if "collect" in step:
        return "step %d: events of watch %s" % (i, step["collect"])
    r = step["request"]
    q = r.get("query") or {}
    pairs = q.items() if isinstance(q, dict) else q
    qs = "&".join("%s=%s" % (k, v) for k, v in pairs)
    note = " (%s)" % step["note"] if step.get("note") else ""
    return "step %d: %s %s%s%s" % (i, r["method"], r["path"], "?" + qs if qs else "", note)


def run_transcript(t, client, opts):
    """Returns (failures, skipped reason); failures is a list of (label, lines)."""
    need = set(t.get("requires", []))
    for st in t["steps"]:
        a = (st.get("request") or {}).get("auth")
        if a and a not in ("none", "invalid", "admin"):
            need.add("token:" + a)
    for n in sorted(need):
        if n.startswith("token:"):
            if client.tokens.get(n[6:]) is None:
                return [], "no --%s-token given" % n[6:]
        elif n == "slow":
            if opts.skip_slow:
                return [], "slow"
        elif n == "status-controller":
            if not opts.status_controller:
                return [], "needs --status-controller"
        elif n not in opts.have:
            return [], "needs --have %s" % n
    b = Bindings(opts.users)
    watches, failures = {}, []
    leftovers(t, client)
    try:
        for i, step in enumerate(t["steps"], 1):
            try:
                out = run_step(step, client, b, watches, opts)
            except Mismatch as e:
                out = [str(e)]
            if opts.verbose:
                print("    %s%s" % (label(i, step), "" if not out else "  DIFFERS"))
            if out:
                failures.append((label(i, step), out))
                if opts.fail_fast:
                    break
    finally:
        for w in watches.values():
            w.close()
        if failures:
            cleanup(t, client, b)
    return failures, None


def cleanup(t, client, b):
    """After a failure: remove what the transcript may have left behind."""
    for c in t.get("cleanup", []):
        for patch in (True, False):
            try:
                if patch:
                    r = {"method": "PATCH", "path": c, "rawBody": '{"metadata":{"finalizers":null}}',
                         "headers": {"Content-Type": "application/merge-patch+json"}}
                else:
                    r = {"method": "DELETE", "path": c}
                conn, resp = client.send(b.expand(r))
                resp.read()
                conn.close()
            except Exception:
                pass


def leftovers(t, client):
    """Before a transcript: remove objects of the same names that an interrupted run left behind."""
    for c in t.get("cleanup", []):
        if TOKEN.search(c):
            continue
        conn, resp = client.send({"method": "GET", "path": c})
        resp.read()
        conn.close()
        if resp.status == 200:
            cleanup({"cleanup": [c]}, client, Bindings())


def transcripts_in(folder):
    """The transcripts of a folder, packed or not, in the order of their names."""
    names = sorted(n for n in os.listdir(folder) if n.endswith((".json", ".json.gz")))
    return [os.path.join(folder, n) for n in names]


def main(argv=None):
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(
        description=__doc__.strip().split("\n")[0],
        epilog="The last line printed is 'N passed, N failed' (', N skipped' when some were skipped). "
               "Exit status 1 when something differs.")
    p.add_argument("--server", required=True, help="base URL of the server, e.g. https://127.0.0.1:6443")
    p.add_argument("--token", default=os.environ.get("CONFORMANCE_TOKEN"),
                   help="bearer token of a user that may do everything (group system:masters)")
    p.add_argument("--nobody-token", help="token of an authenticated user without any rights on the group "
                   "(transcripts that need it are skipped when it is absent)")
    p.add_argument("--nobody-user", default="nobody", help="name of that user as it appears in messages (default nobody)")
    p.add_argument("--viewer-token", help="token of a user that may only get, list and watch the group's resources")
    p.add_argument("--viewer-user", default="viewer", help="name of that user (default viewer)")
    p.add_argument("--insecure", action="store_true", help="do not verify the server's certificate")
    p.add_argument("--cacert", help="file with the CA certificate(s) to verify the server with")
    p.add_argument("--only", action="append", default=[], metavar="GLOB",
                   help="run only transcripts whose name matches (may be repeated)")
    p.add_argument("--skip", action="append", default=[], metavar="GLOB", help="leave out transcripts whose name matches")
    p.add_argument("--dir", action="append", default=[], help="directory with transcripts, or one transcript (default: transcripts/ beside this script)")
    p.add_argument("--skip-slow", action="store_true", help="leave out transcripts that wait for background loops (over 10 s)")
    p.add_argument("--status-controller", action="store_true",
                   help="the server runs the controller that sets the Dangling condition: run ONLY the transcripts "
                        "made for that (without this flag they are skipped and all others run)")
    p.add_argument("--have", action="append", default=[], help="name of an optional server feature that transcripts may require")
    p.add_argument("--settle", type=float, default=0.4, help="seconds to wait for unexpected further watch events (default 0.4)")
    p.add_argument("--fail-fast", action="store_true", help="stop a transcript at its first differing step")
    p.add_argument("--max-lines", type=int, default=40, help="lines of difference printed per step (default 40)")
    p.add_argument("-v", "--verbose", action="store_true", help="print every step")
    p.add_argument("--list", action="store_true", help="list the selected transcripts and stop")
    opts = p.parse_args(argv)
    opts.users = {"nobody": opts.nobody_user, "viewer": opts.viewer_user}

    files = []
    for d in opts.dir or [os.path.join(here, "transcripts")]:
        files += transcripts_in(d) if os.path.isdir(d) else [d]
    ts = []
    for f in files:
        with (gzip.open if f.endswith(".gz") else open)(f, "rt", encoding="utf-8") as fh:
            t = json.load(fh)
        if opts.only and not any(fnmatch.fnmatch(t["name"], g) for g in opts.only):
            continue
        if any(fnmatch.fnmatch(t["name"], g) for g in opts.skip):
            continue
        if opts.status_controller != ("status-controller" in t.get("requires", [])):
            continue
        ts.append(t)
    if opts.list:
        for t in ts:
            print("%-60s %s" % (t["name"], t["description"]))
        return 0
    if not ts:
        print("no transcript selected", file=sys.stderr)
        return 2
    client = Client(opts.server, opts.insecure, opts.cacert,
                    {"admin": opts.token, "nobody": opts.nobody_token, "viewer": opts.viewer_token})
    try:
        c = client.connect(10)
        c.connect()
        c.close()
    except OSError as e:
        print("cannot reach %s: %s" % (opts.server, e), file=sys.stderr)
        return 2
    if yaml is None:
        print("note: PyYAML is not installed: of responses in YAML only status and headers are compared")
    passed = failed = skipped = 0
    for t in ts:
        try:
            failures, skip = run_transcript(t, client, opts)
        except (OSError, http.client.HTTPException) as e:
            failures, skip = [("connection", [repr(e)])], None
        if skip:
            skipped += 1
            print("SKIP %s (%s)" % (t["name"], skip))
        elif failures:
            failed += 1
            print("FAIL %s" % t["name"])
            for lab, lines in failures:
                print("  " + lab)
                for ln in lines[:opts.max_lines]:
                    print("    " + ln)
                if len(lines) > opts.max_lines:
                    print("    ... %d more lines" % (len(lines) - opts.max_lines))
        else:
            passed += 1
            print("ok   %s" % t["name"])
    print("%d passed, %d failed%s" % (passed, failed, ", %d skipped" % skipped if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
