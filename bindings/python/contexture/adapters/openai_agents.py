"""OpenAI Agents: a filter for ``RunConfig.call_model_input_filter``, and hooks that tell what was billed.

::

    folding = Folding(budget=64_000)
    result = await Runner.run(agent, task, session=session, hooks=folding, run_config=RunConfig(call_model_input_filter=folding.filter))

A session keeps all items; only what is sent to the model is folded. One :class:`Folding` is for one conversation.
"""

from __future__ import annotations

from typing import Any, Optional

from agents import Agent, ModelResponse, RunContextWrapper, RunHooks
from agents.run import CallModelData, ModelInputData

from .._folder import Folded, Folder
from ._positions import fold, usage


class Folding(RunHooks[Any]):
    """Folds what a model is sent. It takes the options of :class:`contexture.Folder`, or a folder."""

    def __init__(self, budget: Optional[int] = None, *, folder: Optional[Folder] = None, **options: Any) -> None:
        self.folder = folder if folder is not None else Folder(budget, format="responses", **options)
        """The folder of the conversation, for snapshots."""
        self._sent: Optional[Folded] = None

    def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """What is sent to the model, for ``RunConfig.call_model_input_filter``."""
        given = data.model_data
        model = data.agent.model if isinstance(data.agent.model, str) else getattr(data.agent.model, "model", "")
        items: list[Any] = list(given.input)
        request = {"model": model or "", "instructions": given.instructions or "", "input": items}
        self._sent, shown = fold(self.folder, request)
        return ModelInputData(
            input=[items[one] if isinstance(one, int) else dict(one) for one in shown],  # type: ignore[misc]
            instructions=given.instructions,
        )

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Tells the folder what was billed."""
        reported, sent = response.usage, self._sent
        if sent is not None and reported.input_tokens:
            self._sent = None
            cached = getattr(reported.input_tokens_details, "cached_tokens", 0)
            self.folder.usage(usage(reported.input_tokens, reported.output_tokens, cached), of=sent)
