// SPDX-License-Identifier: Apache-2.0
/// The apps of a shard, by id. One that a reload removes stays: its records are still in the topics.
final class AppTable {
    private(set) var byID: [String: AppContext]
    /// The app of the last record, because the next one usually has the same.
    private var last: AppContext?

    /// - Parameter apps: of two with the same id the first counts.
    init(_ apps: [AppContext]) {
        byID = Dictionary(apps.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    }

    var values: Dictionary<String, AppContext>.Values { byID.values }

    /// The app of that id; nil if it is unknown. The last one is compared first, which is cheaper than a hash.
    subscript(id: String) -> AppContext? {
        if let last, last.id == id { return last }
        last = byID[id]
        return last
    }

    func add(_ app: AppContext) {
        byID[app.id] = app
        last = nil
    }
}
