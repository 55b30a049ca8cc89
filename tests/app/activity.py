"""What all views of `leftfold query` have to say, read from the logs as a stranger would."""

import json
import posixpath
from datetime import datetime

from infrastructure.model.prices import cost

TOKENS = (
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
)  # fmt: skip
NOBODY = "This tool needs the user's approval, and nobody is there to give it"


def naive(store):
    """The rows of each view, as tuples, in the order of the logs' names."""
    views = {name: [] for name in ("conversations", "prompts", "turns", "requests", "tool_calls")}
    for log in sorted(store.glob("*.jsonl")):
        lines = [json.loads(line) for line in log.read_bytes().splitlines()]
        one = _of_log(log.stem, [line for line in lines if "topic" in line])
        for name, rows in one.items():
            views[name] += rows
    views["files"] = [
        (call[0], call[1], call[2], call[4], call[7])
        for call in views["tool_calls"]
        if call[4] in ("write", "edit", "Write") and call[7] is not None and call[12] == "done"
    ]
    return views


def _of_log(id_, events):
    if not events:
        return {}
    tables = {name: [] for name in ("prompts", "turns", "requests", "tool_calls")}
    head = dict.fromkeys(("cwd", "name", "title", "model", "source_id", "source_version"))
    head["archived"] = 0
    for event in events:
        state, topic = event["state"], event["topic"]
        _head(topic, state, head)
        at = (id_, event["v"], _time(state))
        if topic == "MessageAppended":
            _say(at, state, head, tables)
        elif topic in ("ApprovalDecided", "ToolStarted"):
            if call := _newest(tables["tool_calls"], state["tool_use_id"]):
                call[topic] = state
        else:
            _rest(topic, at, state, tables)
    last = events[-1]
    title = head["name"] or head["title"] or ""
    first = (id_, last["v"], _time(events[0]["state"]), _time(last["state"]), head["cwd"], title)
    rest = [head[key] for key in ("name", "model", "archived", "source_id", "source_version")]
    own = head["source_version"] or 0
    tables["tool_calls"] = map(_call, tables["tool_calls"])
    kept = {name: [row for row in rows if row[1] > own] for name, rows in tables.items()}
    return {"conversations": [(*first, *rest)], **kept}


def _head(topic, state, head):
    match topic:
        case "Started":
            head["cwd"] = state["cwd"]
        case "Renamed":
            head["name"] = state["name"]
        case "ModelChanged":
            head["model"] = state["model"]
        case "Archived":
            head["archived"] = int(state["archived"])
        case "Forked":
            head["source_id"] = state["source_id"]
            head["source_version"] = state["source_version"]


def _rest(topic, at, state, tables):
    match topic:
        case "TurnEnded":
            if state.get("lost"):
                row = (*at, "lost", None, None, None, *_spent(None, state["lost"]))
                tables["requests"].append(row)
            error = state.get("error") or {}
            row = (*at, state["outcome"], error.get("type"), error.get("message"))
            tables["turns"].append(row)
        case "Compacted" | "BranchSummarized":
            kind = {"Compacted": "compaction"}.get(topic, "branch_summary")
            spent = _spent(state.get("model"), state.get("usage"))
            tables["requests"].append((*at, kind, state.get("model"), None, None, *spent))


def _say(at, state, head, tables):
    calls = tables["tool_calls"]
    role, blocks = state["message"]["role"], state["message"]["content"]
    said = [block["text"] for block in blocks if block["type"] == "text"]
    if role == "assistant":
        spent = _spent(state.get("model"), state.get("usage"))
        more = (state.get("model"), state.get("stop_reason"), state.get("duration"))
        tables["requests"].append((*at, "answer", *more, *spent))
    elif said and said[0].strip():
        tables["prompts"].append((*at, said[0]))
        head["title"] = head["title"] or " ".join(said[0].split())[:80]
    for block in blocks:
        if block["type"] == "tool_use":
            calls.append(
                {"at": at, "block": block, "model": state.get("model"), "cwd": head["cwd"]}
            )
        if block["type"] == "tool_result":
            call = _newest(calls, block["tool_use_id"])
            if call is not None:
                call.setdefault("result", (block, state))


def _newest(calls, tool_use_id):
    return next((call for call in reversed(calls) if call["block"]["id"] == tool_use_id), None)


def _call(call):
    block, decided = call["block"], call.get("ApprovalDecided", {})
    arguments = block["input"]
    path = arguments.get("path", arguments.get("file_path"))
    result, ended = call.get("result", (None, None))
    started = call.get("ToolStarted")
    decision, reason = decided.get("decision"), decided.get("reason", "") if decided else None
    outcome = (
        "refused" if decision == "no" else "open" if result is None
        else "failed" if result.get("is_error") else "done"
    )  # fmt: skip
    seconds = None
    if started and ended:
        seconds = round(_seconds(ended) - _seconds(started), 6)
    return (
        *call["at"], block["id"], block["name"], call["model"], arguments.get("command"),
        _absolute(path, call["cwd"]),
        json.dumps(arguments, ensure_ascii=False, separators=(",", ":")), decision,
        None if not decided else "nobody" if reason.startswith(NOBODY) else "user",
        reason, outcome, seconds, result and result["content"],
    )  # fmt: skip


def _absolute(path, cwd):
    if not isinstance(path, str):
        return None
    return posixpath.normpath(posixpath.join(cwd or "", path))


def _spent(model, usage):
    if not usage:
        return (None,) * 5
    price = cost(model, usage)
    return (*(usage.get(kind, 0) for kind in TOKENS), None if price is None else float(price))


def _seconds(state):
    return datetime.fromisoformat(state["timestamp"]).timestamp()


def _time(state):
    time = datetime.fromisoformat(state["timestamp"])
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")
