"""Tests of the checker, the schedules and the traffic."""
