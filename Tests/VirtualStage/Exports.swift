// SPDX-License-Identifier: Apache-2.0
// What a test on the stage speaks of.
@_exported public import KafkaModel
@_exported public import LocalServers
@_exported public import Processes
@_exported public import SimulatedFleet
@_exported public import StageWords
