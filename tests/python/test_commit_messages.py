"""Tests the messages of commits against the rules in CONTRIBUTING.md."""

from __future__ import annotations

import re
import subprocess

import pytest
from conftest import ROOT

BASE = "4258119f0f1ea9bf70bb777f812da3b74610ee76"  # the rules hold for the commits after this one
NO_VERBS = {"An", "All", "Each", "Every", "It", "No", "One", "Some", "The", "These", "This", "We", "What", "Wip"}
VERBS = {"Alias", "Always", "Bias", "Embed"}  # although they look like another form of a verb
# Added, Adding, Adds; but not Shed and Need, Bring, or Pass and Focus.
OTHER_FORM = re.compile(r"\w*[aeiouy]\w*(?:(?<!e)ed|ing)|\w+(?<![siu])s", re.IGNORECASE)
FOLDER = re.compile(r"(?<![\w.~-])/(?:home|root|tmp|work|workspace|Users)\b")  # of some machine


def faults_of(message: str) -> list[str]:
    """Returns the rules that the message breaks."""
    subject = message.splitlines()[0]
    first = re.match(r"[A-Z][a-z-]+(?= )", subject)
    word = first.group() if first else ""
    imperative = word and word not in NO_VERBS and (word in VERBS or not OTHER_FORM.fullmatch(word))
    rules = {
        "a subject begins with a capital letter and a verb in the imperative": imperative,
        "a subject has at most 100 characters": len(subject) <= 100,
        "a subject ends without a period": not subject.endswith("."),
        "a message names no folder of a machine": not FOLDER.search(message),
    }
    return [rule for rule, holds in rules.items() if not holds]


@pytest.mark.parametrize(
    "first", ["Add", "Bring", "Process", "Pass", "Embed", "Need", "Shed", "Ping", "Focus", "Alias"]
)
def test_imperative_subjects_are_accepted(first: str) -> None:
    assert faults_of(f"{first} the rules of work/tmp\n\nSee docs/home and https://example.org/tmp.") == []


@pytest.mark.parametrize(
    "message",
    [
        "Added a rule",
        "Adding a rule",
        "Adds a rule",
        "Tests know the rules",
        "The tests know the rules",
        "add a rule",
        "docs: a rule",
        "fixup! Add a rule",
        "WIP add a rule",
        "Wip add a rule",
        "Add a rule.",
        "Add " + "a rule " * 15,
        "Merge branch 'x' of /tmp/h/x/main",
        "Add a rule\n\nFound in /home/me/gleaner.",
    ],
)
def test_other_messages_are_refused(message: str) -> None:
    assert len(faults_of(message)) == 1


def test_messages_of_commits_follow_the_rules() -> None:
    listed = subprocess.run(["git", "log", "-z", "--format=%h %B", f"{BASE}..HEAD"], cwd=ROOT, capture_output=True)
    if listed.returncode != 0:
        pytest.skip("the tree is no git checkout, or has a part of the history only")
    commits = [commit.split(" ", 1) for commit in listed.stdout.decode().split("\0") if commit]
    wrong = {commit: faults_of(message) for commit, message in commits if faults_of(message)}
    assert not wrong
