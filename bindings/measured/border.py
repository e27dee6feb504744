"""How long a folder takes for a request in Python: border.py BODY.json CALLS. Least and median, in microseconds."""

import json
import sys
import time

import contexture

body = open(sys.argv[1], "rb").read()
calls = int(sys.argv[2])


def timed(name, use):
    times = []
    for _ in range(calls):
        began = time.perf_counter()
        use()
        times.append(int((time.perf_counter() - began) * 1e6))
    times.sort()
    print("python", name, times[0], times[len(times) // 2])


folder = contexture.Folder(budget=64_000)
timed("bytes", lambda: folder.request(body))
given = json.loads(body)
other = contexture.Folder(budget=64_000)
timed("dicts", lambda: other.request(given).json())
# What is not Rust: everything around the library's own function.
changed, report = folder._native.request(body)
timed("around", lambda: contexture._folder.Folded(body, body, changed, json.loads(report)))
