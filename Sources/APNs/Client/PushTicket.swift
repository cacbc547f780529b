// SPDX-License-Identifier: Apache-2.0
/// Identifies one push that a client set aside for `apns(_:wantsCheck:ticket:)`. It becomes stale with the answer, or
/// when the push leaves.
public struct PushTicket: Sendable, Equatable {
    /// The push's number in order of arrival. Slots are reused, this number is not.
    let order: UInt64
    let slot: Int32
    /// The number of the push's check.
    let check: UInt16
}
