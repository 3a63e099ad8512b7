"""Tests that files, functions, flags, variables, metrics and headings that documents name exist. Runs no program."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from testing.stages import STAGES

SOURCES = (
    "agent",
    "cli",
    "comm-lib",
    "common",
    "coordinator",
    "operator",
    "scheduler-ext",
    "summation-service",
)
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *sorted(ROOT.glob("docs/*.md"))]
# Placeholders in CONTRIBUTING.md's instructions.
INVENTED = re.compile(r"\bNAME\b|NAME_|_NAME|\bKIND\.")

documents = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


@functools.lru_cache
def tracked() -> frozenset[str]:
    """Returns the files and folders of the tree."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    everything = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    # An unpacked archive has no .git; all but the build folder is then the tree.
    files = listed.stdout.split() or [str(path) for path in everything if path.parts[0] != "build"]
    return frozenset(files) | {str(parent) for name in files for parent in Path(name).parents}


@functools.lru_cache
def sources(*suffixes: str) -> dict[str, str]:
    """Returns the texts of all source files with these suffixes."""
    paths = sorted(name for name in tracked() if name.split("/")[0] in SOURCES and name.endswith(suffixes))
    return {name: (ROOT / name).read_text() for name in paths}


@functools.lru_cache
def code(*suffixes: str) -> str:
    """Returns the text of all source files with these suffixes, one after the other."""
    return "\n".join(sources(*suffixes).values())


def section(document: str, title: str) -> str:
    found = re.search(rf"^## {title}$.*?(?=^## |\Z)", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{document} has no section {title}"
    return found.group()


def anchors(text: str) -> set[str]:
    """Returns the anchors that GitHub makes of the headings."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.*)", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in plain}


@documents
def test_anchors_are_headings(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]*#[^)\s]+)\)", document.read_text()):
        name, _, anchor = target.partition("#")
        if "://" not in name:
            there = (document.parent / name) if name else document
            assert anchor in anchors(there.read_text()), f"{document.name} links {target}"


def paths_in(text: str) -> Iterator[str]:
    folders = "|".join(sorted({name.split("/")[0] for name in tracked() if "/" in name and not name.startswith(".")}))
    yield from re.findall(rf"(?<![\w/.$-])((?:{folders})/[\w./-]*\w)", text)


@documents
def test_paths_in_documents_exist(document: Path) -> None:
    missing = {path for path in paths_in(document.read_text()) if path not in tracked() and not INVENTED.search(path)}
    assert not missing, f"{document.name} names {sorted(missing)}"


@documents
def test_tests_named_in_documents_exist(document: Path) -> None:
    every = "\n".join((ROOT / name).read_text() for name in tracked() if re.search(r"test_\w+\.py$", name))
    named = set(re.findall(r"::(test_\w+)", document.read_text()))
    assert not {name for name in named if not re.search(rf"\bdef {name}\b", every)}


def test_documents_and_headings_named_in_comments_exist() -> None:
    wrong = []
    for name in sorted(tracked()):
        if not name.endswith((".cc", ".h", ".py", ".proto", ".yaml", ".txt", ".cmake")) and "." in Path(name).name:
            continue
        if not (ROOT / name).is_file() or (ROOT / name).suffix == ".svg":
            continue
        for path, anchor in re.findall(r"(?<![\w/.])(docs/[\w-]+\.md)(?:#([\w-]+))?", (ROOT / name).read_text()):
            if path not in tracked() or (anchor and anchor not in anchors((ROOT / path).read_text())):
                wrong.append(f"{name} names {path}{'#' + anchor if anchor else ''}")
    assert not wrong


def test_headers_named_in_comments_exist() -> None:
    names = {Path(name).name for name in tracked()}
    wrong = {
        header
        for line in code(".cc", ".h").splitlines()
        if "#include" not in line
        for header in re.findall(r"//.*?(?<![\w/.])([a-z]\w*\.(?:h|cc))\b", line)
        if header not in names
    }
    assert not wrong - {"graph.h"}, "graph.h is NCCL's"


def test_files_and_functions_named_in_architecture_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for name in set(re.findall(r"(?<![\w/.-])[\w/-]+\.(?:cc|h|py|proto|yaml)\b", text)):
        assert any(path == name or path.endswith(f"/{name}") for path in tracked()), f"ARCHITECTURE.md names {name}"
    for name in set(re.findall(r"`(\w+(?:::\w+)+)`", text)):
        owner, last = name.split("::")[-2:]
        begin = rf"\b(?:class|struct) {owner}\b[^;{{]*{{" if owner[0].isupper() else rf"\bnamespace (?:\w+::)*{owner}\b"
        owners = {path: body for path, body in sources(".cc", ".h", ".py").items() if re.search(begin, body)}
        assert owners, f"ARCHITECTURE.md names {name}: there is no {owner}"
        has_last = any(re.search(rf"\b{last}\b", body) for body in owners.values())
        assert has_last, f"ARCHITECTURE.md names {name}: no {last} in {sorted(owners)}"


def test_architecture_has_a_line_for_each_folder_of_sources() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    stated = set(re.findall(r"^\| ([\w/-]+) \|", text, re.MULTILINE)) - {"folder"}
    assert stated <= tracked(), f"folders in ARCHITECTURE.md's table do not exist: {sorted(stated - tracked())}"
    libraries = {str(Path(name).parent) for name in tracked() if name.endswith("CMakeLists.txt")}
    ours = {name for name in libraries if name.split("/")[0] in SOURCES}
    missing = {name for name in ours if "gleaner_library" in (ROOT / name / "CMakeLists.txt").read_text()} - stated
    assert not missing, f"ARCHITECTURE.md's table lacks {sorted(missing)}"
    tests = {name for name in tracked() if re.fullmatch(r"tests/[\w-]+", name) and (ROOT / name).is_dir()}
    unnamed = {name for name in tests if name not in section("ARCHITECTURE.md", "Tests")}
    assert not unnamed, f"ARCHITECTURE.md's section Tests lacks {sorted(unnamed)}"


def flags_of(*folders: str) -> set[str]:
    files = [name for name in tracked() if name.endswith(".cc") and str(Path(name).parent) in folders]
    return {
        flag
        for name in files
        for said in re.findall(r'add_(?:option|text|texts|number|switch)\(\s*"([^"]+)"', (ROOT / name).read_text())
        for flag in said.split(",")
        if flag.startswith("--")
    }


# The folders of the programs whose flags a document describes.
PROGRAMS = {
    "docs/cli.md": ("cli", "cli/bench", "cli/cluster", "cli/networks", "common/flags", "summation-service/service"),
    "docs/agent.md": ("agent", "common/flags"),
    "docs/scheduler.md": ("scheduler-ext/http", "common/flags"),
    "docs/autoscaler.md": ("operator/service", "cli", "summation-service/service"),
}
# Flags of other programs that these documents mention.
OTHERS = {
    "docs/cli.md": {"--pids-limit", "--shm-size"},
    "docs/agent.md": {"--cgroup-root"},
    "docs/scheduler.md": {"--config", "--leader-elect", "--set"},
}


@pytest.mark.parametrize("document", PROGRAMS)
def test_flags_in_documents_exist(document: str) -> None:
    known = flags_of(*PROGRAMS[document]) | OTHERS.get(document, set()) | {"--help"}
    named = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", (ROOT / document).read_text()))
    assert named <= known, f"{document} names {sorted(named - known)}"


@pytest.mark.parametrize("document, folder", [("docs/agent.md", "agent"), ("docs/scheduler.md", "scheduler-ext/http")])
def test_tables_of_flags_are_complete(document: str, folder: str) -> None:
    table = section(document, "Flags")
    missing = {flag for flag in flags_of(folder) if f"`{flag}" not in table}
    assert not missing, f"{document} lacks {sorted(missing)}"


def test_documented_variables_are_exactly_those_that_are_read() -> None:
    """Variables that only the operator sets, for users' programs, are documented in crds/."""
    read = set(re.findall(r'(?:\.environment|getenv|value_of|read_\w+)\([^;]*?"(GLEANER_\w+)"', code(".cc")))
    read |= set(re.findall(r'environ(?:\.get)?[([]"(GLEANER_\w+)"', code(".py")))
    assert {"GLEANER_COORDINATOR", "GLEANER_LIBRARY", "GLEANER_ROOT", "GLEANER_RDMA_POLL"} <= read
    pages = "".join((ROOT / page).read_text() for page in ("docs/cli.md", "docs/agent.md", "docs/scheduler.md"))
    documented = set(re.findall(r"\bGLEANER_\w+", pages))
    assert read <= documented, f"no document has {sorted(read - documented)}"
    assert documented <= read, f"no program reads {sorted(documented - read)}"


def test_documented_metrics_match_the_code() -> None:
    made = set(re.findall(r'"(gleaner_[a-z_]+)"', code(".cc", ".h")))
    page = (ROOT / "docs/metrics.md").read_text()
    short = re.findall(r"`([a-z][a-z_]+)`", section("docs/metrics.md", "Coordinator, by the leading operator"))
    names = set(re.findall(r"`(gleaner_[a-z_]+[a-z])(?:\{[^}`]*\})?`", page))
    names |= {f"gleaner_coordinator_{name}" for name in short if not name.startswith("gleaner_")}
    assert names - made == set(), f"docs/metrics.md has {sorted(names - made)}"
    assert made - names == set(), f"docs/metrics.md lacks {sorted(made - names)}"


def test_documented_reasons_of_the_autoscaler_match_the_code() -> None:
    given = set(re.findall(r'return "(\w+)";', (ROOT / "operator/autoscale/code.cc").read_text())) - {"Unknown"}
    assert set(re.findall(r"`([A-Z]\w+)`", section("docs/autoscaler.md", "Reasons"))) - given == set()
    assert given <= set(re.findall(r"`([A-Z]\w+)`", section("docs/autoscaler.md", "Reasons")))


def test_documented_alerts_match_the_chart() -> None:
    made = {
        name
        for path in (ROOT / "charts/gleaner/alerts").glob("*.yaml")
        for name in re.findall(r"- alert: (\w+)", path.read_text())
    }
    assert set(re.findall(r"`(Gleaner[A-Z]\w+)`", (ROOT / "docs/dashboards.md").read_text())) == made


def test_documented_autoscaler_defaults_match_chart_and_operator() -> None:
    values = (ROOT / "charts/gleaner/values.yaml").read_text()
    options = (ROOT / "operator/service/main.cc").read_text()
    table = section("docs/autoscaler.md", "Settings")
    rows = re.findall(r"^\| `([\w.]+)` \| `--([\w-]+)` \| ([\d.]+) \|$", table, re.MULTILINE)
    assert len(rows) >= 7
    for value, option, default in rows:
        assert re.search(rf"^ +{value.split('.')[-1]}: {default}$", values, re.MULTILINE), f"{value} in values.yaml"
        variable = re.search(rf'"--{option}", flags\.(\w+)', options)
        assert variable, f"gleaner-operator has no --{option}"
        assert re.search(rf"\b{variable.group(1)} = {default}\b", options), f"--{option} of gleaner-operator"


def test_documented_defaults_of_run_match_the_code() -> None:
    fields = (ROOT / "cli/job_flags.h").read_text() + (ROOT / "cli/run_command.cc").read_text()
    stated = re.findall(r"`--([\w-]+)[^`]*` \((\d+)\)", section("docs/cli.md", "gleaner run"))
    assert len(stated) >= 2
    for flag, default in stated:
        name = flag.replace("-", "_")
        assert re.search(rf"\b{name} = {default}[;,]", fields), f"docs/cli.md: --{flag} is {default} by default"


def test_documented_ports_match_chart_and_members() -> None:
    templates = "".join(path.read_text() for path in (ROOT / "charts/gleaner/templates").glob("*.yaml"))
    pods = (ROOT / "operator/reconcile/pods.cc").read_text()
    known = set(re.findall(r"\b(70\d\d)\b", templates)) | set(re.findall(r"Port = (70\d\d);", pods))
    for document in DOCUMENTS:
        named = set(re.findall(r"\bport (70\d\d)\b|(?<=:)(707\d)\b", document.read_text()))
        assert {port for pair in named for port in pair if port} <= known, document.name


def fields_of(table: str) -> set[str]:
    return {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize(
    "document, title, source, variable",
    [
        ("docs/cli.md", "The summary", "coordinator/status/summary.cc", "json"),
        ("docs/bench-data.md", "`gleaner bench push-pull`", "cli/bench/push_pull_command.cc", "line"),
        ("docs/bench-data.md", "`gleaner bench sum`", "cli/bench/sum_command.cc", "line"),
    ],
)
def test_tables_of_json_fields_are_complete(document: str, title: str, source: str, variable: str) -> None:
    written = set(re.findall(rf'\b{variable}\["(\w+)"\] =', (ROOT / source).read_text()))
    stated = fields_of(section(document, title))
    assert written <= stated, f"{document}: {title} lacks {sorted(written - stated)}"
    unknown = {name for name in stated - written if not re.search(rf'"{name}"', code(".cc"))}
    assert not unknown, f"{document}: {title} has {sorted(unknown)}"


def test_documented_frame_types_match_the_header() -> None:
    enum = re.search(r"enum class FrameType.*?\};", (ROOT / "common/wire/frame.h").read_text(), re.DOTALL)
    assert enum
    made = {(number, name.upper()) for name, number in re.findall(r"\bk(\w+) = (\d+),", enum.group())}
    stated = set()
    for numbers, names in re.findall(
        r"^\| ([\d, ]+) \| ([A-Z, ]+) \|", section("docs/protocol.md", "Frame"), re.MULTILINE
    ):
        stated |= set(zip(numbers.split(", "), names.split(", ")))
    assert stated == made


def test_documented_stages_and_labels_match_the_tests() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert re.findall(r"^\| `scripts/test ([\w-]+)` \|", text, re.MULTILINE) == [stage.name for stage in STAGES]
    files = [ROOT / name for name in tracked() if name.endswith(("CMakeLists.txt", ".cmake"))]
    cmake = re.sub(r"#.*", "", "\n".join(path.read_text() for path in files))
    given = re.findall(r"\bLABELS ((?:\"[^\"]+\")|(?:[a-z]+(?: [a-z]+)*))", cmake)
    labels = {label for each in given for label in re.split(r"[; ]", each.strip('"')) if label.isalpha()}
    table = re.search(r"^\| label \| tests \|\n(?:\|.*\n)+", text, re.MULTILINE)
    assert table
    assert set(re.findall(r"^\| `(\w+)` \|", table.group(), re.MULTILINE)) == labels


def test_programs_run_with_debians_python() -> None:
    """A different python3 that comes first in PATH would lack the packages that scripts/bootstrap installs."""
    own = [name for name in tracked() if (ROOT / name).is_file() and not name.startswith("examples/")]
    for name in own:
        with (ROOT / name).open("rb") as file:
            first = file.readline().rstrip()
        assert not re.match(rb"#!.*python", first) or first == b"#!/usr/bin/python3", f"{name} begins {first!r}"
