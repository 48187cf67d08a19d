"""The ``[lint]`` table of a plan: findings that its author answers on purpose."""

from typing import Any

from spillway.errors import SpillwayError
from spillway.pitfalls import SLUGS
from spillway.quantity import nearest


def lint_table(value: Any, where: str) -> dict[str, dict[str, str]]:
    """``{"answers": {slug: sentence}}``, checked. ``where`` names file and key. Raises SpillwayError."""
    if not isinstance(value, dict):
        raise SpillwayError(f"{where} is {value!r}; it takes a table: write [lint.answers].")
    for key in value:
        if key != "answers":
            raise SpillwayError(f"{where}.{key} is not a key of lint{nearest(key, ('answers',))}")
    answers = value.get("answers", {})
    if not isinstance(answers, dict):
        raise SpillwayError(f"{where}.answers is {answers!r}; it takes a table of pitfalls and sentences.")
    for slug, sentence in answers.items():
        if slug not in SLUGS:
            raise SpillwayError(
                f"{where}.answers.{slug} names no pitfall; there are {', '.join(SLUGS)}{nearest(slug, SLUGS)}"
            )
        if not isinstance(sentence, str) or not sentence.strip():
            raise SpillwayError(f"{where}.answers.{slug} is {sentence!r}; it takes a sentence that says why.")
    return {"answers": dict(answers)} if answers else {}
