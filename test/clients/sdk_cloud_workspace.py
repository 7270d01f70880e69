"""What a user of the Python SDK does with a cloud workspace, step by step.

sdk_cloud_workspace.py URL KEY: prints a line of JSON for each step: {"step", "verdict", "seen"}.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
from openhands.sdk import Agent, Conversation, Tool
from openhands.sdk.conversation.state import ConversationExecutionStatus
from openhands.sdk.security.confirmation_policy import AlwaysConfirm, NeverConfirm
from openhands.tools.file_editor import FileEditorTool
from openhands.tools.terminal import TerminalTool
from openhands.workspace import OpenHandsCloudWorkspace
from python_steps import SEEN_LENGTH, expect, step, until

URL, KEY = sys.argv[1:3]
DONE = "The lookup now tries twice, and the check passes."
HANG = "take your time"
ATTACH = """
import os, sys, uuid
from openhands.sdk import RemoteConversation
from openhands.sdk.event import ActionEvent
from openhands.sdk.workspace import RemoteWorkspace
host, key, conversation = sys.argv[1:]
workspace = RemoteWorkspace(host=host, api_key=key, working_dir="/workspace/project")
events = RemoteConversation.attach(workspace, uuid.UUID(conversation), visualizer=None).state.events
print(sum(isinstance(event, ActionEvent) for event in events), "actions", flush=True)
os._exit(0)
"""
context = {}


def workspace():
    return context["workspace"]


def conversation():
    return context["conversation"]


@step("a workspace is made")
def _():
    context["workspace"] = OpenHandsCloudWorkspace(cloud_api_url=URL, cloud_api_key=KEY, init_timeout=180)
    return workspace().host


@step("its working directory is /workspace/project, and is there")
def _():
    result = workspace().execute_command("pwd")
    return expect(result.stdout.strip() == "/workspace/project", result.stdout + result.stderr)


@step("the agent server is alive and says its version")
def _():
    return expect(workspace().alive, workspace().get_server_info().get("version"))


@step("a command succeeds")
def _():
    result = workspace().execute_command("echo made by a client | tee made.txt")
    return expect(result.exit_code == 0 and "made by" in result.stdout, result.stdout.strip())


@step("a command fails with its status")
def _():
    result = workspace().execute_command("echo no >&2; exit 3")
    return expect(result.exit_code == 3 and "no" in result.stderr, f"{result.exit_code} {result.stderr.strip()}")


@step("a command runs in another folder")
def _():
    result = workspace().execute_command("pwd", cwd="/workspace")
    return expect(result.stdout.strip() == "/workspace", result.stdout.strip())


@step("a command that takes too long is ended")
def _():
    result = workspace().execute_command("sleep 30", timeout=2)
    return expect(result.timeout_occurred or result.exit_code != 0, f"exit status {result.exit_code}")


@step("a command in the background is read and stopped")
def _():
    started = workspace().start_command("echo begun; sleep 60")
    command = started if isinstance(started, str) else getattr(started, "id", started)
    until(lambda: "begun" in str(workspace().get_command_output(command)))
    workspace().stop_command(command)
    return "begun, then stopped"


def up_and_down(target):
    with tempfile.TemporaryDirectory() as folder:
        source, back = Path(folder, "up.bin"), Path(folder, "down.bin")
        source.write_bytes(bytes(range(256)) * 40)
        up = workspace().file_upload(source, target)
        expect(up.success, f"upload: {up.error}")
        down = workspace().file_download(target, back)
        expect(down.success, f"download: {down.error}")
        return expect(back.read_bytes() == source.read_bytes(), f"{back.stat().st_size} bytes there and back")


step("a file goes up to /workspace/project and down again")(lambda: up_and_down("/workspace/project/file.bin"))
step("a file goes up to /tmp and down again")(lambda: up_and_down("/tmp/file.bin"))


@step("what was uploaded is there for commands")
def _():
    result = workspace().execute_command("wc -c < /workspace/project/file.bin; wc -c < /tmp/file.bin")
    return expect(result.stdout.split() == ["10240", "10240"], result.stdout + result.stderr)


@step("a download of what is not there fails")
def _():
    with tempfile.TemporaryDirectory() as folder:
        down = workspace().file_download("/workspace/project/none", Path(folder, "x"))
        return expect(not down.success, f"success is {down.success}: {down.error}")


@step("git changes of a repository without a remote")
def _():
    workspace().execute_command(
        "mkdir -p own && cd own && git init -q && echo one > a.txt && git add . && "
        "git -c user.name=A -c user.email=a@example.com commit -qm one && echo two > a.txt && echo new > b.txt"
    )
    changes = workspace().git_changes("own")
    found = sorted((str(change.path), change.status.value) for change in changes)
    return expect([path for path, _ in found] == ["a.txt", "b.txt"], found)


@step("git diff of a changed file")
def _():
    diff = workspace().git_diff("own/a.txt")
    return expect((diff.modified or "").strip() == "two", diff)


@step("the LLM of the settings")
def _():
    context["llm"] = workspace().get_llm()
    return expect(context["llm"].base_url and context["llm"].api_key, context["llm"].model)


@step("a profile that was stored")
def _():
    llm = {"model": "openai/fast", "api_key": "key-of-fast", "temperature": 0.25}
    address = f"{URL}/api/v1/settings/profiles/fast"
    httpx.post(address, headers={"X-Session-API-Key": KEY}, json={"llm": llm}).raise_for_status()
    found = workspace().get_llm(profile_name="fast")
    shown = (found.model, found.api_key.get_secret_value(), found.temperature)
    return expect(shown == tuple(llm.values()), found.model)


@step("a profile that is not there is not found")
def _():
    try:
        workspace().get_llm(profile_name="none-such")
    except FileNotFoundError as error:
        return error
    raise AssertionError("it was found")


@step("the names of the secrets, without values")
def _():
    context["secrets"] = workspace().get_secrets()
    return expect("PLANTED_SECRET" in context["secrets"], sorted(context["secrets"]))


@step("only the secrets that are asked for")
def _():
    return expect(list(workspace().get_secrets(names=["PLANTED_SECRET"])) == ["PLANTED_SECRET"], "PLANTED_SECRET")


@step("the tool servers of the settings")
def _():
    return f"{len(workspace().get_mcp_config())} tool servers"


@step("the git token is found under the name that clone_repos asks for")
def _():
    return expect(workspace()._get_secret_value("github_token"), "found")


@step("the skills of a project are found")
def _():
    workspace().execute_command(
        "mkdir -p own/.openhands/microagents && "
        "printf -- '---\\nname: repo\\ntype: repo\\n---\\nChecks are in check.sh.\\n' > own/.openhands/microagents/repo.md"
    )
    skills, _ = workspace().load_skills_from_agent_server(
        project_dirs=["/workspace/project/own"], load_public=False, load_user=False, load_org=False
    )
    return expect(len(skills) > 0, [skill.name for skill in skills])


@step("a conversation is started")
def _():
    agent = Agent(llm=context["llm"], tools=[Tool(name=TerminalTool.name), Tool(name=FileEditorTool.name)])
    context["events"] = []
    context["conversation"] = Conversation(
        agent=agent, workspace=workspace(), callbacks=[context["events"].append], visualizer=None
    )
    return conversation().id


@step("secrets are handed over as references")
def _():
    conversation().update_secrets(context["secrets"])
    return f"{len(context['secrets'])} references"


@step("a message is worked on to the end")
def _():
    conversation().send_message("Make the check pass.")
    conversation().run(timeout=120)
    return expect(conversation().state.execution_status == ConversationExecutionStatus.FINISHED, DONE)


@step("the events came while it worked")
def _():
    kinds = [type(event).__name__ for event in context["events"]]
    return expect("ActionEvent" in kinds and "ObservationEvent" in kinds, f"{len(kinds)} events")


@step("all events are there to be read")
def _():
    return expect(len(list(conversation().state.events)) >= 6, f"{len(list(conversation().state.events))} events")


@step("costs and tokens are counted")
def _():
    usage = conversation().conversation_stats.get_combined_metrics().accumulated_token_usage
    return expect(usage is not None and usage.prompt_tokens > 0, usage and usage.prompt_tokens)


@step("a title is made")
def _():
    return expect(conversation().generate_title(), conversation().generate_title())


@step("the conversation is listed by the service")
def _():
    import httpx

    headers = {"Authorization": f"Bearer {KEY}"}

    def listed():
        found = httpx.get(f"{URL}/api/v1/app-conversations/search", headers=headers).json()["items"]
        return any(item["id"].replace("-", "") == str(conversation().id).replace("-", "") for item in found)

    until(listed)
    return "it is in /api/v1/app-conversations/search"


@step("an action waits for a confirmation and is rejected")
def _():
    conversation().set_confirmation_policy(AlwaysConfirm())
    conversation().send_message("Please wait for the train.")
    # The SDK listens for the end of a run once its request is answered; a run that waits by then it awaits in vain.
    conversation().run(blocking=False)
    until(lambda: conversation().state.refresh_from_server()["execution_status"] == "waiting_for_confirmation")
    conversation().reject_pending_actions("not now")
    until(lambda: conversation().state.refresh_from_server()["execution_status"] == "idle")
    return "waiting_for_confirmation, then idle"


@step("after a rejection it runs on")
def _():
    conversation().set_confirmation_policy(NeverConfirm())
    conversation().send_message("What did you change?")
    conversation().run(timeout=120)
    return expect(
        conversation().state.execution_status == ConversationExecutionStatus.FINISHED,
        conversation().state.execution_status,
    )


@step("a pause takes effect while the model thinks")
def _():
    conversation().send_message(f"Please {HANG}.")
    conversation().run(blocking=False)
    until(lambda: conversation().state.refresh_from_server()["execution_status"] == "running")
    before = time.monotonic()
    conversation().pause()
    until(lambda: conversation().state.refresh_from_server()["execution_status"] == "paused")
    took = time.monotonic() - before
    return expect(took < 1, f"paused after {took:.1f} s")


@step("a question on the side")
def _():
    return expect(conversation().ask_agent("What is this about?"), "answered")


@step("the conversation is attached to again")
def _():
    again = Conversation(
        agent=conversation().agent,
        workspace=workspace(),
        conversation_id=conversation().id,
        visualizer=None,
    )
    return expect(len(list(again.state.events)) >= 6, f"{len(list(again.state.events))} events")


@step("a conversation that the service started is attached to by a program without its tools")
def _():
    headers = {"X-Session-API-Key": KEY}
    message = {"content": [{"type": "text", "text": "Make the check pass."}]}
    start = f"{URL}/api/v1/app-conversations"
    started = httpx.post(f"{start}/stream-start", headers=headers, json={"initial_message": message}, timeout=120).json()
    expect(started[-1]["status"] == "READY", started[-1]["detail"])
    ids = {"ids": started[-1]["app_conversation_id"]}
    found = lambda: httpx.get(start, headers=headers, params=ids).json()[0]
    until(lambda: found()["execution_status"] == "finished")
    place = found()
    args = [place["conversation_url"].split("/api/")[0], place["session_api_key"], place["id"]]
    attached = subprocess.run([sys.executable, "-c", ATTACH, *args], capture_output=True, text=True)
    return expect(attached.stdout.strip() == "3 actions", attached.stdout + attached.stderr[-SEEN_LENGTH:])


@step("the sandbox is kept and taken up again")
def _():
    sandbox = workspace()._sandbox_id
    workspace().keep_alive = True
    workspace().cleanup()
    context["workspace"] = OpenHandsCloudWorkspace(
        cloud_api_url=URL, cloud_api_key=KEY, sandbox_id=sandbox, init_timeout=180
    )
    result = workspace().execute_command("cat /workspace/project/made.txt")
    return expect("made by a client" in result.stdout, result.stdout.strip())


@step("the workspace is deleted")
def _():
    import httpx

    sandbox = workspace()._sandbox_id
    workspace().cleanup()
    headers = {"Authorization": f"Bearer {KEY}"}
    found = httpx.get(f"{URL}/api/v1/sandboxes", params={"id": sandbox}, headers=headers).json()
    return expect(found == [None], found)
