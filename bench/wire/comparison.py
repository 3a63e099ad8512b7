"""Decides what guard compares measured ratios with, and whether a row fails. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Optional

from wire import processor, record

TRIES = 2  # a row fails if this many tries in a row are low, since other load on the machine may have caused one


class Against(Enum):
    RECORD = "record"
    PARENT = "parent"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Comparison:
    against: Against
    why: str  # completes a sentence that begins with "guard compares with ..."
    commit: str = ""  # of the parent


def choose(recorded: dict[str, Any], machine: dict[str, Any], asked: str, parent: str) -> Comparison:
    """Chooses between the record of the machine `recorded` and a commit that is measured beside the present one.

    `asked` is the commit that the user asks for, `parent` is the default commit. Either may be empty.
    """
    if asked:
        return Comparison(Against.PARENT, f"commit {asked[:12]}, as --parent asks", asked)
    if processor.is_same(recorded, machine):
        why = f"the record, since it is of an equal processor: {processor.describe(machine)}"
        return Comparison(Against.RECORD, why)
    differs = f"the record is of {processor.describe(recorded)}, and this machine has {processor.describe(machine)}"
    if parent:
        return Comparison(Against.PARENT, f"commit {parent[:12]}, since {differs}", parent)
    why = f"nothing: {differs}, and there is no parent commit; fetch the history, or name a commit with --parent"
    return Comparison(Against.NOTHING, why)


def default_parent(merge_base: str, head: str, before_head: str) -> str:
    """Returns the merge base of HEAD with the upstream branch, or the commit before HEAD if there is no merge base, or
    if the upstream branch already has HEAD. An empty argument says that there is no such commit."""
    return merge_base if merge_base not in ("", head) else before_head


@dataclass(frozen=True)
class Try:
    """A row's ratio beside the ratio of the record or of the parent. None: the row could not be measured."""

    ratio: Optional[float]
    base: Optional[float]

    @property
    def is_low(self) -> bool:
        """Whether the ratio is too low, or missing. A ratio without a base is not low: the parent lacks the feature
        that the row measures."""
        if self.ratio is None:
            return True
        return self.base is not None and record.too_low(self.ratio, self.base)


class Verdict(Enum):
    OK = "ok"
    AGAIN = "once more"
    FAILED = "failed"


def verdict(tries: list[Try]) -> Verdict:
    """Judges a row by all of its tries so far, of which there is at least one."""
    if not all(each.is_low for each in tries):
        return Verdict.OK
    return Verdict.FAILED if len(tries) >= TRIES else Verdict.AGAIN
