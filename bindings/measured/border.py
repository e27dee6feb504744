"""How long a folder takes for a request in Python: border.py BODY.json CALLS. Least and median, in microseconds."""

import json
import sys
import time

import contexture

body = open(sys.argv[1], "rb").read()
calls = int(sys.argv[2])


def timed(name, use, count=calls):
    times = []
    for _ in range(count):
        began = time.perf_counter()
        use()
        times.append((time.perf_counter() - began) * 1e6)
    times.sort()
    print(f"python {name} {times[0]:.1f} {times[count // 2]:.1f}")


def entered():
    try:
        folder._native.request(body)
    except contexture.ClosedError:
        pass


folder, other = contexture.Folder(budget=64_000), contexture.Folder(budget=64_000)
given = json.loads(body)
timed("bytes", lambda: folder.request(body))
timed("dicts", lambda: other.request(given).json())
# The parts of it that are no work of the folder.
changed, report = folder._native.request(body)
folder.close()
view = memoryview(changed)
timed("entered and left", entered, 300)
timed("result copied", lambda: bytes(view), 300)
timed("report read", lambda: contexture._folder.Folded(body, body, changed, json.loads(report)), 300)
timed("dict written", lambda: contexture._folder._plain(given), 300)
timed("dict read", lambda: json.loads(changed), 300)
