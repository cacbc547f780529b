// SPDX-License-Identifier: Apache-2.0
/// A server or tool for tests, demo or bench did not start, or failed in use.
public struct SetupFault: Error, CustomStringConvertible {
    public let description: String
    public init(_ description: String) { self.description = description }
}
