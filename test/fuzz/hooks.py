"""What Schemathesis asks of us while it runs: it counts answers, keeps failures, and drops those that are wanted.

FUZZ_PLAN names a JSON file: {"report", "wanted", "kept", "bodies"}. The report is written at the end.
"""

import atexit
import json
import os
import re
import threading
from collections import Counter

import schemathesis

PLAN = json.load(open(os.environ["FUZZ_PLAN"], encoding="utf-8"))
# Nobody has it: it stands for what a case must not touch.
NOBODYS_ID = "00000000-0000-4000-8000-000000000000"
TEXT_LENGTH = 1200

lock = threading.Lock()
answers = Counter()
wanted = Counter()
failures = {}


@schemathesis.hook
def before_call(context, case, kwargs):
    """A run that revokes its own key or removes its own user would show nothing any more."""
    for name, value in list((case.path_parameters or {}).items()):
        if str(value).lower().replace("-", "") in PLAN["kept"]:
            case.path_parameters[name] = NOBODYS_ID
    replaced = PLAN["bodies"].get(case.operation.label)
    if replaced is not None and isinstance(case.body, dict):
        case.body.update({name: value for name, value in replaced.items() if name in case.body})


@schemathesis.hook
def after_call(context, case, response):
    with lock:
        answers[(case.operation.label, response.status_code)] += 1


@schemathesis.hook
def filter_failure(context, failure, case, response):
    check = type(failure).__name__
    found = next((at for at, one in enumerate(PLAN["wanted"]) if applies(one, failure, case, response)), None)
    with lock:
        if found is not None:
            wanted[found] += 1
            return False
        key = (case.operation.label, check, response.status_code)
        if key not in failures:
            failures[key] = {
                "operation": case.operation.label,
                "check": check,
                "status": response.status_code,
                "message": str(failure)[:TEXT_LENGTH],
                "request": request_of(case),
                "answer": response.content[:TEXT_LENGTH].decode("utf-8", "replace"),
                "count": 0,
            }
        failures[key]["count"] += 1
    return True


def applies(one, failure, case, response):
    check = type(failure).__name__
    if check not in one["checks"] or not re.fullmatch(one["operations"], case.operation.label):
        return False
    if one["statuses"] and response.status_code not in one["statuses"]:
        return False
    if re.search(one["message"], str(failure)) is None or one["flags"] and not is_flag(failure, case.body):
        return False
    return re.search(one["answer"], response.content.decode("utf-8", "replace")) is not None


def is_flag(failure, body):
    """Whether the member of the wrong type has another way to write true or false."""
    named = re.search(r"(\w+): Incorrect type", str(failure))
    return named is not None and any(
        value in ("true", "false") or (type(value) is int and value in (0, 1))
        for value in members_named(named[1], body)
    )


def members_named(name, value):
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        value = list(value.values())
    if isinstance(value, list):
        for element in value:
            yield from members_named(name, element)


def request_of(case):
    try:
        return case.as_curl_command()[:TEXT_LENGTH]
    except Exception as error:  # A case that no command line can hold is still a failure.
        return f"{case.operation.label} with a request that cannot be shown: {error}"


@atexit.register
def write_report():
    with open(PLAN["report"], "w", encoding="utf-8") as file:
        json.dump(
            {
                "answers": [
                    {"operation": operation, "status": status, "count": count}
                    for (operation, status), count in answers.items()
                ],
                "failures": list(failures.values()),
                "wanted": [wanted[at] for at in range(len(PLAN["wanted"]))],
            },
            file,
        )
