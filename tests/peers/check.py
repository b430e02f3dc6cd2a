"""Runs the binary against model servers nobody here wrote: LiteLLM's proxy (three protocols, mock answers) and llama.cpp's.

    python3 -m venv .venv
    .venv/bin/pip install 'litellm[proxy]'                        # for --only litellm
    .venv/bin/pip install 'llama-cpp-python[server]' gguf numpy   # for --only llama; compiles C++
    .venv/bin/python tests/peers/check.py --openclaw target/debug/openclaw

Not part of the default run: both install hundreds of megabytes. Nothing is asked of the network; all servers listen on
127.0.0.1. Exit status 0: every check passed. A package that is not installed is reported and skipped, unless named by --only.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
MOCK = "hello from a server nobody here wrote"
KEY = "sk-peers-0123456789"
WAIT = 300


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(command, url, log, env=None):
    """A server that answers at `url`; ended by its process id."""
    with open(log, "w") as out:
        child = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **(env or {})})
    try:
        until = time.monotonic() + WAIT
        while True:
            if child.poll() is not None:
                sys.exit(f"{command[0]} ended with {child.returncode}:\n{pathlib.Path(log).read_text()[-3000:]}")
            try:
                urllib.request.urlopen(url, timeout=2).read()
                break
            except OSError:
                if time.monotonic() > until:
                    sys.exit(f"{url} does not answer:\n{pathlib.Path(log).read_text()[-3000:]}")
                time.sleep(0.3)
        yield
    finally:
        child.terminate()
        child.wait(timeout=30)


def ask(binary, home, config, model, session, text, streaming=True):
    """One turn of the real binary; its answer as `agent --json` gives it."""
    state = home / ".openclaw"
    state.mkdir(exist_ok=True)
    # One tool and no workspace files: the tiny model takes every byte for a token.
    defaults = {"model": {"primary": model}, "workspace": str(home / "workspace"), "skipBootstrap": True,
                "models": {model: {"streaming": streaming}}}
    config = {**config, "agents": {"defaults": defaults}, "tools": {"allow": ["read"]}}
    (state / "openclaw.json").write_text(json.dumps(config))
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "OPENCLAW_STATE_DIR": str(state)}
    command = [binary, "agent", "--local", "--json", "--session-id", session, "-m", text]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=WAIT)
    if ended.returncode != 0:
        sys.exit(f"{model}: exit {ended.returncode}\n{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}")
    return json.loads(ended.stdout[ended.stdout.index("{"):])


def told(answer):
    result = answer.get("result", answer)
    return "".join(payload.get("text") or "" for payload in result["payloads"]), result["meta"]


def litellm(binary, work):
    port = free_port()
    config = work / "litellm.yaml"
    config.write_text(json.dumps({
        "model_list": [{"model_name": "mock", "litellm_params": {
            "model": "openai/mock", "api_key": "sk-none", "mock_response": MOCK}}],
        "general_settings": {"master_key": KEY}, "litellm_settings": {"telemetry": False}}))
    command = [str(pathlib.Path(sys.executable).parent / "litellm"), "--config", str(config), "--port", str(port),
               "--host", "127.0.0.1"]
    url = f"http://127.0.0.1:{port}"
    with server(command, f"{url}/health/liveliness", work / "litellm.log", {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}):
        for api, base in [("openai-completions", f"{url}/v1"), ("anthropic-messages", url), ("openai-responses", f"{url}/v1")]:
            model = {"id": "mock", "name": "Mock", "contextWindow": 200000, "maxTokens": 4096}
            providers = {"peer": {"baseUrl": base, "api": api, "apiKey": KEY, "models": [model]}}
            home = work / api
            home.mkdir()
            # LiteLLM 1.106 has no stream for mock answers in Responses: it answers 500.
            streaming = api != "openai-responses"
            for turn in ("hello", "and again"):
                asked = {"models": {"providers": providers}}
                text, meta = told(ask(binary, home, asked, "peer/mock", "peers", turn, streaming))
                assert text.strip() == MOCK, f"{api}: {text!r}"
            print(f"ok   LiteLLM {api}: {text!r}, {json.dumps(meta['agentMeta'].get('usage'))}")
        # A wrong key is told as such.
        providers["peer"]["apiKey"] = "sk-wrong-0123456789"
        state = ask_failing(binary, work / "wrong", {"models": {"providers": providers}}, "peer/mock")
        assert "401" in state or "400" in state or "auth" in state.lower(), state
        assert "sk-wrong-0123456789" not in state, state
        print(f"ok   LiteLLM refuses a wrong key: {state[:110]!r}")


def ask_failing(binary, home, config, model):
    home.mkdir()
    try:
        return json.dumps(ask(binary, home, config, model, "peers", "hello"))
    except SystemExit as ended:
        return str(ended)


def llama(binary, work):
    gguf = work / "tiny.gguf"
    subprocess.run([sys.executable, HERE / "tiny_gguf.py", gguf], check=True, capture_output=True)
    port = free_port()
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(gguf), "--host", "127.0.0.1", "--port", str(port),
               "--n_ctx", "65536", "--chat_format", "chatml"]
    url = f"http://127.0.0.1:{port}/v1"
    with server(command, f"{url}/models", work / "llama.log"):
        # It knows the older name of the output cap alone, and would write to the end of its context.
        model = {"id": "tiny", "name": "Tiny", "contextWindow": 65536, "maxTokens": 48,
                 "compat": {"maxTokensField": "max_tokens"}}
        providers = {"llama": {"baseUrl": url, "api": "openai-completions", "models": [model]}}
        home = work / "llama"
        home.mkdir()
        for turn in ("hello", "and again"):
            text, meta = told(ask(binary, home, {"models": {"providers": providers}}, "llama/tiny", "peers", turn))
            assert text.strip(), f"llama.cpp said nothing: {json.dumps(meta)}"
        print(f"ok   llama.cpp openai-completions: {text[:60]!r}, {json.dumps(meta['agentMeta'].get('usage'))}")


CHECKS = {"litellm": ("litellm", litellm), "llama": ("llama_cpp", llama)}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--openclaw", default="target/debug/openclaw")
    arguments.add_argument("--only", choices=CHECKS)
    chosen = arguments.parse_args()
    binary = str(pathlib.Path(chosen.openclaw).resolve())
    for name, (package, check) in CHECKS.items():
        if chosen.only not in (None, name):
            continue
        if chosen.only is None and importlib.util.find_spec(package) is None:
            print(f"skip {name}: {package} is not installed")
            continue
        with tempfile.TemporaryDirectory() as work:
            check(binary, pathlib.Path(work))


if __name__ == "__main__":
    main()
