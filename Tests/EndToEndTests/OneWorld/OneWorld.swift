// SPDX-License-Identifier: Apache-2.0
import Simulator
import StageWords
import Testing

/// Cases that share one world: each has users, conversations and messages of its own.
@Suite(.serialized, .inWorld(scenario: TokenPrefix.scenario))
struct OneWorld {}
