// SPDX-License-Identifier: Apache-2.0
/// A step of contract section 5 with a reason, numbered as in the contract.
public enum DecisionStep: Int, Sendable, CaseIterable {
    case expiry = 2
    case read = 6
    case veto = 7
    case mute = 8
    case dnd = 9
    case badge = 10
    case routes = 11
    case token = 12
}

/// Receives the input and result of each step. The worker uses `NoTrace` or `FactTrace`, `explain` uses
/// `RecordedTrace`.
///
/// Texts are built only on request, so that a trace without storage costs nothing.
public protocol DecisionTrace {
    mutating func record(
        _ step: DecisionStep, input: @autoclosure () -> String, outcome: @autoclosure () -> String)

    /// All steps as codes. Called once per decision.
    mutating func keep(_ facts: @autoclosure () -> DecisionFacts)
}

extension DecisionTrace {
    @inlinable
    public mutating func keep(_ facts: @autoclosure () -> DecisionFacts) {}
}

/// Keeps nothing.
public struct NoTrace: DecisionTrace {
    /// Gives each `inout` its own address. All variables of an empty type may share one address, and the thread
    /// sanitizer would report writes of two threads as a race.
    @usableFromInline var place: UInt8 = 0

    @inlinable
    public init() {}

    @inlinable
    public mutating func record(
        _ step: DecisionStep, input: @autoclosure () -> String, outcome: @autoclosure () -> String
    ) {}
}

/// Keeps every step in order.
public struct RecordedTrace: DecisionTrace, Sendable {
    public private(set) var steps: [Entry] = []
    public private(set) var facts: DecisionFacts = []

    /// One step with its input and result.
    public struct Entry: Sendable, Equatable {
        public var step: DecisionStep
        public var input: String
        public var outcome: String

        public init(step: DecisionStep, input: String, outcome: String) {
            self.step = step
            self.input = input
            self.outcome = outcome
        }
    }

    public init() {}

    public mutating func record(
        _ step: DecisionStep, input: @autoclosure () -> String, outcome: @autoclosure () -> String
    ) {
        steps.append(Entry(step: step, input: input(), outcome: outcome()))
    }

    public mutating func keep(_ facts: @autoclosure () -> DecisionFacts) { self.facts = facts() }
}
