"""Test kit for connector authors and hosts; nothing imports it."""
