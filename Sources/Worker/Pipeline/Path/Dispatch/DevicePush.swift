// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore

/// The push of a device, from its place in the device's queue to its answer; later rounds and the mark look at it after that.
struct DevicePush {
    /// Kept because a later round reads the recipient again. Nil only after `forget`.
    private(set) var token: BoundToken?
    /// The same for every attempt.
    let id: PushID
    /// The number in the push.
    var badge: Int64?
    /// A client's report may be part of `badge`.
    var mayHaveReport: Bool
    /// APNs accepted it.
    var isAccepted = false
    /// APNs accepted it, and no later round has counted the message since.
    var mayShowLower = false
    /// Whether the push has a place in its device's hour (`Sender.takePlace`).
    var hasPlace = false
    /// The requests of a push that was taken back from the client.
    var attempts: Int16 = 0
    let startedNanos: UInt64
    /// Time of the last check before sending; 0 for none.
    var checkedNanos: UInt64
    /// The other messages, if it is a merged push.
    var merged: MergedPush?
    /// The open check before sending.
    var check: SendCheck?

    /// APNs accepted it.
    ///
    /// - Returns: its number.
    mutating func noteShown() -> Int64? {
        mayShowLower = true
        return badge
    }

    /// The push has ended. Frees all data but those of the mark now, because they are in the processor's cache.
    mutating func forget() {
        token = nil
        merged = nil
        check = nil
    }
}

/// The parts of a push that its request and its record need.
struct PushParts {
    let token: BoundToken
    let id: PushID
    let badge: Int64?
    let merged: MergedPush?
    let startedNanos: UInt64
    let checkedNanos: UInt64
}

extension DeviceWork {
    // Mutating only to be read in place: the array's subscript would copy the device, with a reference count for each part.

    /// Nil without a push, and after `forget`.
    mutating func pushParts() -> PushParts? {
        guard let token = push?.token, let id = push?.id, let startedNanos = push?.startedNanos,
            let checkedNanos = push?.checkedNanos
        else { return nil }
        return PushParts(
            token: token, id: id, badge: push?.badge, merged: push?.merged, startedNanos: startedNanos,
            checkedNanos: checkedNanos)
    }

    mutating func pushID() -> PushID? { push?.id }
    mutating func attempts() -> Int16 { push?.attempts ?? 0 }

    mutating func copyAlert(_ alert: Bool?) -> Bool? { route.way.copyAlert(alert) }
}
