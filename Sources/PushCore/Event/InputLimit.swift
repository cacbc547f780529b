// SPDX-License-Identifier: Apache-2.0
/// The limits of contract sections 0 and 2. Other outside data, such as Redis and configuration, uses the same
/// numbers.
public enum InputLimit {
    // Bytes of UTF-8.
    @inlinable public static var id: Int { 64 }
    /// `uid`, `device`, `conv.id`.
    @inlinable public static var user: Int { 128 }
    /// `cert`, `content_key`, `lang` and `tz`.
    @inlinable public static var word: Int { 64 }
    @inlinable public static var phone: Int { 20 }
    @inlinable public static var url: Int { 512 }
    /// `push.task_id`.
    @inlinable public static var task: Int { 64 }
    /// A name, an identifier or an object's key without its own limit in the contract.
    @inlinable public static var name: Int { 256 }
    // Characters.
    @inlinable public static var nick: Int { 64 }
    @inlinable public static var conversationName: Int { 100 }
    @inlinable public static var title: Int { 100 }
    @inlinable public static var content: Int { 500 }
    @inlinable public static var payload: Int { 2048 }
    // Elements.
    @inlinable public static var forced: Int { 100 }
    /// `dnd.windows`, and the days of one.
    @inlinable public static var windows: Int { 7 }
    @inlinable public static var recipients: Int { 100_000 }
    @inlinable public static var acknowledged: Int { 1_000 }
    /// Maximum of items in `to.devices` and in `to.tokens`.
    @inlinable public static var addressed: Int { 1_000 }
    /// A list or an object without its own limit in the contract.
    @inlinable public static var elements: Int { 10_000 }
    /// The lifetime of an event without `expire_at_ms`.
    @inlinable public static var dayMs: Int64 { 86_400_000 }
    /// `push.send_at_ms` after `sent_ms`, at most.
    @inlinable public static var scheduleMs: Int64 { 7 * dayMs }
    /// The bytes of an event that can wait in `carillon.parked`.
    @inlinable public static var parkedBytes: Int { 900_000 }
}
