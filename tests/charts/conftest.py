"""Provides a real API server, without nodes, for the tests of the chart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from charts.gleaner_chart import NAMESPACE, Plane, program


@pytest.hookimpl(tryfirst=True)  # before pytest selects tests by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that use a real API server as long."""
    for item in items:
        if "plane" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def plane() -> Iterator[Plane]:
    program("helm")
    program("kubectl")
    from lab.control_plane import ControlPlane
    from lab.processes import LabError

    try:
        started = ControlPlane(controllers=True)
        started.start()
    except LabError as error:
        started.stop()
        pytest.skip(f"no API server: {error}")
    try:
        api = Plane(started.kubeconfig)
        api.must("create", "namespace", NAMESPACE)
        api.must("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=privileged")
        yield api
    finally:
        started.stop()
