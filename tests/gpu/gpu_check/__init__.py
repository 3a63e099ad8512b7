"""The parts of tests/gpu/check and tests/gpu/bundle."""
