/// Names one push that a client set aside for `apns(_:wantsCheck:ticket:)`; once answered, or once the push left, it names
/// nothing.
public struct PushTicket: Sendable, Equatable {
    /// How many pushes came before it: slots are used again, this number is not.
    let order: UInt64
    let slot: Int32
    /// Which check of the push it is.
    let check: UInt16
}
