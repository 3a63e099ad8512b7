"""A package, so that its conftest has a name of its own where the tests of other folders run in the same session."""
