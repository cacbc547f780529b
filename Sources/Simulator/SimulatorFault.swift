/// Why a simulator cannot start or go on: an address in use, a folder that cannot be written, a bad certificate.
public struct SimulatorFault: Error, Equatable, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
