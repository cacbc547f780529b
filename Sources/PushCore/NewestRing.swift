// SPDX-License-Identifier: Apache-2.0
/// The newest elements, in no order. Beyond the capacity, each new element replaces the oldest.
public struct NewestRing<Element> {
    public private(set) var elements: [Element] = []
    public let capacity: Int
    private var oldest = 0

    public init(capacity: Int) {
        self.capacity = max(1, capacity)
    }

    public var count: Int { elements.count }

    /// Adds an element. Returns the replaced one, or nil while there is room.
    @discardableResult
    public mutating func append(_ element: Element) -> Element? {
        guard elements.count == capacity else {
            elements.append(element)
            return nil
        }
        let displaced = elements[oldest]
        elements[oldest] = element
        oldest = (oldest + 1) % capacity
        return displaced
    }

    public mutating func removeAll() {
        elements = []
        oldest = 0
    }
}

extension NewestRing: Sendable where Element: Sendable {}
