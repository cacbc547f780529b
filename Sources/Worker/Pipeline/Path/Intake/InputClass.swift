// SPDX-License-Identifier: Apache-2.0
/// The content of an input topic.
enum InputClass {
    case events, userState
    /// `carillon.chunks`: members of large groups.
    case chunks
    /// `carillon.parked`: deferred work.
    case parked

    /// Records that workers write for themselves.
    var isOurs: Bool { self == .chunks || self == .parked }
}
