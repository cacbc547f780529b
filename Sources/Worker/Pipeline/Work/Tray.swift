/// What one stage of a turn leaves for the next one, taken all at once (`Pipeline.turn`).
///
/// A push passes some 170 KB of code and the processor's first cache holds 32 KB: stage by stage, all pushes of a turn
/// share what one of them has fetched.
final class Tray<Item> {
    private var items: [Item] = []

    func append(_ item: Item) { items.append(item) }

    var isEmpty: Bool { items.isEmpty }

    func removeAll(where isGone: (Item) -> Bool) { items.removeAll(where: isGone) }

    /// Hands over what is there, in its order; what comes meanwhile stays for the next call.
    func takeAll(_ next: (Item) -> Void) {
        if items.isEmpty { return }
        var taken: [Item] = []
        swap(&taken, &items)
        for item in taken { next(item) }
        // Its storage serves the next turn.
        taken.removeAll(keepingCapacity: true)
        if items.isEmpty { items = taken }
    }
}
