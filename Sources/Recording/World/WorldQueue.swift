// SPDX-License-Identifier: Apache-2.0
/// Scheduled consequences of sent messages, earliest first: a heap. For one thread only.
struct WorldQueue {
    /// A record that a user's client will write.
    struct Duty {
        var atMs: Int64
        /// Entries of equal time keep their order of insertion.
        var order: UInt64 = 0
        var act: Act
    }

    enum Act {
        case read(user: Int, WorldConversation, upTo: Int)
        case acknowledge(user: Int, message: Int, connection: Int)
        /// `storm` is the number of its storm.
        case unbind(user: Int, storm: Int)
        case bind(user: Int, storm: Int)
        case mute(user: Int, group: Int, level: Int)
    }

    /// Above this size, only storms are added.
    static let usualMax = 200_000
    private var heap: [Duty] = []
    private var order: UInt64 = 0

    var count: Int { heap.count }
    var next: Duty? { heap.first }

    mutating func add(_ act: Act, atMs: Int64) {
        heap.append(Duty(atMs: atMs, order: order, act: act))
        order += 1
        var child = heap.count - 1
        while child > 0, precedes(child, (child - 1) / 2) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func removeNext() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && precedes(child, least) {
                least = child
            }
            if least == parent { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }

    private func precedes(_ one: Int, _ other: Int) -> Bool {
        (heap[one].atMs, heap[one].order) < (heap[other].atMs, heap[other].order)
    }
}

/// The destination of a message.
enum WorldConversation: Equatable {
    /// The lower number first.
    case pair(Int, Int)
    case group(Int)
    case system(Int)
}
