// SPDX-License-Identifier: Apache-2.0
/// The reason why a simulator cannot start or continue: an address in use, a folder that cannot be written, an invalid
/// certificate.
public struct SimulatorFault: Error, Equatable, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
