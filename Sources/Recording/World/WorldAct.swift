// SPDX-License-Identifier: Apache-2.0
/// A record that a user's client will write because of a message.
enum WorldAct {
    case read(user: Int, WorldConversation, upTo: Int)
    case acknowledge(user: Int, message: Int, connection: Int)
    /// `storm` is the number of its storm.
    case unbind(user: Int, storm: Int)
    case bind(user: Int, storm: Int)
    case mute(user: Int, group: Int, level: Int)
}

/// The destination of a message.
enum WorldConversation: Equatable {
    /// The lower number first.
    case pair(Int, Int)
    case group(Int)
    case system(Int)
}
