// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Glibc

/// An eventfd that librdkafka's threads write and the owner's loop watches.
///
/// Safe from any thread: the descriptor never changes and both sides use one system call.
final class WakeFD: Sendable {
    let descriptor: Int32

    init() throws(KafkaFault) {
        descriptor = carillon_eventfd()
        if descriptor < 0 { throw .wakeup(errno: errno) }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Makes `queue` signal this descriptor each time it stops being empty.
    func attach(to queue: OpaquePointer) {
        // The library copies the payload; eight bytes because an eventfd accepts nothing else.
        var one: UInt64 = 1
        rd_kafka_queue_io_event_enable(queue, descriptor, &one, MemoryLayout<UInt64>.size)
        // Earlier events would never signal, and neither would later events of a queue that is not empty.
        signal()
    }

    static func detach(from queue: OpaquePointer) {
        rd_kafka_queue_io_event_enable(queue, -1, nil, 0)
    }

    /// Makes it readable at once: used when a batch ended before the queue did.
    func signal() {
        var one: UInt64 = 1
        // A full counter (2^64 - 2) means that it is already readable.
        _ = write(descriptor, &one, MemoryLayout<UInt64>.size)
    }

    func drain() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, MemoryLayout<UInt64>.size)
    }

    /// Blocks until readable or until `milliseconds` passed: for the control plane only.
    func wait(milliseconds: Int32) {
        var item = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&item, 1, milliseconds)
    }
}

/// CLOCK_MONOTONIC in ms, for deadlines of blocking calls.
func monotonicMs() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}

/// Unix ms, for ends that are given as a time.
func wallMs() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}
