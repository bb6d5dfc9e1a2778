"""Which embedder the settings ask for.

Nothing is loaded here: the answer is a function that does, for `embed.Patient` to call when it is time.
Settings that cannot work are refused at once, because waiting would not mend them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from backstory.config import setting
from backstory.errors import BadInput
from backstory.recall.embedders.protocol import Embedder

POSSIBLE = "static, off, onnx:<folder or hub name>, ollama:<model>, openai:<model>"


def chosen(env: Mapping[str, str]) -> Callable[[], Embedder] | None:
    """How to make the embedder that the setting `embedder` names; None where it is off."""
    said = setting("embedder", env) or "static"
    source, _, model = said.partition(":")
    if said == "off":
        return None
    if said == "static":
        from backstory.recall.embedders.static import Static

        return Static
    if source == "onnx" and model:
        from backstory.recall.embedders import onnx

        onnx.check(model)
        return partial(onnx.Onnx, model)
    if source in ("ollama", "openai") and model:
        return _remote(source, model, env)
    raise BadInput(f"embedder is {said[:80]!r}; it is one of {POSSIBLE}")


def _remote(source: str, model: str, env: Mapping[str, str]) -> Callable[[], Embedder]:
    from backstory.recall.embedders import remote

    url = setting("embedding.url", env).rstrip("/") or (
        remote.OLLAMA if source == "ollama" else remote.OPENAI
    )
    key = setting("embedding.key", env).strip()
    if not key and url == remote.OPENAI:  # the environment's key is OpenAI's, and no other server's business
        key = env.get("OPENAI_API_KEY", "").strip()
    remote.check(url, key)
    return partial(remote.ollama if source == "ollama" else remote.openai, model, url, key)
