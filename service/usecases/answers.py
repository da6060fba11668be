"""Answers questions of gateways that need GDAL or PROJ, which only workers have."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import structlog
from anyio.abc import TaskGroup

from service.errors import GeomillError
from service.jobs.questions import Questions
from service.telemetry import events
from service.usecases import preview_result, search_systems
from service.usecases.services import Services

_log = structlog.get_logger()

_ANSWERS: Mapping[str, Callable[[Services, bytes], Awaitable[bytes]]] = {
    preview_result.TOPIC: preview_result.answer_preview,
    search_systems.TOPIC: search_systems.answer_search,
}


async def answer_questions(services: Services, questions: Questions, tasks: TaskGroup) -> None:
    """Answer the questions of gateways from now on, in `tasks`."""
    for topic, answer in _ANSWERS.items():
        await questions.answer(topic, partial(_answer, services, answer), tasks)


async def _answer(services: Services, answer: Callable[[Services, bytes], Awaitable[bytes]], question: bytes) -> bytes:
    """Answer a question; no bytes if that is not possible now."""
    try:
        return await answer(services, question)
    except GeomillError as error:
        _log.warning(events.QUESTION_UNANSWERED, reason=type(error).__name__)
    except Exception:  # noqa: BLE001 -- one question must not end the worker
        _log.exception(events.QUESTION_UNANSWERED)
    return b""
