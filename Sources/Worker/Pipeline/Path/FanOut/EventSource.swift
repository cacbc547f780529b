// SPDX-License-Identifier: Apache-2.0
/// An event's position in the events topic; kept while it is parked.
struct EventSource: Equatable, Sendable {
    /// -1 if unknown.
    var partition: Int32 = -1
    var offset: Int64 = -1
    /// The broker's timestamp, Unix ms; 0 if it gave none.
    var kafkaMs: Int64 = 0
    /// The record's header; nil: it had none, or none is read (`kafka.traceparent`).
    var traceparent: Traceparent?

    /// Whether both are of one partition, and this one is the earlier.
    func isBefore(_ other: EventSource) -> Bool { partition == other.partition && offset < other.offset }
}
