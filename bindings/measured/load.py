"""Memory under load in Python: load.py CALLS. Kilobytes resident and traced, after each fifth."""

import gc
import resource
import sys
import threading
import tracemalloc
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python/tests"))
import contexture
import work

calls, threads = int(sys.argv[1]), 4
bodies = [{"model": "gpt-5", "messages": work.chat(turns)} for turns in range(1, 5)]


def use(count):
    for number in range(count // threads // len(bodies)):
        with contexture.Folder(budget=8_000) as folder:
            for body in bodies:
                folded = folder.request(body)
                folder.usage({"prompt_tokens": folded.sent_tokens, "completion_tokens": 5}, of=folded)


tracemalloc.start()
for fifth in range(1, 6):
    using = [threading.Thread(target=use, args=(calls // 5,)) for _ in range(threads)]
    [one.start() for one in using]
    [one.join() for one in using]
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    print("python", fifth * calls // 5, resident // 1024, tracemalloc.get_traced_memory()[0] // 1024)
