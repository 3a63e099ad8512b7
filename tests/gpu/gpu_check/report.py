"""Writes the results of tests/gpu/check as text, and as the tables of docs/gpu.md."""

from __future__ import annotations

from typing import Any

from gpu_check.steps import AIM, best_ratios

Record = dict[str, Any]
NOBODY = "Nobody has run this check on a GPU yet."


def first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""


def line_of(step: dict[str, Any]) -> str:
    return f"{step['verdict']:8s} {step['step']} ({step['seconds']} s): {first_line(step['note'])}"


def text_of(record: Record) -> str:
    """Returns a report for a terminal: all steps, the notes of what failed, and the tables."""
    lines = [machine_of(record), ""]
    for step in record["steps"]:
        lines.append(line_of(step))
        if step["verdict"] == "failed" and "\n" in step["note"]:
            lines += [f"    {line}" for line in step["note"].splitlines()[1:]]
        lines += checks_of(step)
    for table in (copies_table(record), collectives_table(record)):
        if table:
            lines += ["", table]
    return "\n".join(lines) + "\n"


def checks_of(step: dict[str, Any]) -> list[str]:
    """Returns the ends of the notes of checks that failed, and the names of those that did not run."""
    lines = []
    for check in step.get("checks", []):
        if check["verdict"] == "failed":
            lines.append(f"    failed {check['check']}")
            lines += [f"        {line}" for line in check["note"].splitlines()[-6:]]
    not_run = [check["check"] for check in step.get("checks", []) if check["verdict"] == "not run"]
    return [*lines, f"    not run: {', '.join(not_run)}"] if not_run else lines


def machine_of(record: Record) -> str:
    """Returns a sentence about the machine and the software."""
    machine = record["machine"]
    smi = (machine["nvidia_smi"] or [{}])[0]
    gpu = machine.get("gpu") or "no GPU"
    link = f", PCIe {smi['pcie.link.gen.max']} x{smi['pcie.link.width.max']}" if smi else ""
    driver = f", driver {smi['driver_version']}" if smi else ""
    return (
        f"{gpu}{link}{driver}; {machine['processors']} cores of {machine['processor']}; {machine['system']}, "
        f"Linux {machine['kernel']}, {machine['glibc']}; Python {machine['python']}, PyTorch {machine['torch']}, "
        f"NCCL {machine.get('nccl', '')}. Commit {record['commit']}, {record['date']}."
    )


def markdown_of(record: Record | None) -> str:
    """Returns the generated section of docs/gpu.md."""
    if record is None:
        return NOBODY
    parts = [machine_of(record), checks_table(record), copies_table(record), collectives_table(record)]
    return "\n\n".join(part for part in parts if part)


def results_of(record: Record, name: str, key: str) -> list[dict[str, Any]]:
    return next((step.get(key, []) for step in record["steps"] if step["step"] == name), [])


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def checks_table(record: Record) -> str:
    rows = [
        f"| {step['step']} | {step['verdict']} | {cell(first_line(step['note']))[:200]} |" for step in record["steps"]
    ]
    return "\n".join(["| step | verdict | |", "|---|---|---|", *rows])


def size_of(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def copies_table(record: Record) -> str:
    """Returns the best rate of comm-lib/device in each direction, in GB/s, and its ratio to that of CUDA."""
    rows = [row for row in results_of(record, "copies", "rows") if row["copies"] > 1]
    if not rows:
        return ""
    ratios = best_ratios(rows)
    lines = [
        f"Copies between GPU and pinned memory, GB/s (ratio to cudaMemcpyAsync; aim: {AIM} from 4 MiB on):",
        "",
        "| bytes of a copy | to host | to device | both at once |",
        "|---|---|---|---|",
    ]
    for size in sorted({row["bytes"] for row in rows}):
        cells = []
        for direction in ("to host", "to device", "both"):
            same = [row for row in rows if (row["direction"], row["bytes"]) == (direction, size)]
            rates = [row["bytes_per_second"]["gleaner"] for row in same]
            cells.append(f"{max(rates) / 1e9:.1f} ({ratios[direction, size]:.2f})")
        lines.append(f"| {size_of(size)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def collectives_table(record: Record) -> str:
    """Returns the milliseconds of a step for each contender."""
    rows = results_of(record, "collectives", "rows")
    measured = [row for row in rows if "seconds" in row]
    if not measured:
        return ""
    contenders = list(dict.fromkeys((row["contender"], row["ranks"]) for row in measured))
    cases = list(dict.fromkeys(row["case"] for row in measured))
    found = {(row["contender"], row["ranks"], row["case"]): row["seconds"] for row in measured}
    titles = [f"{name}, {ranks} rank{'s' if ranks > 1 else ''}" for name, ranks in contenders]
    lines = [
        f"Milliseconds of a step, float32, all ranks on one {'GPU' if record['device'] == 'cuda' else 'machine'}:",
        "",
        f"| tensors | {' | '.join(titles)} |",
        "|---" * (len(contenders) + 1) + "|",
    ]
    for case in cases:
        cells = [f"{found[(*who, case)] * 1e3:.2f}" if (*who, case) in found else "-" for who in contenders]
        lines.append(f"| {case} | {' | '.join(cells)} |")
    for row in rows:
        if "error" in row:
            lines.append(f"\nNot measurable: {row['contender']} with {row['ranks']} ranks: {row['error']}")
    return "\n".join(lines)
