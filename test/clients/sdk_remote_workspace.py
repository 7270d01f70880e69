"""What a user of the Python SDK does with an agent server, step by step.

sdk_remote_workspace.py URL KEY FOLDER MODEL: prints a line of JSON for each step: {"step", "verdict", "seen"}. FOLDER is
the working directory at the agent server, MODEL the address of an OpenAI-compatible model that does what messages say
(support/obedient-model.ts).
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
import uuid
from pathlib import Path

import httpx
from openhands.sdk import LLM, Agent, AgentContext, Conversation, RemoteConversation, Tool
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.sdk.event import ActionEvent, AgentErrorEvent, MessageEvent, ObservationEvent
from openhands.sdk.llm import ImageContent, Message, TextContent
from openhands.sdk.secret import StaticSecret
from openhands.sdk.security.confirmation_policy import AlwaysConfirm, ConfirmRisky, NeverConfirm
from openhands.sdk.security.llm_analyzer import LLMSecurityAnalyzer
from openhands.sdk.skills import KeywordTrigger, Skill
from openhands.sdk.workspace import AsyncRemoteWorkspace, RemoteWorkspace
from openhands.tools.file_editor import FileEditorTool
from openhands.tools.task_tracker import TaskTrackerTool
from openhands.tools.terminal import TerminalTool
from python_steps import expect, step, until

URL, KEY, FOLDER, MODEL = sys.argv[1:5]
scratch = Path(tempfile.mkdtemp())
context = {}


def workspace():
    return context["workspace"]


def talk():
    return context["conversation"]


def api(method, path, **rest):
    return httpx.request(method, f"{URL}{path}", headers={"X-Session-API-Key": KEY, **rest.pop("headers", {})}, **rest)


def agent(**members):
    llm = LLM(model="openai/gpt-4o", base_url=MODEL, api_key="model-key", usage_id="agent", num_retries=0)
    tools = [Tool(name=tool.name) for tool in (TerminalTool, FileEditorTool, TaskTrackerTool)]
    return Agent(llm=llm, tools=tools, **members)


def converse(**members):
    return Conversation(agent=members.pop("agent", None) or agent(), workspace=workspace(), visualizer=None, **members)


def ask(conversation, *lines):
    conversation.send_message("\n".join(lines))
    conversation.run(timeout=120)


def ask_until_it_waits(conversation, *lines):
    """The SDK listens for the end of a run once its request is answered; a run that waits by then it awaits in vain."""
    conversation.send_message("\n".join(lines))
    conversation.run(blocking=False)
    until(lambda: status(conversation) == "waiting_for_confirmation")


def use(tool, **arguments):
    return f"CALL {tool} {json.dumps(arguments)}"


def shell(command):
    return use("terminal", command=command)


def status(conversation):
    return api("GET", f"/api/conversations/{conversation.id}").json()["execution_status"]


def logged(conversation, kind=None):
    found, page = [], None
    while True:
        query = {"limit": 100, **({"page_id": page} if page else {})}
        body = api("GET", f"/api/conversations/{conversation.id}/events/search", params=query).json()
        found += body["items"]
        page = body["next_page_id"]
        if not page:
            return [event for event in found if kind is None or event["kind"] == kind]


def answers(conversation):
    texts = []
    for event in logged(conversation, "MessageEvent"):
        if event["source"] == "agent":
            texts.append(event["llm_message"]["content"][0]["text"])
    return texts


def begin_hanging(conversation):
    """A run in a thread that waits for the model."""
    conversation.send_message("HANG")
    thread = threading.Thread(target=lambda: run_quietly(conversation), daemon=True)
    thread.start()
    until(lambda: status(conversation) == "running")
    return thread


def run_quietly(conversation):
    try:
        conversation.run(timeout=120)
    except Exception as error:  # noqa: BLE001 looked at by the step
        context["run_error"] = error


# The workspace


@step("a workspace is made")
def _():
    context["workspace"] = RemoteWorkspace(host=URL, api_key=KEY, working_dir=FOLDER)
    return workspace().host


@step("it is alive")
def _():
    return expect(workspace().alive, "alive")


@step("the server says its version")
def _():
    info = workspace().get_server_info()
    return expect(info["version"] and info["title"] and "uptime" in info, info["version"])


@step("a command succeeds")
def _():
    result = workspace().execute_command("echo out; echo err >&2")
    return expect((result.exit_code, result.stdout, result.stderr) == (0, "out\n", "err\n"), result)


@step("a command fails with its exit code")
def _():
    return expect(workspace().execute_command("exit 7").exit_code == 7, 7)


@step("a command has the folder that it was given")
def _():
    workspace().execute_command(f"mkdir -p {FOLDER}/sub")
    return expect(workspace().execute_command("pwd", cwd=f"{FOLDER}/sub").stdout.strip().endswith("/sub"))


@step("a command ends with its timeout")
def _():
    result = workspace().execute_command("sleep 60", timeout=1.0)
    return expect(result.exit_code != 0 and result.exit_code is not None, result)


@step("a long output comes whole")
def _():
    result = workspace().execute_command("seq 1 40000")
    return expect(result.stdout.split() == [str(n) for n in range(1, 40001)], len(result.stdout))


@step("commands run at the same time")
def _():
    with_result = []
    threads = [
        threading.Thread(target=lambda n=n: with_result.append(workspace().execute_command(f"echo {n}").stdout.strip()))
        for n in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return expect(sorted(with_result) == ["0", "1", "2", "3", "4"], with_result)


@step("a background command is started")
def _():
    context["background"] = workspace().start_command("echo begun; exec sleep 300", cwd=FOLDER, timeout=600)
    return context["background"]


@step("it says what it wrote while it runs")
def _():
    until(lambda: "begun" in str((workspace().get_command_output(context["background"]) or {}).get("stdout")))
    return context["background"]


@step("a background command is stopped")
def _():
    workspace().stop_command(context["background"])
    until(lambda: (workspace().get_command_output(context["background"]) or {}).get("exit_code") is not None)
    return workspace().get_command_output(context["background"])["exit_code"]


@step("a file is uploaded, and downloaded unchanged")
def _():
    content = bytes(range(256)) * 1000
    (scratch / "up.bin").write_bytes(content)
    expect(workspace().file_upload(scratch / "up.bin", f"{FOLDER}/dir/up.bin").success, "upload")
    result = workspace().file_download(f"{FOLDER}/dir/up.bin", scratch / "down.bin")
    return expect(result.success and (scratch / "down.bin").read_bytes() == content, result.file_size)


@step("an upload replaces a file")
def _():
    (scratch / "up.bin").write_text("second")
    workspace().file_upload(scratch / "up.bin", f"{FOLDER}/dir/up.bin")
    return expect(workspace().execute_command(f"cat {FOLDER}/dir/up.bin").stdout == "second", "second")


@step("an empty file is uploaded and downloaded")
def _():
    (scratch / "empty").write_bytes(b"")
    workspace().file_upload(scratch / "empty", f"{FOLDER}/empty")
    result = workspace().file_download(f"{FOLDER}/empty", scratch / "empty-down")
    return expect(result.success and result.file_size == 0, result)


@step("a missing file is not downloaded")
def _():
    return expect(not workspace().file_download(f"{FOLDER}/nothing", scratch / "nothing").success)


@step("the asynchronous workspace does the same")
def _():
    async def act():
        other = AsyncRemoteWorkspace(host=URL, api_key=KEY, working_dir=FOLDER)
        result = await other.execute_command("echo async")
        upload = await other.file_upload(scratch / "up.bin", f"{FOLDER}/async.bin")
        return expect(result.stdout == "async\n" and upload.success, result)

    return asyncio.run(act())


# git


def git(command, repo="repo"):
    result = workspace().execute_command(f"cd {FOLDER}/{repo} && {command}")
    return expect(result.exit_code == 0, result)


def changes(repo="repo"):
    return {str(change.path): change.status.value for change in workspace().git_changes(f"{FOLDER}/{repo}")}


@step("a folder that is no repository has no changes")
def _():
    workspace().execute_command(f"mkdir -p {FOLDER}/plain")
    return expect(changes("plain") == {}, {})


@step("in a new repository every file is added")
def _():
    workspace().execute_command(f"mkdir -p {FOLDER}/repo")
    git("git init -q -b main && git config user.name A && git config user.email a@example.com")
    git("printf 'one\\n' > kept.txt; printf 'x\\n' > gone.txt; printf '1\\n2\\n' > renamed.txt")
    return expect(changes() == {"kept.txt": "ADDED", "gone.txt": "ADDED", "renamed.txt": "ADDED"}, changes())


@step("the difference of a file in a new repository begins with nothing")
def _():
    diff = workspace().git_diff(f"{FOLDER}/repo/kept.txt")
    return expect((diff.original.rstrip("\n"), diff.modified.rstrip("\n")) == ("", "one"), diff)


@step("a repository without a remote has no changes after a commit")
def _():
    git("git add . && git commit -qm first")
    return expect(changes() == {}, changes())


@step("a committed file that was changed is updated, others are added, deleted and renamed")
def _():
    git("printf 'two\\n' > kept.txt; rm gone.txt; printf 'n\\n' > 'a b.txt'; git mv renamed.txt moved.txt")
    wanted = {
        "kept.txt": "UPDATED",
        "gone.txt": "DELETED",
        "a b.txt": "ADDED",
        "renamed.txt": "DELETED",
        "moved.txt": "ADDED",
    }
    return expect(changes() == wanted, changes())


@step("the difference begins with the text of the last commit")
def _():
    diff = workspace().git_diff(f"{FOLDER}/repo/kept.txt")
    return expect((diff.original.rstrip("\n"), diff.modified.rstrip("\n")) == ("one", "two"), diff)


@step("the difference of a deleted file ends with nothing")
def _():
    diff = workspace().git_diff(f"{FOLDER}/repo/gone.txt")
    return expect((diff.original.rstrip("\n"), diff.modified.rstrip("\n")) == ("x", ""), diff)


@step("the difference of an untracked file begins with nothing")
def _():
    diff = workspace().git_diff(f"{FOLDER}/repo/a b.txt")
    return expect((diff.original.rstrip("\n"), diff.modified.rstrip("\n")) == ("", "n"), diff)


@step("an ignored file is no change")
def _():
    git("echo ignored.txt > .gitignore; echo i > ignored.txt")
    return expect("ignored.txt" not in changes() and changes()[".gitignore"] == "ADDED", changes())


@step("with a remote, the changes of a branch are those since it left")
def _():
    workspace().execute_command(f"cd {FOLDER} && git clone -q --bare repo origin.git && git clone -q origin.git cloned")
    git("git config user.name A && git config user.email a@example.com && git switch -qc topic", "cloned")
    git("echo mine > mine.txt && git add . && git commit -qm third && echo more > more.txt", "cloned")
    return expect(changes("cloned") == {"mine.txt": "ADDED", "more.txt": "ADDED"}, changes("cloned"))


# Skills, settings and secrets


@step("the skills of a repository are found")
def _():
    git("mkdir -p .openhands/skills .agents/skills/release; echo 'Use tabs.' > AGENTS.md")
    git("printf -- '---\\ntriggers:\\n- flaky\\n---\\nRun it three times.' > .openhands/skills/flaky.md")
    git("printf -- '---\\nname: release\\ndescription: How to release\\n---\\nTag.' > .agents/skills/release/SKILL.md")
    body = {"load_public": False, "load_user": False, "load_org": False, "project_dir": f"{FOLDER}/repo"}
    found = {skill["name"]: skill for skill in api("POST", "/api/skills", json=body).json()["skills"]}
    expect(set(found) == {"agents", "flaky", "release"}, set(found))
    return expect((found["flaky"]["type"], found["release"]["type"]) == ("knowledge", "agentskills"), set(found))


@step("the workspace loads them")
def _():
    skills, _ = workspace().load_skills_from_agent_server(
        project_dirs=[f"{FOLDER}/repo"], load_public=False, load_user=False, load_org=False
    )
    return expect({skill.name for skill in skills} >= {"agents", "flaky", "release"}, [skill.name for skill in skills])


@step("a fresh server leaves the model and the tool servers to the SDK")
def _():
    llm = workspace().get_llm()
    return expect(llm.model and workspace().get_mcp_config() == {}, llm.model)


@step("settings are changed and read")
def _():
    llm = {"model": "openai/of-settings", "api_key": "key-of-settings", "base_url": MODEL}
    answer = api("PATCH", "/api/settings", json={"agent_settings_diff": {"llm": llm}})
    expect(answer.status_code == 200 and "key-of-settings" not in answer.text, answer.text[:200])
    body = api("GET", "/api/settings").json()
    return expect(body["llm_api_key_is_set"] and body["agent_settings"]["llm"]["model"] == llm["model"], body["llm_api_key_is_set"])


@step("the workspace makes the model of the settings")
def _():
    llm = workspace().get_llm()
    key = llm.api_key.get_secret_value()
    return expect((llm.model, key) == ("openai/of-settings", "key-of-settings"), llm.model)


@step("the workspace knows the tool servers of the settings")
def _():
    return expect(workspace().get_mcp_config() == {}, {})


@step("a secret is stored, listed without its value, and looked up")
def _():
    body = {"name": "STORED", "value": "value-of-stored", "description": "for a test"}
    answer = api("PUT", "/api/settings/secrets", json=body)
    expect(answer.json() == {"name": "STORED", "description": "for a test"}, answer.text)
    context["secrets"] = workspace().get_secrets()
    expect(context["secrets"]["STORED"].get_value() == "value-of-stored")
    return list(context["secrets"])


# A conversation


@step("a conversation is started")
def _():
    context["seen"] = []
    context["conversation"] = converse(
        callbacks=[lambda event: context["seen"].append(event)], tags={"purpose": "steps"}
    )
    return talk().id


@step("it is idle, with the workspace and the tags that it was given")
def _():
    info = api("GET", f"/api/conversations/{talk().id}").json()
    expect(info["workspace"]["working_dir"] == FOLDER, info["workspace"])
    return expect(info["execution_status"] == "idle" and info["tags"] == {"purpose": "steps"}, info["tags"])


@step("a message is answered")
def _():
    ask(talk(), "SAY Hello.")
    return expect(answers(talk()) == ["Hello."] and status(talk()) == "finished", answers(talk()))


@step("its events came over the socket")
def _():
    until(lambda: any(isinstance(event, MessageEvent) and event.source == "agent" for event in context["seen"]))
    return len(context["seen"])


@step("the agent runs a command")
def _():
    ask(talk(), shell("echo 42 > answer.txt; cat answer.txt"), "SAY It is done.")
    observations = [event for event in talk().state.events if isinstance(event, ObservationEvent)]
    expect("42" in observations[-1].observation.text, observations[-1])
    return expect(workspace().execute_command(f"cat {FOLDER}/answer.txt").stdout == "42\n", answers(talk())[-1])


@step("the agent edits a file")
def _():
    arguments = {"command": "create", "path": f"{FOLDER}/made.txt", "file_text": "made\n"}
    ask(talk(), use("file_editor", **arguments), "SAY It is made.")
    return expect(workspace().execute_command(f"cat {FOLDER}/made.txt").stdout == "made\n")


@step("the agent keeps a list of tasks")
def _():
    tasks = [{"title": "first", "notes": "", "status": "todo"}]
    ask(talk(), use("task_tracker", command="plan", task_list=tasks), "SAY Planned.")
    action = [event for event in talk().state.events if isinstance(event, ActionEvent)][-1]
    return expect(action.tool_name == "task_tracker" and action.action is not None, action.tool_name)


@step("the agent thinks, and finishes")
def _():
    ask(talk(), use("think", thought="hm"), use("finish", message="All done."))
    action = [event for event in talk().state.events if isinstance(event, ActionEvent)][-1]
    return expect(action.tool_name == "finish" and status(talk()) == "finished", action.tool_name)


@step("a call with wrong arguments is an error for the agent, not for the conversation")
def _():
    ask(talk(), use("file_editor", command="nothing"), "SAY I see.")
    expect([event for event in talk().state.events if isinstance(event, AgentErrorEvent)], "no error")
    return expect(answers(talk())[-1] == "I see.", answers(talk())[-1])


@step("a message with an image is accepted")
def _():
    image = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    content = [TextContent(text="SAY A picture."), ImageContent(image_urls=[image])]
    talk().send_message(Message(role="user", content=content))
    talk().run(timeout=120)
    return expect(answers(talk())[-1] == "A picture.", answers(talk())[-1])


@step("a second run without a message does nothing")
def _():
    count = len(logged(talk(), "MessageEvent"))
    run_quietly(talk())
    return expect(len(logged(talk(), "MessageEvent")) == count, count)


@step("the statistics count tokens")
def _():
    talk().state.refresh_from_server()
    usage = talk().conversation_stats.get_combined_metrics().accumulated_token_usage
    return expect(usage is not None and usage.prompt_tokens > 0, usage.prompt_tokens)


@step("secrets reach the tools, and are masked")
def _():
    talk().update_secrets({"TOKEN": "value-of-a-token", "DESCRIBED": StaticSecret(value="value-two")})
    ask(talk(), shell("printf %s \"$TOKEN\" | wc -c; echo $TOKEN"), "SAY Counted.")
    seen = json.dumps(logged(talk(), "ObservationEvent")[-1])
    return expect("16" in seen and "value-of-a-token" not in seen, "16 characters")


@step("secrets of the settings reach the tools")
def _():
    talk().update_secrets(context["secrets"])
    ask(talk(), shell("printf %s \"$STORED\" | wc -c"), "SAY Counted.")
    return expect("15" in json.dumps(logged(talk(), "ObservationEvent")[-1]), "15 characters")


@step("the agent is asked beside the conversation")
def _():
    count = len(logged(talk(), "MessageEvent"))
    answer = talk().ask_agent("SAY Aside.")
    return expect(answer and len(logged(talk(), "MessageEvent")) == count, answer)


@step("the conversation gets a title")
def _():
    title = talk().generate_title()
    return expect(isinstance(title, str) and title, title)


# Confirmation


@step("an action waits for confirmation")
def _():
    talk().set_confirmation_policy(AlwaysConfirm())
    ask_until_it_waits(talk(), shell("echo confirmed > confirmed.txt"), "SAY It was confirmed.")
    return status(talk())


@step("a second run confirms it")
def _():
    talk().run(timeout=120)
    expect(answers(talk())[-1] == "It was confirmed.", answers(talk())[-1])
    return expect(workspace().execute_command(f"cat {FOLDER}/confirmed.txt").stdout == "confirmed\n")


@step("a rejected action does not run, and leaves the conversation idle")
def _():
    ask_until_it_waits(talk(), shell("echo rejected > rejected.txt"), "SAY I will not.")
    talk().reject_pending_actions("Not that.")
    until(lambda: status(talk()) == "idle")
    rejected = logged(talk(), "UserRejectObservation")[-1]
    return expect(rejected["rejection_reason"] == "Not that.", rejected["rejection_reason"])


@step("the agent goes on after a rejection")
def _():
    talk().run(timeout=120)
    expect(workspace().execute_command(f"test -e {FOLDER}/rejected.txt").exit_code == 1)
    return expect(answers(talk())[-1] == "I will not.", answers(talk())[-1])


@step("risky actions only are confirmed, as the analyzer says")
def _():
    talk().set_security_analyzer(LLMSecurityAnalyzer())
    talk().set_confirmation_policy(ConfirmRisky())
    ask(talk(), shell("echo low"), "SAY It was no risk.")
    return expect(answers(talk())[-1] == "It was no risk.", status(talk()))


@step("no action is confirmed any more")
def _():
    talk().set_confirmation_policy(NeverConfirm())
    talk().set_security_analyzer(None)
    ask(talk(), shell("echo free"), "SAY Free.")
    return expect(answers(talk())[-1] == "Free.", status(talk()))


# Stopping


@step("an interrupt ends a run that waits for the model")
def _():
    context["hanging"] = converse()
    thread = begin_hanging(context["hanging"])
    context["hanging"].interrupt()
    until(lambda: status(context["hanging"]) == "paused")
    thread.join(90)
    return expect(not thread.is_alive(), "paused")


@step("the conversation goes on after it")
def _():
    ask(context["hanging"], "SAY Back again.")
    return expect(answers(context["hanging"])[-1] == "Back again.", answers(context["hanging"]))


@step("a pause while a tool runs ends the run")
def _():
    context["hanging"].send_message("\n".join([shell("sleep 20; echo awake"), "SAY Too late."]))
    thread = threading.Thread(target=lambda: run_quietly(context["hanging"]), daemon=True)
    thread.start()
    until(lambda: any(event["tool_name"] == "terminal" for event in logged(context["hanging"], "ActionEvent")))
    context["hanging"].pause()
    until(lambda: status(context["hanging"]) == "paused")
    thread.join(90)
    expect(logged(context["hanging"], "PauseEvent"), "no PauseEvent")
    return expect("Too late." not in answers(context["hanging"]), "paused")


@step("no tool call is left open")
def _():
    run_quietly(context["hanging"])
    until(lambda: status(context["hanging"]) in ("finished", "idle"))
    calls = {event["tool_call_id"] for event in logged(context["hanging"], "ActionEvent")}
    results = {event["tool_call_id"] for event in logged(context["hanging"]) if event["kind"] in ("ObservationEvent", "AgentErrorEvent")}
    return expect(calls <= results, len(calls))


@step("an idle conversation is paused")
def _():
    other = converse()
    other.pause()
    return expect(status(other) == "paused", status(other))


# Copies


@step("a conversation is forked whole")
def _():
    fork = talk().fork(title="A fork")
    context["fork"] = fork
    kept = [event["id"] for event in logged(talk(), "MessageEvent")]
    expect([event["id"] for event in logged(fork, "MessageEvent")] == kept, len(kept))
    info = api("GET", f"/api/conversations/{fork.id}").json()
    return expect((info["title"], info["execution_status"]) == ("A fork", "idle"), info["title"])


@step("the fork goes on by itself")
def _():
    count = len(logged(talk(), "MessageEvent"))
    ask(context["fork"], "SAY From the fork.")
    expect(len(logged(talk(), "MessageEvent")) == count, "the source changed")
    return expect(answers(context["fork"])[-1] == "From the fork.", answers(context["fork"])[-1])


@step("a conversation is forked up to an event")
def _():
    first = next(event for event in logged(talk(), "MessageEvent") if event["source"] == "agent")
    fork = talk().fork(from_event_id=first["id"], conversation_id=uuid.uuid4())
    context["short"] = fork
    ask(fork, "SAY Another way.")
    return expect(answers(fork) == ["Hello.", "Another way."], answers(fork))


@step("a conversation goes back to an event, and on from there")
def _():
    fork = context["short"]
    first = next(event for event in logged(fork, "MessageEvent") if event["source"] == "agent")
    fork.navigate_to(first["id"])
    ask(fork, "SAY A third way.")
    return expect(answers(fork)[-1] == "A third way.", answers(fork))


@step("a conversation goes back to its beginning; an unknown event is refused")
def _():
    context["short"].navigate_to(None)
    path = f"/api/conversations/{context['short'].id}/navigate"
    code = api("POST", path, json={"event_id": str(uuid.uuid4())}).status_code
    ask(context["short"], "SAY From the beginning.")
    return expect(code == 404 and answers(context["short"])[-1] == "From the beginning.", code)


# The rest


@step("the history is condensed")
def _():
    llm = agent().llm.model_copy(update={"usage_id": "condenser"})
    other = converse(agent=agent(condenser=LLMSummarizingCondenser(llm=llm, max_size=100, keep_first=2)))
    for index in range(6):
        ask(other, f"SAY Number {index}.")
    other.condense()
    until(lambda: logged(other, "Condensation"))
    return len(logged(other, "Condensation")[0]["forgotten_event_ids"])


@step("a skill of the client is given when a message has its word")
def _():
    skill = Skill(name="weather", content="It always rains.", trigger=KeywordTrigger(keywords=["weather"]))
    other = converse(agent=agent(agent_context=AgentContext(skills=[skill])))
    ask(other, "SAY Rain.", "What about the weather?")
    message = logged(other, "MessageEvent")[0]
    expect("It always rains." in json.dumps(message["extended_content"]), message["extended_content"])
    return expect(message["activated_skills"] == ["weather"], message["activated_skills"])


@step("a client attaches to a conversation")
def _():
    attached = RemoteConversation.attach(workspace(), talk().id, visualizer=None)
    messages = [event for event in attached.state.events if isinstance(event, MessageEvent)]
    expect(len(messages) == len(logged(talk(), "MessageEvent")), len(messages))
    ask(attached, "SAY Attached.")
    return expect(answers(talk())[-1] == "Attached.", answers(talk())[-1])


@step("a conversation is started with an id")
def _():
    wanted = uuid.uuid4()
    other = converse(conversation_id=wanted)
    return expect(other.id == wanted, wanted)


@step("conversations are closed")
def _():
    for name in ("conversation", "hanging", "fork", "short"):
        context[name].close()
    return "closed"


# Threads that wait for a server must not keep the program.
os._exit(0)
