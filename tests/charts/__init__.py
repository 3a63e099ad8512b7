"""Tests of the chart. This folder is a package so that its conftest has a unique name in sessions with other
folders."""
