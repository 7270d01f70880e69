"""Steps of programs in Python: each prints a line of JSON, {"step", "verdict", "seen"}, for support/python-steps.ts."""

import json
import logging
import os
import sys
import time

SEEN_LENGTH = 300

logging.disable(logging.CRITICAL)
# Libraries show themselves on standard output.
report = os.fdopen(os.dup(1), "w")
sys.stdout = open(os.devnull, "w")  # noqa: SIM115 for the rest of the program


def step(name):
    def run(act):
        try:
            seen, verdict = act(), "passed"
        except Exception as error:  # noqa: BLE001 each step has its verdict
            seen, verdict = f"{type(error).__name__}: {str(error)[:SEEN_LENGTH]}", "FAILED"
        print(json.dumps({"step": name, "verdict": verdict, "seen": str(seen)}), file=report, flush=True)
        return act

    return run


def expect(condition, seen=""):
    if not condition:
        raise AssertionError(seen)
    return seen


def until(condition, seconds=90):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("waited in vain")
        time.sleep(0.02)
