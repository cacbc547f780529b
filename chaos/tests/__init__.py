# SPDX-License-Identifier: Apache-2.0
"""Tests of the checker, the schedules and the traffic."""
